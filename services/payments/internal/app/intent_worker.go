package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// leftAtOnce is how many intents the completer looks up at once.
const leftAtOnce = 100

// Completer resumes the calls to the gateway that a process has left behind or whose outcome is unknown, until the intent exists
// or the gateway has refused it. Any number of processes may run it at once.
type Completer struct {
	Intents *Intents
	Worker  *pg.DB // worker role: finds what is left
	Log     *slog.Logger

	failing int
}

// Run resumes what is left of all tenants. One that fails is tried again when its lease has ended.
func (a *Completer) Run(ctx context.Context) error {
	var failed []error
	for after, full := (store.IntentDue{}), true; full; {
		var found []store.IntentDue
		err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			found, err = store.IntentsLeft(ctx, tx, a.Intents.Now(), after, leftAtOnce)
			return err
		})
		if err != nil {
			return fmt.Errorf("payment intents that are left: %w", err)
		}
		for _, after = range found {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := a.complete(caller.With(ctx, caller.Service("payments", after.TenantID, modeOf(after.Livemode))), after.ID); err != nil {
				failed = append(failed, fmt.Errorf("payment intent %s: %w", after.ID, err))
			}
		}
		full = len(found) == leftAtOnce
	}
	if len(failed) != a.failing {
		a.Log.WarnContext(ctx, "payment intents that cannot be completed", slog.Int("count", len(failed)), slog.Any("error", errors.Join(failed...)))
	}
	a.failing = len(failed)
	return nil
}

func modeOf(live bool) caller.Mode {
	if live {
		return caller.Live
	}
	return caller.Test
}

// complete repeats the attempt of one intent, of which the gateway says what it did. Where the gateway may have forgotten the
// attempt, or keeps an answer that says nothing, the intent is looked for, and only when there is none a new attempt begins.
func (a *Completer) complete(ctx context.Context, id domain.IntentID) error {
	p, ok, err := a.take(ctx, id)
	if err != nil || !ok {
		return err
	}
	account, err := a.Intents.Accounts.Account(ctx, a.Intents.DB.Read(ctx), p.AccountID)
	if err != nil {
		return err
	}
	if p.Call.Forgotten(a.Intents.Now()) {
		return a.find(ctx, account, p)
	}
	told, err := a.Intents.Gateway.Create(ctx, account, p)
	var broken *domain.BrokenError
	if errors.As(err, &broken) {
		return a.find(ctx, account, p)
	}
	return a.end(ctx, p, told, err, false)
}

// take takes a call whose process has had its time; false when it has ended, or when another process has it.
func (a *Completer) take(ctx context.Context, id domain.IntentID) (p domain.Intent, ok bool, err error) {
	err = a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if p, err = store.IntentForUpdate(ctx, tx, id); err != nil {
			return err
		}
		real := a.Intents.Now()
		if ok = p.Status == domain.Creating && !p.Call.Leased(real); !ok {
			return nil
		}
		p.Call = p.Call.Resume(real)
		return store.SaveCall(ctx, tx, p)
	})
	return p, ok, err
}

// find looks for the intent at the gateway; when there is none, the attempt had no effect and another one begins.
func (a *Completer) find(ctx context.Context, account domain.Account, p domain.Intent) error {
	found, err := a.Intents.Gateway.Find(ctx, account, p.ID, p.CreatedAt)
	if err != nil {
		return err
	}
	if found != nil {
		return a.end(ctx, p, *found, nil, false)
	}
	attempt := p.Call.Attempt
	p.Call = p.Call.Begin(a.Intents.Now())
	err = a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		current, err := store.IntentForUpdate(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if current.Status != domain.Creating || current.Call.Attempt != attempt {
			return errUnderWay
		}
		return store.SaveCall(ctx, tx, p)
	})
	if err != nil {
		return err
	}
	told, err := a.Intents.Gateway.Create(ctx, account, p)
	return a.end(ctx, p, told, err, true)
}

// end writes what the gateway has said. That it refuses is an end too; fresh says that the attempt was called for the first time.
func (a *Completer) end(ctx context.Context, p domain.Intent, told domain.Snapshot, cause error, fresh bool) error {
	if cause == nil {
		return a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := a.Intents.made(ctx, tx, p.ID, told)
			return err
		})
	}
	definite, _ := gatewayError(cause, fresh)
	if !definite {
		return cause // the lease ends, and the same attempt is made again
	}
	return a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		current, err := store.IntentForUpdate(ctx, tx, p.ID)
		if err != nil || current.Status != domain.Creating || current.Call.Attempt != p.Call.Attempt {
			return err
		}
		current.Status, current.Call.LeasedUntil = domain.Refused, nil
		return store.SaveCall(ctx, tx, current)
	})
}
