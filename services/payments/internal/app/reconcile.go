package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// Lister lists the gateway's objects.
type Lister interface {
	// List reads the page after the cursor, with the objects created since a time, newest first.
	List(ctx context.Context, a domain.Account, stage domain.Stage, since time.Time, after string) (domain.ListPage, error)
	// Get reads an object of a kind by its id. It returns nil if the gateway does not know the object.
	Get(ctx context.Context, a domain.Account, kind domain.Stage, id string) (*domain.Listed, error)
}

const (
	accountsAtOnce  = 4               // accounts that one process compares at the same time
	accountsFound   = 100             // accounts that one query returns
	callsAtOnce     = 8               // parallel calls for one account
	openPage        = 100             // open objects per page
	timeSlice       = time.Minute     // time after which other accounts are compared
	reconcilerLease = 5 * time.Minute // longer than a page takes, without the grace period
)

// Reconciler compares the objects of each account at the gateway with the service's own rows. It repairs a difference by reading
// the object as after an event. Normally it finds no difference. Any number of processes may run it at the same time. One process
// holds an account, and another one continues with the next page if that process crashes.
type Reconciler struct {
	Intents  *Intents
	Refunds  *Refunds
	Gateways *Accounts
	Wake     func() // makes Events.Run look for events
	Lister   Lister
	Worker   *pg.DB // worker role: finds due accounts
	Log      *slog.Logger
	// Interval is the time between the starts of two runs of an account. Grace is how long a difference has to last before it
	// counts, because its event may still arrive.
	Interval, Grace time.Duration
}

// Run compares the due accounts of all tenants, including disconnected ones.
func (a *Reconciler) Run(ctx context.Context) error {
	for full := true; full && ctx.Err() == nil; {
		var found []store.ReconciliationDue
		err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			if err := store.RegisterAccounts(ctx, tx, a.Intents.Now()); err != nil {
				return err
			}
			found, err = store.ReconciliationsDue(ctx, tx, a.Intents.Now(), accountsFound)
			return err
		})
		if err != nil {
			return fmt.Errorf("accounts that are to be compared: %w", err)
		}
		var steps errgroup.Group
		steps.SetLimit(accountsAtOnce)
		for _, due := range found {
			steps.Go(func() error {
				a.step(caller.With(ctx, caller.Service("payments", due.TenantID, caller.ModeOf(due.Livemode))), due.AccountID)
				return nil
			})
		}
		_ = steps.Wait() // no step returns an error
		full = len(found) == accountsFound
	}
	return nil
}

// step compares one account, from where the last process stopped. If that fails, a later step continues from there.
func (a *Reconciler) step(ctx context.Context, id domain.AccountID) {
	var run *domain.Reconciliation
	now := a.Intents.Now()
	err := a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		run, err = store.TakeReconciliation(ctx, tx, id, now, now.Add(a.lease()))
		return err
	})
	if err == nil && run == nil {
		return
	}
	if err == nil {
		err = a.compare(ctx, run)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrLeaseLost) {
		a.Log.WarnContext(ctx, "account not compared with the payment gateway; trying again", slog.String("account", id.String()), slog.Any("error", err))
	}
}

// compare runs through the stages, page by page. run contains the progress. A long comparison pauses so that other accounts are
// compared too.
func (a *Reconciler) compare(ctx context.Context, run *domain.Reconciliation) error {
	account, err := a.Intents.Accounts.Account(ctx, a.Intents.DB.Read(ctx), run.AccountID)
	if err != nil {
		return err
	}
	grace, end := a.Grace, time.Now().Add(timeSlice)
	for run.Stage != "" {
		last, found, err := a.page(ctx, account, run, grace)
		if err != nil {
			return errors.Join(err, a.postpone(ctx, *run, err))
		}
		if found > 0 { // an alert is raised anyway, so the other differences are repaired sooner
			grace = a.Grace / 10
		}
		if run.Tries, run.Cursor = 0, last; last == "" {
			*run = run.Advance()
		}
		if run.Stage == "" {
			break
		}
		due, pause := a.Intents.Now(), time.Now().After(end)
		if !pause {
			due = due.Add(a.lease())
		}
		if err := a.save(ctx, run, due, nil); err != nil || pause {
			return err
		}
	}
	if err := a.note(ctx, *run, account); err != nil {
		return errors.Join(err, a.postpone(ctx, *run, err))
	}
	return a.finish(ctx, *run)
}

