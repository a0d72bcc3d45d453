package platform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/repair"
	"holdfast.dev/libs/service"
)

// RepairCommand returns the command repair, with the subcommands copies, forget, numbers and wait: see package repair. It connects as the
// owner of the database.
func RepairCommand(s repair.Service) *cobra.Command {
	var since string
	var check bool
	run := func(cmd *cobra.Command, needsSince bool, do func(ctx context.Context, r repair.Run) error) error {
		r := repair.Run{Check: check, In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Progress: cmd.ErrOrStderr()}
		if needsSince {
			at, err := time.Parse(time.RFC3339, since)
			if err != nil {
				return fmt.Errorf("--since must be a time such as 2026-11-21T10:00:00Z, not %q", since)
			}
			r.Since = at
		}
		var cfg pg.MigrateSettings
		if err := service.Load(&cfg, service.EnvFile()); err != nil {
			return err
		}
		r.URL = cfg.URL
		return do(cmd.Context(), r)
	}
	const sinceHelp = "a time some minutes before the earliest moment to which a database was restored"
	root := &cobra.Command{
		Use: "repair", Short: "After a restore: publish again what other services lack or have newer. Reads copies, writes lost objects.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, true, s.Do) },
	}
	root.Flags().StringVar(&since, "since", "", sinceHelp)
	root.Flags().BoolVar(&check, "check", false, "show what would change, and fail if anything would")
	copies := &cobra.Command{
		Use: "copies", Short: "Write what this service holds of the objects of other services.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd, true, func(ctx context.Context, r repair.Run) error {
				return repair.WriteCopies(ctx, r.URL, s.Name, s.Copies, r.Since, r.Out)
			})
		},
	}
	copies.Flags().StringVar(&since, "since", "", sinceHelp)
	root.AddCommand(copies, &cobra.Command{
		Use: "forget", Short: "Remove the copies of the lost objects that `repair` of the other services wrote.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, false, s.ForgetLost) },
	}, &cobra.Command{
		Use: "wait", Short: "Do nothing until a signal, so that the other commands can run in this container (kubectl exec).", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { <-cmd.Context().Done() },
	})
	if len(s.Counters) > 0 {
		root.AddCommand(numbersCommand(s, run))
	}
	return root
}

// numbersCommand returns the subcommand numbers.
func numbersCommand(s repair.Service, run func(*cobra.Command, bool, func(context.Context, repair.Run) error) error) *cobra.Command {
	var skip int
	numbers := &cobra.Command{
		Use:   "numbers --skip N [KIND…]",
		Short: "Skip the next numbers of " + strings.Join(slices.Sorted(maps.Keys(s.Counters)), ", ") + ", or of some of them, for all tenants.",
		Long: "Skip numbers that were assigned after the moment of the restore and that no database knows, so that none is assigned twice.\n" +
			"Stop the service first. Writes the skipped ranges as lines of JSON. A repeated call skips N more.",
		RunE: func(cmd *cobra.Command, kinds []string) error {
			return run(cmd, false, func(ctx context.Context, r repair.Run) error { return s.SkipNumbers(ctx, r, skip, kinds) })
		},
	}
	numbers.Flags().IntVar(&skip, "skip", 0, fmt.Sprintf("how many numbers to skip, from 1 to %d", repair.MaxSkip))
	return numbers
}
