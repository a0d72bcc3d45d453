package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

// Owner is a tenant and a mode.
type Owner struct {
	TenantID ids.Tenant
	Livemode bool
}

// Outside returns a condition that excludes the rows of the owners in $1 and $2, the arguments that Owners returns.
func Outside(table string) string {
	return ` and not exists (select from unnest($1::uuid[], $2::boolean[]) h (tenant_id, livemode)
		where h.tenant_id = ` + table + `.tenant_id and h.livemode = ` + table + `.livemode)`
}

// Owners returns the arguments of Outside.
func Owners(list []Owner) (tenants [][16]byte, modes []bool) {
	tenants, modes = make([][16]byte, len(list)), make([]bool, len(list))
	for i, h := range list {
		tenants[i], modes[i] = h.TenantID.UUID(), h.Livemode
	}
	return tenants, modes
}

// Find reads up to limit rows of all tenants and modes that are due by a time, the oldest first. It skips the owners in except. tx has the
// worker role.
type Find[T any] = func(ctx context.Context, tx pg.Tx, by time.Time, except []Owner, limit int) ([]T, error)

// FindDue returns a Find for a statement up to its last condition. $3 is the time, alias that of the table with the owners. T has an Owner
// and the selected columns.
func FindDue[T any](sql, alias, order string) Find[T] {
	sql += Outside(alias) + ` order by ` + order + ` limit $4`
	return func(ctx context.Context, tx pg.Tx, by time.Time, except []Owner, limit int) ([]T, error) {
		tenants, modes := Owners(except)
		return pg.Many(ctx, tx, pgx.RowToStructByName[T], sql, tenants, modes, by, limit)
	}
}

const (
	dueAtOnce    = 100                    // rows that a worker reads at a time
	ownerWorkers = 32                     // rows of one tenant and mode that are processed at the same time: fewer than an account's calls
	allWorkers   = 256                    // rows that a worker processes at the same time
	lookEvery    = 100 * time.Millisecond // how often the worker looks for new rows while it processes others
	restFor      = time.Second            // how long a row that stays due is not retried
	reportEvery  = time.Minute            // how often failed rows are reported while others are still processed
	maxErrors    = 20                     // errors in one report
)

// Workers processes the due rows of all tenants. It processes the tenants and modes in parallel, so that a tenant whose account
// at the gateway does not respond delays no other tenant.
type Workers[T comparable] struct {
	// Service is the name of the service that processes the rows.
	Service string
	DB      *pg.DB // worker role
	// Find returns up to limit rows, the oldest first, without those of the tenants that have all their workers.
	Find  Find[T]
	Owner func(row T) Owner
	// Do processes a row. An UnderWay reports that another process holds the row, which is not a failure.
	Do  func(ctx context.Context, row T) error
	Now func() time.Time
	// Woken signals that a row became due. nil: there is no signal.
	Woken <-chan struct{}
	// Report receives the number of rows that failed since the last report, and the first of their errors.
	Report func(ctx context.Context, count int, errs []error)

	mu      sync.Mutex
	all     sync.WaitGroup
	running map[Owner]int
	begun   map[T]time.Time // start times of the rows that started recently and have not succeeded
	failed  int
	errs    []error
	ended   chan struct{}
}

// Run processes the rows that are due, and those that become due in the meantime.
func (w *Workers[T]) Run(ctx context.Context) error {
	w.running, w.begun, w.ended = map[Owner]int{}, map[T]time.Time{}, make(chan struct{}, 1)
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
			w.reportFailures(ctx)
		}
		if idle {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-w.ended:
		case <-w.Woken:
		case <-time.After(lookEvery):
		}
	}
}

// look starts to process due rows. more reports whether other rows may be able to start now.
func (w *Workers[T]) look(ctx context.Context) (more bool, err error) {
	full, places := w.full()
	if places <= 0 {
		return false, nil
	}
	var found []T
	err = w.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		found, err = w.Find(ctx, tx, w.Now(), full, dueAtOnce)
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

// full returns the tenants that use all their workers, and the number of workers available to the others.
func (w *Workers[T]) full() (list []Owner, places int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	places = allWorkers
	for owner, n := range w.running {
		places -= n
		if n >= ownerWorkers {
			list = append(list, owner)
		}
	}
	for row, at := range w.begun {
		if time.Since(at) >= restFor {
			delete(w.begun, row)
		}
	}
	return list, places
}

// reportFailures reports the failures since the last report.
func (w *Workers[T]) reportFailures(ctx context.Context) {
	w.mu.Lock()
	count, errs := w.failed, w.errs
	w.failed, w.errs = 0, nil
	w.mu.Unlock()
	w.Report(ctx, count, errs)
}

func (w *Workers[T]) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running) == 0
}

// begin processes a row in parallel with the others, unless it started recently or its tenant uses all its workers.
func (w *Workers[T]) begin(ctx context.Context, row T) bool {
	owner := w.Owner(row)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, lately := w.begun[row]; lately || w.running[owner] >= ownerWorkers {
		return false
	}
	w.running[owner]++
	w.begun[row] = time.Now()
	w.all.Go(func() {
		w.end(owner, row, Recovered(func() error {
			return w.Do(caller.With(ctx, caller.Service(w.Service, owner.TenantID, caller.ModeOf(owner.Livemode))), row)
		}))
	})
	return true
}

func (w *Workers[T]) end(owner Owner, row T, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var busy *UnderWay
	switch {
	case err == nil:
		delete(w.begun, row)
	case errors.As(err, &busy): // it can stay due while the other process locks it
	default:
		if w.failed++; w.failed <= maxErrors {
			w.errs = append(w.errs, err)
		}
	}
	waiting := w.running[owner] == ownerWorkers
	if w.running[owner]--; w.running[owner] == 0 {
		delete(w.running, owner)
	}
	if waiting || len(w.running) == 0 {
		select {
		case w.ended <- struct{}{}:
		default:
		}
	}
}

// Recovered turns a panic into an error, so that one row does not stop the processing of the others.
func Recovered(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// Failing is the number of rows that failed recently.
type Failing struct{ count int }

// Report logs how many rows fail whenever that changes.
func (f *Failing) Report(log *slog.Logger, text string) func(ctx context.Context, count int, errs []error) {
	return func(ctx context.Context, count int, errs []error) {
		if count != f.count && ctx.Err() == nil {
			log.WarnContext(ctx, text, slog.Int("count", count), slog.Any("error", errors.Join(errs...)))
		}
		f.count = count
	}
}
