package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

const (
	dueAtOnce   = 100                    // rows that a worker looks up at once
	homeWorkers = 32                     // rows of one tenant and mode that are worked off at once: less than an account's calls
	allWorkers  = 256                    // rows that a worker works off at once
	lookEvery   = 100 * time.Millisecond // how often new rows are looked for while some are worked off
	restFor     = time.Second            // for which a row that stays due is left alone
	reportEvery = time.Minute            // of the rows that failed, while others are still worked off
	keptErrors  = 20                     // of the rows that failed
)

// workers works off the rows of all tenants that are due, those of each tenant and mode beside those of the others, so that the
// account of one at the gateway, which may not answer, keeps nobody else waiting.
type workers[T comparable] struct {
	db *pg.DB // worker role
	// find returns up to limit rows, the oldest first, without those of the tenants that have all their workers.
	find func(ctx context.Context, tx pg.Tx, now time.Time, full []store.Home, limit int) ([]T, error)
	home func(row T) store.Home
	do   func(ctx context.Context, row T) error
	now  func() time.Time
	// woken says that a row has become due; nil: nothing says so.
	woken <-chan struct{}
	// report gets how many rows have failed since the last report, and the first of their errors.
	report func(ctx context.Context, count int, errs []error)

	mu      sync.Mutex
	all     sync.WaitGroup
	running map[store.Home]int
	begun   map[T]time.Time // of the rows that were begun lately, and have not ended well
	failed  int
	errs    []error
	ended   chan struct{}
}

// run works off what is due, and what becomes due meanwhile.
func (w *workers[T]) run(ctx context.Context) error {
	w.running, w.begun, w.ended = map[store.Home]int{}, map[T]time.Time{}, make(chan struct{}, 1)
	defer w.all.Wait()
	for reported := time.Now(); ; {
		more, err := w.look(ctx)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if more {
			continue
		}
		idle := w.idle()
		if idle || time.Since(reported) >= reportEvery {
			reported = time.Now()
			w.tell(ctx)
		}
		if idle {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-w.ended:
		case <-w.woken:
		case <-time.After(lookEvery):
		}
	}
}

// look begins rows that are due; more says that there may be others that can begin now.
func (w *workers[T]) look(ctx context.Context) (more bool, err error) {
	full, places := w.full()
	if places <= 0 {
		return false, nil
	}
	var found []T
	err = w.db.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		found, err = w.find(ctx, tx, w.now(), full, dueAtOnce)
		return err
	})
	if err != nil {
		return false, err
	}
	begun := false
	for _, row := range found {
		begun = w.begin(ctx, row) || begun
	}
	return begun && len(found) == dueAtOnce, nil
}

// full are the tenants that have all their workers, and how many workers are left for the others.
func (w *workers[T]) full() (list []store.Home, places int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	places = allWorkers
	for home, n := range w.running {
		places -= n
		if n >= homeWorkers {
			list = append(list, home)
		}
	}
	for row, at := range w.begun {
		if time.Since(at) >= restFor {
			delete(w.begun, row)
		}
	}
	return list, places
}

// tell reports what has failed.
func (w *workers[T]) tell(ctx context.Context) {
	w.mu.Lock()
	count, errs := w.failed, w.errs
	w.failed, w.errs = 0, nil
	w.mu.Unlock()
	w.report(ctx, count, errs)
}

func (w *workers[T]) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running) == 0
}

// begin works off a row beside the others, unless it was begun just now or its tenant has all its workers.
func (w *workers[T]) begin(ctx context.Context, row T) bool {
	home := w.home(row)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, lately := w.begun[row]; lately || w.running[home] >= homeWorkers {
		return false
	}
	w.running[home]++
	w.begun[row] = time.Now()
	w.all.Go(func() {
		w.end(home, row, recovered(func() error {
			return w.do(caller.With(ctx, caller.Service("payments", home.TenantID, modeOf(home.Livemode))), row)
		}))
	})
	return true
}

func (w *workers[T]) end(home store.Home, row T, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.begun, row)
	} else if w.failed++; w.failed <= keptErrors {
		w.errs = append(w.errs, err)
	}
	waiting := w.running[home] == homeWorkers
	if w.running[home]--; w.running[home] == 0 {
		delete(w.running, home)
	}
	if waiting || len(w.running) == 0 {
		select {
		case w.ended <- struct{}{}:
		default:
		}
	}
}

