package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// LeadCompleter resumes conversions that no process is working on because a process crashed or bookings did not respond. Any number
// of processes may run it at the same time.
type LeadCompleter struct {
	Leads      *Leads
	Operations operation.Runner
	Tenants    TenantService
	Worker     *pg.DB // worker role: finds them
	Log        *slog.Logger

	failing operation.Failing
}

// Run makes one more attempt at each conversion whose lease has ended. Each attempt has a longer lease than the previous one.
func (a *LeadCompleter) Run(ctx context.Context) error {
	left := operation.Workers[store.StuckLead]{
		Service: "customers", DB: a.Worker, Now: a.Leads.Now, Find: store.StuckLeads,
		Owner: func(row store.StuckLead) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.StuckLead) error {
			if err := a.complete(ctx, row.ID); err != nil {
				return fmt.Errorf("lead %s: %w", row.ID, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "conversions that do not complete"),
	}
	return left.Run(ctx)
}

// complete runs the next attempt at one conversion, unless another process does so.
func (a *LeadCompleter) complete(ctx context.Context, id domain.LeadID) error {
	left := conversion{Leads: a.Leads, id: id, lead: domain.Lead{ID: id}}
	return operation.Resume(ctx, a.Operations, &leftConversion{conversion: left, tenants: a.Tenants})
}

// leftConversion is a conversion that a process has abandoned. A worker resumes it on behalf of the caller who began it.
type leftConversion struct {
	conversion

	tenants TenantService
	acting  caller.Caller
}

// Begin takes over the conversion, unless it has ended or another process holds it.
func (o *leftConversion) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	now := o.Now()
	l, err := store.StuckLeadForUpdate(ctx, tx, o.id, now)
	if errors.Is(err, domain.ErrLeadNotFound) {
		return false, errConverting
	}
	if err != nil {
		return false, err
	}
	l.Conversion = l.Conversion.Begin(now)
	o.lead = l
	return false, store.BeginConversion(ctx, tx, l)
}

// Call requests the booking from bookings, which creates it or returns the one that exists.
func (o *leftConversion) Call(ctx context.Context) (err error) {
	c := caller.FromContext(ctx)
	if o.acting, err = o.tenants.Acting(ctx, c.Tenant, c.Mode); err != nil {
		return err
	}
	o.acting.OnBehalfOf = o.lead.Conversion.Actor
	return o.conversion.Call(caller.With(ctx, o.acting))
}

// Finish writes the result.
func (o *leftConversion) Finish(ctx context.Context, tx pg.Tx) (domain.Lead, error) {
	return o.conversion.Finish(caller.With(ctx, o.acting), tx)
}

// Release ends the conversion without effect.
func (o *leftConversion) Release(ctx context.Context, tx pg.Tx) error {
	return o.conversion.Release(caller.With(ctx, o.acting), tx)
}
