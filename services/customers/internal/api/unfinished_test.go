package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/customers/internal/app"
)

// What bookings does not answer is counted once its first process has left it, until it ends.
func TestUnfinishedStepsAreCounted(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	later := time.Now().Add(31 * time.Second)
	reg := prometheus.NewRegistry()
	now := time.Now()
	unfinished := app.NewUnfinished(w.DB.Worker, func() time.Time { return now }, reg)
	counted := func(want int) {
		t.Helper()
		if err := unfinished.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, err := testutil.GatherAndCount(reg)
		if err != nil || n != 2 {
			t.Fatalf("%d series, %v", n, err)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range families[0].GetMetric() {
			if got := m.GetGauge().GetValue(); got != float64(want) {
				t.Errorf("%s: %v, want %d", m.GetLabel()[0].GetValue(), got, want)
			}
		}
	}
	q, l := w.sentQuote(ctx, ""), w.lead(ctx, withEmail)
	counted(0)
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.onQuote(ctx, q.ID, "accept").is(503, "unavailable")
	w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503, "unavailable")
	counted(0) // their processes may still go on
	now = later
	counted(1)
	w.bookings.Before = nil
	w.resumeAccepts(31 * time.Second)
	w.complete(31 * time.Second)
	counted(0)
}