// recovered turns a panic into an error, so that one row does not end the work of the others.
func recovered(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// failing is how many rows have failed lately.
type failing struct{ count int }

// report logs how many rows fail whenever that changes.
func (f *failing) report(log *slog.Logger, text string) func(ctx context.Context, count int, errs []error) {
	return func(ctx context.Context, count int, errs []error) {
		if count != f.count && ctx.Err() == nil {
			log.WarnContext(ctx, text, slog.Int("count", count), slog.Any("error", errors.Join(errs...)))
		}
		f.count = count
	}
}

// jitter is between three quarters of a time and all of it, so that what has failed together is not tried again together.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/4+1) //nolint:gosec // jitter
}

// Completer resumes the calls to the gateway that a process has left behind or whose outcome is unknown, until the intent exists
// or the gateway has refused it. Any number of processes may run it at once.
type Completer struct {
	Intents *Intents
	Worker  *pg.DB // worker role: finds what is left
	Log     *slog.Logger

	failing failing
}

// Run resumes what is left of all tenants. One that fails is tried again later.
func (a *Completer) Run(ctx context.Context) error {
	left := workers[store.IntentDue]{
		db: a.Worker, now: a.Intents.Now, find: store.IntentsLeft, home: func(row store.IntentDue) store.Home { return row.Home },
		do: func(ctx context.Context, row store.IntentDue) error {
			if err := a.complete(ctx, row.ID); err != nil {
				return fmt.Errorf("payment intent %s: %w", row.ID, err)
			}
			return nil
		},
		report: a.failing.report(a.Log, "payment intents that cannot be completed"),
	}
	if err := left.run(ctx); err != nil {
		return fmt.Errorf("payment intents that are left: %w", err)
	}
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
	err = a.Intents.holding(ctx, operationOf(id), func(ctx context.Context, tx pg.Tx) (nothing bool, err error) {
		if p, err = store.IntentForUpdate(ctx, tx, id); err != nil {
			return false, err
		}
		real := a.Intents.Now()
		if ok = p.Status == domain.Creating && !p.Call.Leased(real); !ok {
			return false, nil
		}
		p.Call = p.Call.Resume(real)
		return false, store.SaveCall(ctx, tx, p)
	})
	return p, ok, err
}

// find looks for the intent at the gateway; when there is none, the attempt had no effect and another one begins.
func (a *Completer) find(ctx context.Context, account domain.Account, p domain.Intent) error {
	found, err := a.Intents.Gateway.Find(ctx, account, p.ID, p.CreatedAt)
	if err != nil {
		return a.leave(ctx, p, err)
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
		return a.leave(ctx, p, cause)
	}
	return a.refuse(ctx, p)
}

// refuse ends the attempt of an intent that the gateway does not make.
func (a *Completer) refuse(ctx context.Context, p domain.Intent) error {
	return a.Intents.holding(ctx, operationOf(p.ID), func(ctx context.Context, tx pg.Tx) (nothing bool, err error) {
		current, err := store.IntentForUpdate(ctx, tx, p.ID)
		if err != nil || current.Status != domain.Creating || current.Call.Attempt != p.Call.Attempt {
			return false, err
		}
		current.Status, current.Call.LeasedUntil = domain.Refused, nil
		return true, store.SaveCall(ctx, tx, current)
	})
}

// leave leaves a call whose outcome is still unknown for a time that grows with its age; then the same attempt is made again. It gives
// up one whose account has refused its keys for days.
func (a *Completer) leave(ctx context.Context, p domain.Intent, cause error) error {
	real := a.Intents.Now()
	var refused *domain.RefusedError
	if errors.As(cause, &refused) && refused.Unread && p.Call.Hopeless(real) {
		a.Log.ErrorContext(ctx, "a payment intent is given up: its account refuses the keys", slog.String("intent", p.ID.String()),
			slog.String("account", p.AccountID.String()), slog.Any("error", cause))
		return a.refuse(ctx, p)
	}
	return errors.Join(cause, a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return store.LeaveCall(ctx, tx, p, real.Add(jitter(domain.Pause(p.Call.BegunAt, real))))
	}))
}
