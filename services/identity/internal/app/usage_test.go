package app_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// source measures usage that depends on the tenant and the mode, at most `most` tenants a call.
type source struct {
	most      int
	unsettled atomic.Bool
	err       atomic.Pointer[error]
	calls     atomic.Int64
	measure   func(u *domain.Usage)
	waits     []domain.Waiting
}

func (s *source) Measure(_ context.Context, day time.Time, tenants []ids.Tenant) (list []domain.Usage, _ error) {
	s.calls.Add(1)
	time.Sleep(2 * time.Millisecond) // so that processes overlap
	if err := s.err.Load(); err != nil {
		return nil, *err
	}
	if s.unsettled.Load() {
		return nil, nil
	}
	for _, tenant := range tenants[:min(len(tenants), s.most)] {
		for _, live := range []bool{true, false} {
			u := domain.Usage{TenantID: tenant, Livemode: live, Day: day}
			s.measure(&u)
			list = append(list, u)
		}
	}
	return list, nil
}

func (s *source) Current(ctx context.Context, day time.Time) (list []domain.Usage, _ error) {
	if err := s.err.Load(); err != nil {
		<-ctx.Done()
		return nil, *err
	}
	for _, live := range []bool{true, false} {
		u := domain.Usage{TenantID: caller.FromContext(ctx).Tenant, Livemode: live, Day: day}
		s.measure(&u)
		u.StoredRows, u.StoredBytes = nil, nil
		list = append(list, u)
	}
	return list, nil
}

func (s *source) Work(ctx context.Context) ([]domain.Waiting, error) {
	if err := s.err.Load(); err != nil {
		<-ctx.Done()
		return nil, *err
	}
	return s.waits, nil
}

// number is different for each tenant and mode.
func number(u domain.Usage) int64 {
	id := u.TenantID.UUID()
	n := int64(id[15]) + 1
	if u.Livemode {
		n += 1000
	}
	return n
}

func newMetering(w *world, now time.Time) (m *app.Metering, first, second *source) {
	first = &source{most: 7, measure: func(u *domain.Usage) {
		u.Bookings, u.StoredRows, u.StoredBytes = number(*u), new(int64(2)), new(int64(10))
		u.Payments = []domain.Volume{{Currency: "USD", Charged: 5, Refunded: 1}}
	}}
	second = &source{most: 1000, measure: func(u *domain.Usage) {
		u.Events, u.StoredRows, u.StoredBytes, u.RequestsRead = 2*number(*u), new(int64(3)), new(int64(20)), 9
		u.Payments = []domain.Volume{{Currency: "USD", Disputed: 2}, {Currency: "EUR", Charged: 7}}
	}}
	identity := *w.App
	identity.Now = func() time.Time { return now }
	return &app.Metering{App: &identity, Sources: map[string]app.UsageSource{"one": first, "two": second}}, first, second
}

// began begins the recording with a day and creates tenants that existed on it.
func (w *world) began(t *testing.T, day time.Time, tenants int) {
	t.Helper()
	w.exec(t, `insert into usage_collections (day) values ($1)`, day)
	for range tenants {
		w.exec(t, `insert into tenants (tenant_id, slug, name, timezone, currency, created_at, updated_at)
			values ($1::uuid, $1::uuid::text, 'n', 'UTC', 'EUR', $2, $2)`, ids.New[ids.TenantPrefix]().UUID(), day.Add(23*time.Hour+59*time.Minute))
	}
}

var usageDay = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// events returns the events about recorded days.
func (w *world) usageEvents(t *testing.T) int64 {
	t.Helper()
	return int64(w.count(t, `select count(*) from outbox where position('usage.recorded'::bytea in message) > 0`))
}