// note writes whether the account's events arrive, and deletes the oldest events above their limit.
func (a *Reconciler) note(ctx context.Context, run domain.Reconciliation, account domain.Account) error {
	if err := a.Gateways.noteEvents(ctx, account.ID, run); err != nil {
		return err
	}
	for more := true; more; {
		err := a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			more, err = store.TrimEvents(ctx, tx, account.ID, domain.EventsRetained)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lease returns how long a process exclusively holds an account. Each page renews the lease.
func (a *Reconciler) lease() time.Duration { return a.Grace + reconcilerLease }

// finish ends a run. The next one begins one interval after the start of this run.
func (a *Reconciler) finish(ctx context.Context, run domain.Reconciliation) error {
	now := a.Intents.Now()
	ended := run.Ended()
	return a.save(ctx, &ended, run.StartedAt.Add(a.Interval), &now)
}

// postpone leaves a failed run to a later step. An account whose keys are refused waits for the next run. If the gateway no longer
// knows the start of a page, the stage starts again from its first page.
func (a *Reconciler) postpone(ctx context.Context, run domain.Reconciliation, cause error) error {
	var refused *domain.RefusedError
	if errors.As(cause, &refused) && refused.Unread {
		return a.finish(ctx, run)
	}
	if refused != nil {
		run.Cursor = ""
	}
	wait := min(time.Second<<min(max(run.Tries, 1), 12), a.Interval)
	return a.save(context.WithoutCancel(ctx), &run, a.Intents.Now().Add(wait), nil)
}

// save writes the progress of a run and renews its lease. It returns store.ErrLeaseLost if the run no longer holds the account.
func (a *Reconciler) save(ctx context.Context, run *domain.Reconciliation, due time.Time, finished *time.Time) error {
	var until time.Time
	err := a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		until, err = store.SaveReconciliation(ctx, tx, *run, due, finished)
		return err
	})
	if err == nil {
		run.Until = until
	}
	return err
}

// difference is a listed object that differs from the service's own state.
type difference struct {
	domain.Listed

	kind  domain.DifferenceKind
	known domain.Known
}

// page compares a page and repairs it. It returns the start of the next page, "" after the last one, and the number of differences.
// It checks each difference again after the grace period. A difference counts only if the gateway still reports the same state and
// the difference remains.
func (a *Reconciler) page(ctx context.Context, account domain.Account, run *domain.Reconciliation, grace time.Duration) (last string, found int, err error) {
	page, suspects, err := a.look(ctx, account, *run)
	if err != nil {
		return "", 0, err
	}
	if len(suspects) > 0 {
		select {
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-time.After(grace):
		}
		var again map[string]difference
		if _, again, err = a.look(ctx, account, *run); err != nil {
			return "", 0, err
		}
		for id, first := range suspects {
			if second, ok := again[id]; !ok || second.Listed != first.Listed {
				delete(suspects, id)
			}
		}
		if err := a.repair(ctx, account, run.Stage, suspects); err != nil {
			return "", 0, err
		}
	}
	if run.Stage == domain.StageEvents {
		run.EventsSeen, run.EventsMissed = run.EventsSeen+page.received, run.EventsMissed+len(suspects)
	}
	if page.More {
		last = page.Last
	}
	return last, len(suspects), nil
}

// looked is a page with the number of its events that were received.
type looked struct {
	domain.ListPage

	received int
}

// look reads a page and returns the differences by the gateway's id.
func (a *Reconciler) look(ctx context.Context, account domain.Account, run domain.Reconciliation) (looked, map[string]difference, error) {
	listed, err := a.list(ctx, account, run)
	page := looked{ListPage: listed}
	if err != nil || len(page.Items) == 0 {
		return page, nil, err
	}
	known, err := store.KnownOf(ctx, a.Intents.DB.Read(ctx), account.ID, run.Stage, page.Items)
	if err != nil {
		return page, nil, err
	}
	tenant, differ := caller.FromContext(ctx).Tenant.String(), map[string]difference{}
	for i, l := range page.Items {
		if known[i].Received {
			page.received++
		}
		if kind := run.Stage.Compare(l, known[i], tenant); kind != "" {
			differ[l.ID] = difference{l, kind, known[i]}
		}
	}
	return page, differ, nil
}

