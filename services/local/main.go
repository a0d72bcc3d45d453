// Command local runs Holdfast on one machine: `up` starts the whole platform, `with` runs a command with
// temporary servers, and `kind` installs the platform in a development cluster. It is not used in production.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	cmdline "holdfast.dev/libs/command"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/stack"
	"holdfast.dev/services/local/internal/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := cmdline.Execute(ctx, command())
	var exit stack.ExitCode
	switch {
	case errors.As(err, &exit):
		os.Exit(int(exit))
	case err != nil:
		cmdline.Fail("local", err)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "local", Short: "Run Holdfast on one machine"}
	root.AddCommand(upCommand(), downCommand(), cleanCommand(), withCommand(), kindCommand(), jarsCommand())
	return root
}

func jarsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "jars", Short: "Download Kafka's jars with Maven if they are missing, and print their folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := parts.Jars(cmd.Context(), terminal.New(os.Stderr, "").Say)
			if err == nil {
				fmt.Println(dir)
			}
			return err
		},
	}
}
