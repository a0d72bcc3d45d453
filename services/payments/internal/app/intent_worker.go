package app

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// jitter returns between three quarters of a duration and all of it, so that calls that failed at the same time are not retried at
// the same time.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/4+1) //nolint:gosec // jitter
}

// Completer resumes calls to the gateway that a process has abandoned or whose outcome is unknown, until the intent exists or the
// gateway has refused it. Any number of processes may run it at the same time.
type Completer struct {
	Intents *Intents
	Worker  *pg.DB // worker role: finds abandoned calls
	Log     *slog.Logger

	failing operation.Failing
}

// Run resumes abandoned calls of all tenants. It retries failed ones later.
func (a *Completer) Run(ctx context.Context) error {
	left := operation.Workers[store.IntentDue]{
		Service: "payments",
		DB:      a.Worker, Now: a.Intents.Now, Find: store.IntentsLeft, Owner: func(row store.IntentDue) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.IntentDue) error {
			if err := a.complete(ctx, row.ID); err != nil {
				return fmt.Errorf("payment intent %s: %w", row.ID, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "payment intents not completed yet"),
	}
	if err := left.Run(ctx); err != nil {
		return fmt.Errorf("payment intents that are left: %w", err)
	}
	return nil
}

// complete resumes one call.
func (a *Completer) complete(ctx context.Context, id domain.IntentID) error {
	left := leftIntent{createIntent: createIntent{Intents: a.Intents, p: domain.Intent{ID: id}}, log: a.Log}
	return operation.Resume(ctx, a.Intents.operations(), &left)
}

func (a *Intents) operations() operation.Runner { return operation.Runner{DB: a.DB, Keys: a.Keys} }