// Several processes that record the same day at once, because each believes that the lease of the others has expired, write one row for
// each tenant and mode, with the sum of all services, and one event. Another run changes nothing.
func TestUsageIsRecordedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const tenants = 230 // three pages
	w.began(t, usageDay, tenants)
	over := usageDay.Add(24*time.Hour + domain.UsageSettles)
	m, _, _ := newMetering(w, over)
	var wg sync.WaitGroup
	var clock atomic.Int64
	for range 6 {
		wg.Go(func() {
			m, _, _ := newMetering(w, over)
			m.Now = func() time.Time { return over.Add(time.Duration(clock.Add(1)) * 2 * time.Minute) } // each lease has expired for the next
			if err := m.RecordUsage(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := m.RecordUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, more, err := m.UsageOfDay(t.Context(), usageDay, store.UsageRow{}, 1000)
	if err != nil || more || len(list) != 2*tenants {
		t.Fatalf("%d rows, more %v, %v", len(list), more, err)
	}
	for _, u := range list {
		volumes := []domain.Volume{{Currency: "EUR", Charged: 7}, {Currency: "USD", Charged: 5, Refunded: 1, Disputed: 2}}
		if u.Bookings != number(u) || u.Events != 2*number(u) || *u.StoredRows != 5 || *u.StoredBytes != 30 || u.RequestsRead != 9 || !slices.Equal(u.Payments, volumes) {
			t.Fatalf("recorded %+v", u)
		}
	}
	if n := w.usageEvents(t); n != 1 {
		t.Errorf("%d events", n)
	}
	var message []byte
	if err := w.owner.QueryRow(t.Context(), `select message from outbox where position('usage.recorded'::bytea in message) > 0`).Scan(&message); err != nil {
		t.Fatal(err)
	}
	e, err := outbox.Decode(message)
	if err != nil || !e.GetInternal() || e.GetTenantId() != domain.PlatformTenant.String() || e.GetResourceVersion() != 20513 {
		t.Errorf("event %v, %v", e, err)
	}
	if want := `{"object":"usage_recorded","day":"2026-03-01","rows":460,"recorded_at":"2026-03-02T0`; !strings.HasPrefix(string(e.GetObject()), want) {
		t.Errorf("object %s, want %s…", e.GetObject(), want)
	}
}

// A day without tenants has no rows, and one event even if several processes complete it at once.
func TestUsageWithoutTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began(t, usageDay, 0)
	over := usageDay.Add(24*time.Hour + domain.UsageSettles)
	var clock atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m, _, _ := newMetering(w, over)
			m.Now = func() time.Time { return over.Add(time.Duration(clock.Add(1)) * 2 * time.Minute) }
			if err := m.RecordUsage(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.usageEvents(t); n != 1 {
		t.Errorf("%d events", n)
	}
}

// A process that ends between two pages loses nothing: the next run continues. No row is readable before the day is complete.
func TestUsageContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began(t, usageDay, 150)
	now := usageDay.Add(30 * time.Hour)
	m, first, _ := newMetering(w, now)
	boom := errors.New("away")
	first.measure = func(u *domain.Usage) {
		if first.calls.Load() > 100/7+1 { // the second page
			first.err.Store(&boom)
		}
		u.Bookings = 1
	}
	if err := m.RecordUsage(t.Context()); !errors.Is(err, boom) {
		t.Fatalf("the service is away: %v", err)
	}
	if n := w.count(t, `select count(*) from usage_days`); n != 200 {
		t.Fatalf("%d rows of the first page", n)
	}
	if _, _, err := m.UsageOfDay(t.Context(), usageDay, store.UsageRow{}, 10); !errors.Is(err, domain.ErrUsageNotRecorded) {
		t.Errorf("a day that is not complete: %v", err)
	}
	some, through, err := m.TenantUsage(t.Context(), w.first(t), usageDay, usageDay, nil)
	if err != nil || len(some) != 0 || through != nil || w.usageEvents(t) != 0 {
		t.Errorf("a tenant of a day that is not complete: %v through %v, %v", some, through, err)
	}
	first.err.Store(nil)
	first.calls.Store(-1000)
	w.exec(t, `update usage_collections set leased_until = $1`, now.Add(time.Second)) // a process was killed
	if err := m.RecordUsage(t.Context()); err != nil || w.usageEvents(t) != 0 {
		t.Fatalf("another process has the day: %v", err)
	}
	w.exec(t, `update usage_collections set leased_until = $1`, now)
	if err := m.RecordUsage(t.Context()); err != nil || w.usageEvents(t) != 1 {
		t.Fatalf("%v, %d events", err, w.usageEvents(t))
	}
	if n := w.count(t, `select sum(bookings)::int from usage_days`); n != 300 {
		t.Errorf("%d bookings, want 300", n)
	}
}

func (w *world) first(t *testing.T) (id ids.Tenant) {
	t.Helper()
	var text string
	if err := w.owner.QueryRow(t.Context(), `select tenant_id::text from tenants order by tenant_id limit 1`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	if err := id.Scan(text); err != nil {
		t.Fatal(err)
	}
	return id
}

// A day waits until its end, then for its settling, then for each service. The days are recorded in order, and a tenant has no row of
// the days before it was created.
func TestUsageWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began(t, usageDay, 1)
	next := usageDay.AddDate(0, 0, 1)
	w.exec(t, `insert into tenants (tenant_id, slug, name, timezone, currency, created_at, updated_at) values ($1::uuid, 'late', 'n', 'UTC', 'EUR', $2, $2)`,
		ids.New[ids.TenantPrefix]().UUID(), next)
	for _, c := range []struct {
		now       time.Time
		unsettled bool
		rows      int
	}{
		{next.Add(domain.UsageSettles - time.Microsecond), false, 0},
		{next.Add(domain.UsageSettles), true, 0},
		{next.Add(domain.UsageSettles), false, 2},
		{next.Add(24 * time.Hour), false, 2},
		{next.Add(24*time.Hour + domain.UsageSettles), false, 2 + 4},
		{next.Add(75 * time.Hour), false, 2 + 3*4}, // two days at once
	} {
		m, _, second := newMetering(w, c.now)
		second.unsettled.Store(c.unsettled)
		if err := m.RecordUsage(t.Context()); err != nil {
			t.Errorf("%s: %v", c.now, err)
		}
		if n := w.count(t, `select count(*) from usage_days`); n != c.rows {
			t.Errorf("%s: %d rows, want %d", c.now, n, c.rows)
		}
	}
}

// A service that does not respond is named, and the others' work is returned after the time limit.
func TestBackgroundWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, first, second := newMetering(w, time.Now())
	first.waits = []domain.Waiting{{Kind: "delivery", Livemode: true, Count: 3}}
	boom := errors.New("away")
	second.err.Store(&boom)
	start := time.Now()
	work, unavailable := m.BackgroundWork(t.Context(), ids.New[ids.TenantPrefix]())
	if len(work) != 1 || len(work["one"]) != 1 || !slices.Equal(unavailable, []string{"two"}) || time.Since(start) > 4*time.Second {
		t.Errorf("%v, unavailable %v after %s", work, unavailable, time.Since(start))
	}
}

// checked is a source that needs the platform's tenant as the caller.
type checked struct{ *source }

func (s checked) Measure(ctx context.Context, day time.Time, tenants []ids.Tenant) ([]domain.Usage, error) {
	if c := caller.FromContext(ctx); c.Tenant != domain.PlatformTenant {
		return nil, errors.New("wrong caller")
	}
	rows, err := s.source.Measure(ctx, day, tenants)
	if len(rows) > 0 {
		rows[0].TenantID = ids.New[ids.TenantPrefix]()
	}
	return rows, err
}

// Rows of a tenant that was not asked for are not recorded.
func TestUsageOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began(t, usageDay, 2)
	m, first, _ := newMetering(w, usageDay.AddDate(0, 0, 2))
	m.Sources["one"] = checked{first}
	if err := m.RecordUsage(t.Context()); err == nil || w.count(t, `select count(*) from usage_days`) != 0 {
		t.Errorf("recorded: %v", err)
	}
}
