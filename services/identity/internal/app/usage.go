package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
	// Work returns what waits for the caller's tenant.
	Work(ctx context.Context) ([]domain.Waiting, error)
}

// Metering records the usage of all tenants, one day after the other. Any number of processes can run it: one has the lease of a day,
// and a page of tenants is recorded by the process that moves the day's cursor.
type Metering struct {
	*App

	Sources map[string]UsageSource // by service; each service with a database
}

const (
	usagePage  = 100         // tenants that are recorded in one transaction
	usageLease = time.Minute // after which another process continues a day, if a process was killed
)

// errUnsettled reports that writes of the day can still come.
var errUnsettled = errors.New("it has not received everything of the day yet")

// RecordUsage records all days that are over, one after the other. It leaves a day to a later call, without an error, if a service has
// not received everything of it yet.
func (m *Metering) RecordUsage(ctx context.Context) error {
	for {
		c, ok, err := m.leaseUsage(ctx)
		if err != nil || !ok {
			return err
		}
		done, err := m.recordDay(ctx, c)
		if errors.Is(err, errUnsettled) {
			m.Log.InfoContext(ctx, "a day of usage waits", slog.Any("error", err))
			err = nil
		}
		if err != nil || !done {
			return errors.Join(err, m.releaseUsage(context.WithoutCancel(ctx), c))
		}
		m.Log.InfoContext(ctx, "usage recorded", slog.String("day", c.Day.Format(time.DateOnly)))
	}
}

// leaseUsage takes the lease of the next day. ok is false if no day is due, or another process has it.
func (m *Metering) leaseUsage(ctx context.Context) (c domain.UsageCollection, ok bool, err error) {
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
		until := now.Add(usageLease)
		return store.LeaseUsageCollection(ctx, tx, c.Day, &until)
	})
	return c, ok, err
}

func (m *Metering) releaseUsage(ctx context.Context, c domain.UsageCollection) error {
	return m.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.LeaseUsageCollection(ctx, tx, c.Day, nil) })
}

// recordDay records the tenants after the cursor, page by page, and completes the day. It returns false if another process does.
func (m *Metering) recordDay(ctx context.Context, c domain.UsageCollection) (done bool, err error) {
	for {
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
		mine, err := m.savePage(ctx, c, tenants[len(tenants)-1], rows)
		if err != nil || !mine {
			return false, err
		}
		c.Cursor, c.Rows = tenants[len(tenants)-1], c.Rows+int64(len(rows))
	}
}

// measure asks each service for each tenant, and adds up what they return.
func (m *Metering) measure(ctx context.Context, day time.Time, tenants []ids.Tenant) ([]domain.Usage, error) {
	rows := make([]domain.Usage, 0, 2*len(tenants))
	for _, tenant := range tenants {
		rows = append(rows, domain.NoUsage(tenant, false, day), domain.NoUsage(tenant, true, day))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Sources)) {
		if err := m.measureService(ctx, m.Sources[name], day, tenants, rows); err != nil {
			return nil, fmt.Errorf("the usage of %s waits for %s: %w", day.Format(time.DateOnly), name, err)
		}
	}
	measured := m.now()
	for i := range rows {
		rows[i].MeasuredAt = measured
		if rows[i].Payments == nil {
			rows[i].Payments = []domain.Volume{}
		}
	}
	return rows, nil
}

// errRows reports a response that does not have two rows for each of the first tenants.
var errRows = errors.New("it returned rows of other tenants")

// measureService adds what one service returns, which may need several calls.
func (m *Metering) measureService(ctx context.Context, from UsageSource, day time.Time, tenants []ids.Tenant, to []domain.Usage) error {
	ctx = scope(ctx, domain.PlatformTenant, caller.Live)
	for done := 0; done < len(tenants); {
		part, err := from.Measure(ctx, day, tenants[done:])
		switch {
		case err != nil:
			return err
		case len(part) == 0:
			return errUnsettled
		case len(part)%2 != 0, len(part) > 2*(len(tenants)-done):
			return errRows
		}
		for _, row := range part {
			i := slices.IndexFunc(to[2*done:2*done+len(part)], func(u domain.Usage) bool { return u.TenantID == row.TenantID && u.Livemode == row.Livemode })
			if i < 0 {
				return errRows
			}
			to[2*done+i].Add(row)
		}
		done += len(part) / 2
	}
	return nil
}

// savePage records the rows of a page, unless another process has.
func (m *Metering) savePage(ctx context.Context, c domain.UsageCollection, last ids.Tenant, rows []domain.Usage) (mine bool, err error) {
	err = m.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		mine, err = store.AdvanceUsageCollection(ctx, tx, c, last, len(rows), m.now().Add(usageLease))
		if err != nil || !mine {
			return err
		}
		return store.InsertUsage(ctx, tx, rows)
	})
	return mine, err
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
	type response struct {
		service string
		work    []domain.Waiting
		err     error
	}
	ctx, cancel := context.WithTimeout(scope(ctx, tenant, caller.Live), workPatience)
	defer cancel()
	responses := make(chan response, len(m.Sources))
	for name, source := range m.Sources {
		go func() {
			list, err := source.Work(ctx)
			responses <- response{name, list, err}
		}()
	}
	work = map[string][]domain.Waiting{}
	for range m.Sources {
		r := <-responses
		if r.err != nil {
			m.Log.WarnContext(ctx, "background work", slog.String("service", r.service), slog.Any("error", r.err))
			unavailable = append(unavailable, r.service)
			continue
		}
		work[r.service] = r.work
	}
	slices.Sort(unavailable)
	return work, unavailable
}

// workPatience is how long BackgroundWork waits for a service.
const workPatience = 2 * time.Second
