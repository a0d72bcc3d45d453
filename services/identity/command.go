package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// tool is one running command: the use cases and where its words go.
type tool struct {
	*app.App
	by   domain.Origin
	cmd  *cobra.Command
	json bool
}

// command opens the use cases, runs the command and says its error in words.
func command(run func(t tool, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		identity, closeAll, err := openTools(cmd.Context())
		if err != nil {
			return err
		}
		defer closeAll()
		asJSON, _ := cmd.Flags().GetBool("json") // false where the command has no such flag
		return inWords(run(tool{identity, origin(), cmd, asJSON}, args))
	}
}

// origin is whom the audit log names for a command: this user on this machine.
func origin() domain.Origin {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return domain.Origin{Actor: "cli", Source: "cli:" + name + "@" + host}
}

// withJSON adds the --json flag.
func withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// inWords turns a public error into one line for people: the fields by the names of their flags.
func inWords(err error) error {
	var e *apperr.Error
	if !errors.As(err, &e) {
		return err
	}
	if len(e.Fields) == 0 {
		return errors.New(e.Message)
	}
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		lines[i] = "--" + strings.ReplaceAll(f.Field, "_", "-") + ": " + f.Message
	}
	return errors.New(strings.Join(lines, "\n"))
}

// print writes v as JSON, or the rows as a table.
func (t tool) print(v any, rows ...[]string) error {
	out := t.cmd.OutOrStdout()
	if t.json {
		body, err := httpx.Encode(v)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, string(body))
		return err
	}
	return table(out, rows)
}

func table(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// late says on stderr that the gateways do not know yet.
func (t tool) late(told bool) {
	if !told {
		fmt.Fprintln(t.cmd.ErrOrStderr(), "Redis is away: the change is committed, and identity tells the gateways as soon as Redis is back.")
	}
}
