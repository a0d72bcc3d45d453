package main

import (
	"context"
	"os"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/peers"
)

// recordLedger runs the command ledger.
func recordLedger(ctx context.Context, cfg Config) error {
	to, err := cfg.Upstreams.Clients("customers", cfg.SignKeys)
	if err != nil {
		return err
	}
	options := pg.Options{MaxConns: 2, Pooler: cfg.Platform.Pooler}
	db, err := pg.Open(ctx, cfg.Platform.DatabaseURL.Get(), options)
	if err != nil {
		return err
	}
	defer db.Close()
	worker, err := pg.Open(ctx, cfg.Platform.WorkerDatabaseURL.Get(), options)
	if err != nil {
		return err
	}
	defer worker.Close()
	tenants := peers.NewTenants(to["identity"])
	invoices := &app.Invoices{Tenants: tenants, Wake: func() {}, Now: time.Now}
	accounts := &app.Accounts{DB: db, Invoices: invoices, Payments: &peers.Payments{Client: to["payments"]}, Tenants: tenants}
	return (&app.LedgerSync{Accounts: accounts, Worker: worker, Out: os.Stdout}).Run(ctx)
}
