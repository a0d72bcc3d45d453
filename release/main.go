// Command release builds a release from a commit and publishes it to a registry: images, chart, contract, SDKs and notes, with bills of
// materials, provenance, signatures and checksums. docs/releases.md describes the result.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast.dev/release/internal/publish"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetOutput(io.Discard) // ko logs each step
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var r publish.Release
	root := &cobra.Command{
		Use: "release", Short: "Build a release from a commit and publish it to a registry", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.Password = os.Getenv("COSIGN_PASSWORD")
			r.Say = func(format string, args ...any) { fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) }
			return r.Publish(cmd.Context())
		},
	}
	flags := root.Flags()
	flags.StringVar(&r.Root, "root", ".", "folder of the checkout to release")
	flags.StringVar(&r.Version, "version", "", "version, such as 1.0.0 or 1.1.0-rc.1")
	flags.StringVar(&r.Registry, "registry", "", "address of the registry, such as registry.example.com or registry.example.com/team")
	flags.StringVar(&r.Key, "key", "", "file with the private key of cosign; COSIGN_PASSWORD decrypts it. A registry on loopback needs none")
	flags.StringVar(&r.Folder, "folder", "", "folder for the files of the release (default bin/release/<version>)")
	flags.StringVar(&r.Source, "source", "https://holdfast.dev", "URL of the source code, for labels and provenance")
	flags.StringSliceVar(&r.Services, "services", nil, "services to build (default all of proto/services.yaml); only for tests")
	flags.StringSliceVar(&r.Platforms, "platforms", []string{"linux/amd64", "linux/arm64"}, "platforms of the images")
	root.AddCommand(registryCommand())
	return root
}

func registryCommand() *cobra.Command {
	var address string
	c := &cobra.Command{
		Use: "registry", Short: "Serve a registry in memory until Ctrl-C, to try a release", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return publish.ServeRegistry(cmd.Context(), address, func(bound string) { cmd.Println("registry", bound) })
		},
	}
	c.Flags().StringVar(&address, "address", "127.0.0.1:5000", "address to listen on")
	return c
}
