package main

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast.dev/services/local/internal/stack"
)

func upCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Start the whole platform and keep it running until Ctrl-C or `local down`",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return stack.Up(cmd.Context())
		},
	}
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the platform of this checkout and wait until all processes have ended",
		Args:  cobra.NoArgs,
		RunE:  inCheckout(stack.Checkout.Down),
	}
}

func cleanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Stop the platform of this checkout and delete its data, keys and logs",
		Args:  cobra.NoArgs,
		RunE:  inCheckout(stack.Checkout.Clean),
	}
}

func inCheckout(do func(stack.Checkout, context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		c, err := stack.OpenCheckout()
		if err != nil {
			return err
		}
		return do(c, cmd.Context())
	}
}
