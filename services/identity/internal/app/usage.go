package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// UsageSource measures the usage of tenants in one service. peers.Usage implements it.
type UsageSource interface {
	// Measure returns what the service recorded on a day, two rows for each of the first tenants. It returns no rows if writes of the
	// day can still come.
	Measure(ctx context.Context, day time.Time, tenants []ids.Tenant) ([]domain.Usage, error)
	// Current returns what the service recorded until now on a day for the caller's tenant, a row for each mode, without stored rows.
	Current(ctx context.Context, day time.Time) ([]domain.Usage, error)
	// Work returns what waits for the caller's tenant.
	Work(ctx context.Context) ([]domain.Waiting, error)
}

// Metering records the usage of all tenants, one day after the other. Any number of processes can run it: one has the lease of a day and
// renews it while services measure, and a page of tenants is recorded by the process that moves the day's cursor.
type Metering struct {
	*App

	Sources map[string]UsageSource // by service; each service with a database
	Lease   time.Duration          // after which another process continues a day, if a process was killed; 0: a minute
}

const (
	usagePage    = 100 // tenants that are recorded in one transaction
	usageLease   = time.Minute
	usageRenewal = 4 // a lease is renewed this many times in its duration
)

var (
	// errUnsettled reports that writes of the day can still come.
	errUnsettled = errors.New("it has not received everything of the day yet")
	// errUsageLease reports that another process can have the day.
	errUsageLease = errors.New("the lease of the day has expired")
)

// RecordUsage records all days that are over, one after the other. It leaves a day to a later call, without an error, if a service has
// not received everything of it yet, or if another process has taken the day.
func (m *Metering) RecordUsage(ctx context.Context) error {
	for {
		l, ok, err := m.leaseUsage(ctx)
		if err != nil || !ok {
			return err
		}
		done, err := m.recordLeased(ctx, l)
		if errors.Is(err, errUnsettled) || errors.Is(err, errUsageLease) {
			m.Log.InfoContext(ctx, "usage of a day not recorded; trying again", slog.Any("error", err))
			err = nil
		}
		if err != nil || !done {
			return errors.Join(err, l.release(context.WithoutCancel(ctx)))
		}
		m.Log.InfoContext(ctx, "usage recorded", slog.String("day", l.day.Day.Format(time.DateOnly)))
	}
}

// leaseUsage takes the lease of the next day. ok is false if no day is due, or another process has it.
func (m *Metering) leaseUsage(ctx context.Context) (l *dayLease, ok bool, err error) {
	var c domain.UsageCollection
	var until time.Time
	err = m.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		now := m.now()
		c, err = store.UsageCollectionForUpdate(ctx, tx, now)
		if errors.Is(err, domain.ErrUsageNotRecorded) { // another process has just completed the day
			return nil
		}
		if err != nil {
			return err
		}
		if ok = c.Due(now); !ok {
			return nil
		}
		until = m.leaseEnd()
		return store.LeaseUsageCollection(ctx, tx, c.Day, until)
	})
	return &dayLease{m: m, day: c, until: until}, ok, err
}

func (m *Metering) lease() time.Duration { return cmp.Or(m.Lease, usageLease) }

// leaseEnd returns the end of a lease that is taken now, in the precision of the database.
func (m *Metering) leaseEnd() time.Time { return m.now().Add(m.lease()).Truncate(time.Microsecond) }

// dayLease is the lease of a day that this process has. Its end in the database shows whether another process has taken the day since.
type dayLease struct {
	m   *Metering
	day domain.UsageCollection // as it was when the lease was taken

	mu    sync.Mutex
	until time.Time
}

// renew extends the lease. It returns errUsageLease if another process has taken the day.
func (l *dayLease) renew(ctx context.Context) error {
	return l.replace(ctx, func(ctx context.Context, tx pg.Tx, until time.Time) (bool, error) {
		return store.RenewUsageCollection(ctx, tx, l.day.Day, l.until, &until)
	})
}