// list reads a page either from a list of the gateway, or of the service's own open objects. It requests the latter from the
// gateway one by one.
func (a *Reconciler) list(ctx context.Context, account domain.Account, run domain.Reconciliation) (domain.ListPage, error) {
	if !run.Stage.Open() {
		return a.Lister.List(ctx, account, run.Stage, run.Since(), run.Cursor)
	}
	ids, err := store.OpenObjects(ctx, a.Intents.DB.Read(ctx), account.ID, run.Stage, run.Since(), run.Cursor, openPage)
	if err != nil || len(ids) == 0 {
		return domain.ListPage{}, err
	}
	found := make([]*domain.Listed, len(ids))
	var calls errgroup.Group
	calls.SetLimit(callsAtOnce)
	for i, id := range ids {
		calls.Go(func() (err error) {
			found[i], err = a.Lister.Get(ctx, account, run.Stage.Kind(), id)
			return err
		})
	}
	err = calls.Wait()
	page := domain.ListPage{Last: ids[len(ids)-1], More: len(ids) == openPage}
	for _, l := range found {
		if l != nil {
			page.Items = append(page.Items, *l)
		}
	}
	return page, err
}

// repair reads each object that differs again, and counts it. If the gateway or the database is unavailable, the page is compared
// again later.
func (a *Reconciler) repair(ctx context.Context, account domain.Account, stage domain.Stage, list map[string]difference) error {
	var repairs errgroup.Group
	repairs.SetLimit(callsAtOnce)
	for _, d := range list {
		repairs.Go(func() error {
			var err error
			if d.kind != domain.DifferentUnknown || stage.Kind() == domain.StageIntents {
				err = a.repairOne(ctx, account, stage.Kind(), d)
			}
			if passing(err) {
				return fmt.Errorf("repair %s: %w", d.ID, err)
			}
			if d.kind == domain.DifferentEvent && account.Events == domain.EventsMissing { // no event arrives, which the account already shows
				return nil
			}
			a.Intents.Metrics.difference(d.kind)
			a.Log.ErrorContext(ctx, "object differs between the payment gateway and the platform", slog.String("kind", string(d.kind)), slog.String("object", d.ID),
				slog.String("intent", string(d.Intent)), slog.String("account", account.ID.String()), slog.String("gateway_status", d.Status),
				slog.String("status", string(d.known.Intent.Status)), slog.Any("error", err))
			return nil
		})
	}
	return repairs.Wait()
}

// passing reports whether an error affects the gateway or the database as a whole, and not only one object.
func passing(err error) bool {
	var refused *domain.RefusedError
	var own *apperr.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &own):
		return errors.Is(err, domain.ErrEventsWaiting)
	case errors.As(err, &refused):
		return refused.Unread
	default:
		return pg.Code(err) == "" || pg.Unavailable(err)
	}
}

func (a *Reconciler) repairOne(ctx context.Context, account domain.Account, stage domain.Stage, d difference) error {
	if d.kind == domain.DifferentEvent {
		return a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			tx.AfterCommit(a.Wake)
			return store.ReceiveEvent(ctx, tx, d.Event(account.ID), a.Intents.Now())
		})
	}
	if d.known.Intent.ID.IsZero() {
		if err := a.adopt(ctx, account, d.Listed); err != nil {
			return err
		}
	}
	p, err := store.Intent(ctx, a.Intents.DB.Read(ctx), d.Intent)
	if err != nil {
		return err
	}
	p.EverDisputed = p.EverDisputed || stage == domain.StageDisputes
	if _, err := a.Intents.Refresh(ctx, account, p); err != nil || stage != domain.StageRefunds {
		return err
	}
	return a.Refunds.Refresh(ctx, account, p, d.ID)
}

// adopt links an intent that the gateway created to a row that was recorded as refused. After a restore, the row may be lost. Then
// adopt writes it again from what the gateway knows.
func (a *Reconciler) adopt(ctx context.Context, account domain.Account, l domain.Listed) error {
	row, err := ids.Parse[domain.IntentPrefix](l.Row)
	if err != nil {
		return domain.ErrIntentNotFound.WithCause(err)
	}
	snapshot, err := a.Intents.Gateway.Read(ctx, account, domain.Intent{GatewayID: l.Intent})
	if err != nil {
		return err
	}
	return a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		p, err := store.IntentForUpdate(ctx, tx, row)
		if errors.Is(err, domain.ErrIntentNotFound) {
			if p, err = domain.Adopted(row, account.ID, snapshot); err == nil {
				p, err = store.InsertIntent(ctx, tx, p)
			}
		}
		if err != nil || p.Status != domain.Refused {
			return err
		}
		_, err = a.Intents.writeCreated(ctx, tx, row, snapshot)
		return err
	})
}
