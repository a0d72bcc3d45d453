package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// stuckBatch is how many conversions one run goes on with.
const stuckBatch = 100

// LeadCompleter goes on with conversions that no process is working on, because one has died or bookings has not answered. Any
// number of processes may run it at once.
type LeadCompleter struct {
	Leads   *Leads
	Tenants TenantService
	Worker  *pg.DB // worker role: finds them
	Log     *slog.Logger

	failing int
}

// Run takes one more attempt at each conversion whose lease has ended. Each attempt has a longer lease than the one before. One
// that fails holds up no other.
func (a *LeadCompleter) Run(ctx context.Context) error {
	var stuck []store.StuckLead
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		stuck, err = store.StuckLeads(ctx, tx, a.Leads.Now(), stuckBatch)
		return err
	})
	if err != nil {
		return fmt.Errorf("stuck conversions: %w", err)
	}
	var failed []error
	for _, s := range stuck {
		if err := a.complete(ctx, s); err != nil {
			failed = append(failed, fmt.Errorf("lead %s: %w", s.ID, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if len(failed) != a.failing {
		a.Log.WarnContext(ctx, "conversions that do not complete", slog.Int("count", len(failed)), slog.Any("error", errors.Join(failed...)))
		a.failing = len(failed)
	}
	return nil
}

// complete makes the next attempt at one conversion, unless another process does. A refusal by bookings completes it too.
func (a *LeadCompleter) complete(ctx context.Context, s store.StuckLead) error {
	mode := caller.Test
	if s.Livemode {
		mode = caller.Live
	}
	l, err := a.Leads.resume(caller.With(ctx, caller.Service("customers", s.TenantID, mode)), s.ID)
	if errors.Is(err, domain.ErrLeadNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	acting, err := a.Tenants.Acting(ctx, s.TenantID, mode)
	if err != nil {
		return err
	}
	acting.OnBehalfOf = l.Conversion.Actor
	err = a.Leads.book(caller.With(ctx, acting), a.Leads.transact, l)
	if refused(err) || errors.Is(err, errConverting) {
		return nil
	}
	return err
}

// resume takes a conversion over whose lease has ended; domain.ErrLeadNotFound when there is none or another process has it.
func (a *Leads) resume(ctx context.Context, id domain.LeadID) (l domain.Lead, err error) {
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		now := a.Now()
		if l, err = store.StuckLeadForUpdate(ctx, tx, id, now); err != nil {
			return err
		}
		l.Attempt++
		l.Conversion.Tries++
		l.Conversion.Until = now.Add(min(lease<<min(l.Conversion.Tries-1, 10), maxLease))
		return store.BeginConversion(ctx, tx, l)
	})
	return l, err
}

// transact runs a write for which no request waits, without an answer to store.
func (a *Leads) transact(ctx context.Context, write func(ctx context.Context, tx pg.Tx) (domain.Lead, error)) error {
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := write(ctx, tx)
		return err
	})
}
