package app_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// due is what a process reports of erasures and days of usage that are due: a number, and the age of the oldest one in seconds.
type due struct {
	closing, erasing, days          float64
	closingAge, erasingAge, daysAge float64
}

// due measures like a process that has just started, at a time.
func (w *world) due(t *testing.T, now time.Time) (d due) {
	t.Helper()
	reg := prometheus.NewRegistry()
	if err := app.NewUnfinished(w.db.Worker, func() time.Time { return now }, reg).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	to := map[string]*float64{
		"tenant_erasures_due closing": &d.closing, "tenant_erasures_due_oldest_seconds closing": &d.closingAge,
		"tenant_erasures_due erasing": &d.erasing, "tenant_erasures_due_oldest_seconds erasing": &d.erasingAge,
		"usage_days_due": &d.days, "usage_days_due_oldest_seconds": &d.daysAge,
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			if to[name] == nil {
				t.Fatalf("unexpected series %s", name)
			}
			*to[name] = math.Round(m.GetGauge().GetValue())
			delete(to, name)
		}
	}
	if len(to) > 0 {
		t.Fatalf("%d series are missing", len(to))
	}
	return d
}

// since returns the age at a time, in seconds, of what is as old as the value of a query.
func (w *world) since(t *testing.T, now time.Time, sql string, args ...any) float64 {
	t.Helper()
	var from time.Time
	if err := w.owner.QueryRow(t.Context(), sql, args...).Scan(&from); err != nil {
		t.Fatal(err)
	}
	return math.Round(now.Sub(from).Seconds())
}

// An erasure is reported from the moment when it is due until it has ended, while a service delays it or refuses it. Failed attempts do
// not change its age.
func TestErasuresThatAreDueAreMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	w.ClosingPeriod = time.Hour
	if _, _, err := w.ActOnTenant(t.Context(), cli, other.ID, domain.CloseTenant, "The contract has ended."); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if d := w.due(t, now); d != (due{}) {
		t.Fatalf("before the time of a closing tenant: %+v", d)
	}
	w.close(t, tenant.ID)
	one := &service{wait: "Two payments are open."}
	services := map[string]app.ErasureService{"one": one, "refuses": &failing{&service{}}}
	if err := w.erasures(services).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, later := range []time.Duration{time.Minute, 50 * time.Minute} {
		now := time.Now().Add(later)
		want := due{closing: 1, closingAge: w.since(t, now, `select erase_at from tenants where tenant_id = $1`, tenant.ID)}
		if d := w.due(t, now); d != want || d.closingAge < later.Seconds() {
			t.Errorf("payments are open, after %s: %+v, want %+v", later, d, want)
		}
	}
	if d := w.due(t, now.Add(2*time.Hour)); d.closing != 2 {
		t.Errorf("two closing tenants are due: %+v", d)
	}
	one.wait = ""
	for attempt := range 3 {
		w.exec(t, `update tenant_erasures set leased_until = '-infinity'`) // as if its time were over
		if err := w.erasures(services).Run(t.Context()); !errors.Is(err, errDown) {
			t.Fatalf("a service refuses the erasure: %v", err)
		}
		later := time.Duration(attempt+1) * 10 * time.Minute
		now := time.Now().Add(later)
		want := due{erasing: 1, erasingAge: w.since(t, now, `select started_at from tenant_erasures`)}
		if d := w.due(t, now); d != want || d.erasingAge < later.Seconds() {
			t.Errorf("refused, after %s: %+v, want %+v", later, d, want)
		}
	}
	services["refuses"] = &service{}
	w.exec(t, `update tenant_erasures set leased_until = '-infinity'`)
	if err := w.erasures(services).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := w.due(t, now.Add(30*time.Minute)); d != (due{}) {
		t.Errorf("after the erasure: %+v", d)
	}
}

// A day of usage is reported from the moment when it is due until it is recorded, while a service delays it.
func TestUsageThatIsDueIsMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	over := usageDay.Add(24*time.Hour + domain.UsageSettles)
	if d := w.due(t, over); d != (due{}) {
		t.Errorf("before the first day: %+v", d)
	}
	w.began(t, usageDay, 1)
	if d := w.due(t, over.Add(-time.Second)); d != (due{}) {
		t.Errorf("before the day is due: %+v", d)
	}
	m, _, second := newMetering(w, over.Add(50*time.Hour))
	second.unsettled.Store(true)
	for _, c := range []struct {
		later time.Duration
		want  due
	}{
		{time.Hour, due{days: 1, daysAge: 3600}},
		{24*time.Hour - time.Second, due{days: 1, daysAge: 86399}},
		{50 * time.Hour, due{days: 3, daysAge: 180000}},
	} {
		if err := m.RecordUsage(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := w.due(t, over.Add(c.later)); d != c.want {
			t.Errorf("a service has not received everything, after %s: %+v, want %+v", c.later, d, c.want)
		}
	}
	second.unsettled.Store(false)
	if err := m.RecordUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := w.due(t, over.Add(50*time.Hour)); d != (due{}) {
		t.Errorf("three days are recorded: %+v", d)
	}
	for range 2 {
		if d := w.due(t, over.Add(73*time.Hour)); d != (due{days: 1, daysAge: 3600}) {
			t.Errorf("the next day: %+v", d)
		}
		w.exec(t, `delete from usage_collections where completed_at is null`) // no process has begun it yet
	}
}
