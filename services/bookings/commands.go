package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/bookings/internal/app"
)

func seedCommand() *cobra.Command {
	var tenant, mode string
	var in app.Demo
	cmd := &cobra.Command{
		Use: "seed", Short: "Create a demo catalogue of a boat rental for a tenant; safe to repeat.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg SeedConfig
			if err := service.Load(&cfg); err != nil {
				return err
			}
			id, err := ids.Parse[ids.TenantPrefix](tenant)
			if err != nil {
				return fmt.Errorf("--tenant %q: %w", tenant, err)
			}
			if mode != string(caller.Test) && mode != string(caller.Live) {
				return fmt.Errorf("--mode must be test or live, not %q", mode)
			}
			db, err := pg.Open(cmd.Context(), cfg.URL, pg.Options{MaxConns: 1, Background: true, Pooler: cfg.Pooler})
			if err != nil {
				return err
			}
			defer db.Close()
			in.Year = time.Now().Year()
			from := caller.Service("bookings", id, caller.Mode(mode))
			return app.Seed(caller.With(cmd.Context(), from), db, in)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the tenant, tn_…")
	cmd.Flags().StringVar(&mode, "mode", "test", "test or live")
	cmd.Flags().StringVar(&in.Currency, "currency", "USD", "ISO 4217 code of the prices")
	cmd.Flags().StringVar(&in.Timezone, "timezone", "America/New_York", "IANA name of the operator's time zone")
	_ = cmd.MarkFlagRequired("tenant") // the flag exists
	return cmd
}