// replace sets a new end in a transaction that reports whether the day still was this process's.
func (l *dayLease) replace(ctx context.Context, set func(ctx context.Context, tx pg.Tx, until time.Time) (bool, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := l.m.leaseEnd()
	err := l.m.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		mine, err := set(ctx, tx, until)
		if err == nil && !mine {
			err = errUsageLease
		}
		return err
	})
	if err == nil {
		l.until = until
	}
	return err
}

// release ends the lease if this process still has it.
func (l *dayLease) release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := store.RenewUsageCollection(ctx, tx, l.day.Day, l.until, nil)
		return err
	})
}

// maintain renews the lease until ctx ends. It returns when another process has taken the day, or the lease could not be renewed in time.
func (l *dayLease) maintain(ctx context.Context) error {
	every := time.NewTicker(l.m.lease() / usageRenewal)
	defer every.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		switch err := l.renew(ctx); {
		case err == nil:
			last = time.Now()
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errUsageLease), time.Since(last) >= l.m.lease():
			return errUsageLease
		}
	}
}

// recordLeased records a day while it renews its lease. It stops when the lease is lost.
func (m *Metering) recordLeased(ctx context.Context, l *dayLease) (done bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var renewals sync.WaitGroup
	renewals.Go(func() {
		if err := l.maintain(ctx); err != nil {
			cancel(err)
		}
	})
	done, err = m.recordDay(ctx, l)
	lost := context.Cause(ctx)
	cancel(nil)
	renewals.Wait()
	if !done && errors.Is(lost, errUsageLease) {
		return false, lost
	}
	return done, err
}

// recordDay records the tenants after the cursor, page by page, and completes the day. It returns false if another process does.
func (m *Metering) recordDay(ctx context.Context, l *dayLease) (done bool, err error) {
	for c := l.day; ; {
		var tenants []ids.Tenant
		err := m.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
			tenants, err = store.UsageTenants(ctx, tx, c.Cursor, c.Day.AddDate(0, 0, 1), usagePage)
			return err
		})
		if err != nil {
			return false, err
		}
		if len(tenants) == 0 {
			return m.completeDay(ctx, c)
		}
		rows, err := m.measure(ctx, c.Day, tenants)
		if err != nil {
			return false, err
		}
		last := tenants[len(tenants)-1]
		if err := l.savePage(ctx, c, last, rows); err != nil {
			return false, err
		}
		c.Cursor, c.Rows = last, c.Rows+int64(len(rows))
	}
}

// measure asks all services at the same time for each tenant, and adds up what they return.
func (m *Metering) measure(ctx context.Context, day time.Time, tenants []ids.Tenant) ([]domain.Usage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := make([][]domain.Usage, len(m.Sources))
	var services sync.WaitGroup
	for i, name := range slices.Sorted(maps.Keys(m.Sources)) {
		services.Go(func() {
			var err error
			if parts[i], err = measureService(ctx, m.Sources[name], day, tenants); err != nil {
				cancel(fmt.Errorf("the usage of %s waits for %s: %w", day.Format(time.DateOnly), name, err))
			}
		})
	}
	services.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	rows := noUsage(day, tenants)
	for i := range rows {
		for _, part := range parts {
			rows[i].Add(part[i])
		}
	}
	finish(rows, m.now())
	return rows, nil
}

// finish sets when the rows were measured.
func finish(rows []domain.Usage, measured time.Time) {
	for i := range rows {
		rows[i].MeasuredAt = measured
		if rows[i].Payments == nil {
			rows[i].Payments = []domain.Volume{}
		}
	}
}

// noUsage returns two rows for each tenant, one for each mode.
func noUsage(day time.Time, tenants []ids.Tenant) []domain.Usage {
	rows := make([]domain.Usage, 0, 2*len(tenants))
	for _, tenant := range tenants {
		rows = append(rows, domain.NoUsage(tenant, false, day), domain.NoUsage(tenant, true, day))
	}
	return rows
}

