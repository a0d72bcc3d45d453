package main

import (
	"context"
	"time"

	"holdfast.dev/libs/numbers"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/api"
	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/consume"
	"holdfast.dev/services/customers/internal/peers"
)

const (
	countEvery = 15 * time.Second       // how often to count operations that wait for a completer
	fetchWait  = 250 * time.Millisecond // how long to collect events of bookings for a batch
	workEvery  = time.Second            // how often workers look for due items
	maxWait    = 5 * time.Second        // how long a request waits for another request's accept
)

// wire builds everything and registers it with rt. The parts stop in reverse order.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	to, err := cfg.Upstreams.Clients("customers", cfg.SignKeys)
	if err != nil {
		return err
	}
	p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{CursorKeys: cfg.CursorKeys})
	if err != nil {
		return err
	}
	bookings, tenants := &peers.Bookings{Client: to["bookings"]}, peers.NewTenants(to["identity"])
	catalogue := &app.Catalogue{DB: p.DB, Bookings: bookings}
	customers := &app.Customers{Idempotency: p.Idempotency, Contract: p.Contract, Wake: p.Relay.Wake}
	leads := &app.Leads{
		DB: p.DB, Catalogue: catalogue, Customers: customers, Bookings: bookings, Wake: p.Relay.Wake, Now: time.Now,
	}
	invoices := &app.Invoices{Bookings: bookings, Tenants: tenants, Catalogue: catalogue, Customers: customers, Wake: p.Relay.Wake, Now: time.Now}
	payments := &peers.Payments{Client: to["payments"]}
	accounts := &app.Accounts{DB: p.DB, Invoices: invoices, Payments: payments, Tenants: tenants}
	notes := &app.CreditNotes{DB: p.DB, Invoices: invoices, Accounts: accounts, Payments: payments, Tenants: tenants}
	events := consume.New(catalogue, &app.BookingProjection{Worker: p.Worker}, accounts, notes,
		&testclock.Events{DB: p.DB, Service: "customers"})
	consumer := p.Consume(events.Handle)
	consumer.HandleBatch, consumer.FetchWait = events.HandleBatch, fetchWait
	quotes := &app.Quotes{
		DB: p.DB, Bookings: bookings, Tenants: tenants, Catalogue: catalogue, Leads: leads, Invoices: invoices, Customers: customers,
		Numbers: &numbers.Numbers{DB: p.DB, Table: "quote_counters", Format: "Q-%06d"}, Wake: p.Relay.Wake, Now: time.Now, MaxWait: maxWait,
	}
	operations := operation.Runner{DB: p.DB, Keys: p.Idempotency}
	rt.Every("unfinished steps", countEvery, app.NewUnfinished(p.Worker, time.Now, rt.Metrics).Run)
	completers := app.Completers{Operations: operations, Tenants: tenants, Worker: p.Worker, Log: rt.Log}
	rt.Every("lead completer", workEvery, completers.Leads(leads))
	rt.Every("quote expiry", workEvery, (&app.QuoteExpiry{Quotes: quotes, Worker: p.Worker, Log: rt.Log}).Run)
	rt.Every("payment completer", workEvery, completers.Receipts(accounts))
	rt.Every("quote completer", workEvery, completers.Quotes(quotes))
	rt.Every("credit note completer", workEvery, completers.CreditNotes(notes))

	handlers := &api.API{
		DB:          p.DB,
		Idempotency: p.Idempotency,
		Customers:   customers,
		Leads:       leads,
		Quotes:      quotes,
		Invoices:    invoices,
		CreditNotes: notes,
		Accounts:    accounts,
		Tenants:     tenants,
		Units:       bookings,
		Exports: &app.Exports{
			DB: p.DB, Invoices: invoices, Bookings: &peers.OfCustomer{Client: to["bookings"], Path: "/internal/v1/bookings"},
			Payments: &peers.OfCustomer{Client: to["payments"], Path: "/internal/v1/payment-intents"},
			Refunds:  &peers.OfCustomer{Client: to["payments"], Path: "/internal/v1/refunds"}, Events: &peers.Events{Client: to["webhooks"]},
		},
		Pages:  p.Pages,
		Server: p.Server,
		Now:    time.Now,
	}
	return p.Serve(handlers.Mount)
}
