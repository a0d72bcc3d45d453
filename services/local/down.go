package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/services/local/internal/supervise"
)

// stopLimit is how long `down` waits: each process gets at most 20 s.
const stopLimit = 2 * time.Minute

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the platform of this checkout and wait until all processes have ended",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return down(cmd.Context())
		},
	}
}

func cleanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Stop the platform of this checkout and delete its data, keys and logs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return clean(cmd.Context())
		},
	}
}

// down signals the running supervisor, waits for it, and stops the processes that a killed supervisor left behind. It is not an
// error if nothing is running.
func down(ctx context.Context) error {
	root, err := checkout()
	if err != nil {
		return err
	}
	run := filepath.Join(root, ".run")
	if _, err := os.Stat(run); err != nil {
		return nil // The platform was never started.
	}
	release, err := takeOver(ctx, run, stopLimit)
	if err != nil {
		return err
	}
	defer release()
	data, err := dataDir(root, run)
	if err != nil {
		return err
	}
	supervise.CleanUp(filepath.Join(run, "pids"), marks(root, data)...)
	_ = os.Remove(filepath.Join(run, "env"))
	return nil
}

func clean(ctx context.Context) error {
	if err := down(ctx); err != nil {
		return err
	}
	root, err := checkout()
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.RemoveAll(rootData(root)), os.RemoveAll(rootData(root)+asideSuffix)); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(root, ".run"))
}
