package app_test

import (
	"context"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// slow is a source that measures until it is released or canceled.
type slow struct {
	*source
	began, ended chan struct{}
	release      chan struct{}
}

func newSlow(s *source) slow {
	return slow{s, make(chan struct{}, 1000), make(chan struct{}, 1000), make(chan struct{})}
}

func (s slow) Measure(ctx context.Context, day time.Time, tenants []ids.Tenant) ([]domain.Usage, error) {
	s.began <- struct{}{}
	defer func() { s.ended <- struct{}{} }()
	select {
	case <-s.release:
		return s.source.Measure(ctx, day, tenants)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// leased returns a process with a short lease, and its sources, which measure until they are released.
func leased(w *world, lease time.Duration) (m *app.Metering, one, two slow) {
	m, first, second := newMetering(w, time.Time{})
	m.Now, m.Lease = time.Now, lease
	one, two = newSlow(first), newSlow(second)
	m.Sources["one"], m.Sources["two"] = one, two
	return m, one, two
}

// beganPast begins the recording with a day that is due, after which no other day is due, and creates tenants.
func (w *world) beganPast(t *testing.T, tenants int) {
	t.Helper()
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2)
	w.began(t, day, tenants)
	w.exec(t, `insert into usage_collections (day, completed_at) select $1::date + n, now() from generate_series(1, 3) n`, day)
}

// leaseEnd returns when the lease of the day ends, as text.
func (w *world) leaseEnd(t *testing.T) (end string) {
	t.Helper()
	err := w.owner.QueryRow(t.Context(), `select coalesce(max(leased_until)::text, '') from usage_collections where completed_at is null`).Scan(&end)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// other waits until the lease has another end, and returns it.
func (w *world) other(t *testing.T, end string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if now := w.leaseEnd(t); now != end {
			return now
		}
	}
	t.Fatal("the lease is not renewed")
	return ""
}

// While the services measure for longer than the lease, the process renews it. Another replica measures nothing meanwhile. All services are
// asked at the same time.
func TestOnlyOneReplicaMeasures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.beganPast(t, 120) // two pages
	first, one, two := leased(w, time.Second)
	second, otherOne, otherTwo := leased(w, time.Second)
	done := make(chan error, 1)
	go func() { done <- first.RecordUsage(t.Context()) }()
	<-one.began
	<-two.began
	end := w.leaseEnd(t)
	for range 6 { // one and a half leases
		end = w.other(t, end)
		if err := second.RecordUsage(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(one.release)
	close(two.release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(otherOne.began)+len(otherTwo.began) > 0 {
		t.Errorf("the other replica made %d calls", len(otherOne.began)+len(otherTwo.began))
	}
	if rows, events := w.count(t, `select count(*) from usage_days`), w.usageEvents(t); rows != 240 || events != 1 {
		t.Errorf("%d rows, %d events", rows, events)
	}
}

// A process that cannot renew its lease, as if it had crashed while it measured, stops. Another replica records the day after the lease.
func TestAnotherReplicaContinuesAfterTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.beganPast(t, 20)
	first, one, two := leased(w, 400*time.Millisecond)
	worker, err := pg.Open(t.Context(), w.db.WorkerURL, pg.Options{MaxConns: 2, Background: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Close)
	first.Worker = worker
	done := make(chan error, 1)
	go func() { done <- first.RecordUsage(t.Context()) }()
	<-one.began
	<-two.began
	worker.Close()
	second, _, _ := newMetering(w, time.Time{})
	second.Now, second.Lease = time.Now, 400*time.Millisecond
	for deadline := time.Now().Add(20 * time.Second); w.usageEvents(t) == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err := second.RecordUsage(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	<-one.ended // the first process gives up without its database
	<-two.ended
	if err := <-done; err == nil {
		t.Error("the first process released its lease without its database")
	}
	if rows, events := w.count(t, `select count(*) from usage_days`), w.usageEvents(t); rows != 40 || events != 1 {
		t.Errorf("%d rows, %d events", rows, events)
	}
}

// A process whose day another one has taken stops measuring, and leaves the lease of the other one as it is.
func TestALostLeaseEndsTheMeasurement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.beganPast(t, 20)
	first, one, two := leased(w, time.Second)
	done := make(chan error, 1)
	go func() { done <- first.RecordUsage(t.Context()) }()
	<-one.began
	<-two.began
	w.exec(t, `update usage_collections set leased_until = '2100-01-01' where completed_at is null`)
	<-one.ended
	<-two.ended
	if err := <-done; err != nil {
		t.Error(err)
	}
	if end := w.leaseEnd(t); end[:4] != "2100" {
		t.Errorf("the lease of the other process ends at %s", end)
	}
}