// errRows reports a response that does not have two rows for each of the first tenants.
var errRows = errors.New("it returned rows of other tenants")

// measureService returns what one service measures, in the order of noUsage. It may need several calls.
func measureService(ctx context.Context, from UsageSource, day time.Time, tenants []ids.Tenant) ([]domain.Usage, error) {
	ctx = scope(ctx, domain.PlatformTenant, caller.Live)
	to := noUsage(day, tenants)
	for done := 0; done < len(tenants); {
		part, err := from.Measure(ctx, day, tenants[done:])
		switch {
		case err != nil:
			return nil, err
		case len(part) == 0:
			return nil, errUnsettled
		case len(part)%2 != 0, len(part) > 2*(len(tenants)-done):
			return nil, errRows
		}
		if err := addUsage(to[2*done:2*done+len(part)], part); err != nil {
			return nil, err
		}
		done += len(part) / 2
	}
	return to, nil
}

// addUsage adds the measured rows to those of the same tenant and mode. It returns errRows if there are none.
func addUsage(to, measured []domain.Usage) error {
	for _, row := range measured {
		i := slices.IndexFunc(to, func(u domain.Usage) bool { return u.TenantID == row.TenantID && u.Livemode == row.Livemode })
		if i < 0 {
			return errRows
		}
		to[i].Add(row)
	}
	return nil
}

// savePage records the rows of a page. It returns errUsageLease if another process has recorded it.
func (l *dayLease) savePage(ctx context.Context, c domain.UsageCollection, last ids.Tenant, rows []domain.Usage) error {
	return l.replace(ctx, func(ctx context.Context, tx pg.Tx, until time.Time) (bool, error) {
		mine, err := store.AdvanceUsageCollection(ctx, tx, c, last, len(rows), until)
		if err != nil || !mine {
			return false, err
		}
		return true, store.InsertUsage(ctx, tx, rows)
	})
}

// completeDay completes the day and emits its event, unless another process has.
func (m *Metering) completeDay(ctx context.Context, c domain.UsageCollection) (mine bool, err error) {
	ctx = scope(ctx, domain.PlatformTenant, caller.Live)
	err = m.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		at := m.now()
		if mine, err = store.CompleteUsageCollection(ctx, tx, c, at); err != nil || !mine {
			return err
		}
		body, err := json.Marshal(view.UsageRecorded(c, at))
		if err != nil {
			return fmt.Errorf("usage event: %w", err)
		}
		return outbox.Emit(ctx, tx, m.Wake, usageRecorded(c.Day, body))
	})
	return mine, err
}

// BackgroundWork asks all services at the same time what waits for a tenant. A service that does not respond in time is in unavailable.
func (m *Metering) BackgroundWork(ctx context.Context, tenant ids.Tenant) (work map[string][]domain.Waiting, unavailable []string) {
	return queryServices(ctx, m, tenant, "background work", UsageSource.Work)
}

// maxWait is how long queryServices waits for the services.
const maxWait = 2 * time.Second

// queryServices calls all services at the same time about a tenant, and returns their responses by service. A service that does not respond
// in time is in unavailable.
func queryServices[T any](
	ctx context.Context, m *Metering, tenant ids.Tenant, about string, call func(UsageSource, context.Context) (T, error),
) (responses map[string]T, unavailable []string) {
	type response struct {
		service string
		body    T
		err     error
	}
	ctx, cancel := context.WithTimeout(scope(ctx, tenant, caller.Live), maxWait)
	defer cancel()
	all := make(chan response, len(m.Sources))
	for name, source := range m.Sources {
		go func() {
			body, err := call(source, ctx)
			all <- response{name, body, err}
		}()
	}
	responses = map[string]T{}
	for range m.Sources {
		r := <-all
		if r.err != nil {
			m.Log.WarnContext(ctx, about, slog.String("service", r.service), slog.Any("error", r.err))
			unavailable = append(unavailable, r.service)
			continue
		}
		responses[r.service] = r.body
	}
	slices.Sort(unavailable)
	return responses, unavailable
}
