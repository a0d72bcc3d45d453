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

// TestUnfinishedStepsAreCounted checks that an operation without a response of bookings is counted from the time when its first
// process abandoned it until it completes.
func TestUnfinishedStepsAreCounted(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	reg := prometheus.NewRegistry()
	now := time.Now()
	unfinished := app.NewUnfinished(w.DB.Worker, func() time.Time { return now }, reg)
	counted := func(want int, oldest float64) {
		t.Helper()
		if err := unfinished.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, err := testutil.GatherAndCount(reg)
		if err != nil || n != 8 {
			t.Fatalf("%d series, %v", n, err)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range append(families[0].GetMetric(), families[1].GetMetric()...) {
			got, resource := m.GetGauge().GetValue(), m.GetLabel()[0].GetValue()
			if i < 4 && got != float64(want) {
				t.Errorf("%s: %v, want %d", resource, got, want)
			}
			if i >= 4 && (got < oldest || got > oldest+30) {
				t.Errorf("%s: the oldest is %v s old, want about %v", resource, got, oldest)
			}
		}
	}
	q, l := w.sentQuote(ctx, ""), w.lead(ctx, withEmail)
	counted(0, 0)
	w.fail(apperr.ErrUnavailable, nil)
	w.onQuote(ctx, q.ID, "accept").is(503, "unavailable")
	w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503, "unavailable")
	payer := withScopes(ctx, "payments:write")
	v, _ := w.cardPaid(payer, "1", 100, 100)
	cash := w.open(payer, 100)
	w.payments.Before = func(context.Context) error { return apperr.ErrUnavailable }
	w.credit(payer, v, `{"refund":"gateway"}`).is(201)
	w.pay(payer, cash, 100).is(503, "unavailable")
	counted(0, 0) // their processes may still continue
	later := time.Now().Add(31 * time.Second)
	now = later
	counted(1, 30)
	w.resumeAccepts(31 * time.Second)
	w.complete(31 * time.Second)
	w.completeNotes(0)
	w.record()
	counted(1, 30)             // another process holds them now, but they still wait
	now = later.Add(time.Hour) // a failed attempt does not change their age
	counted(1, 3630)
	w.fail(nil, nil)
	w.payments.Before = nil
	w.resumeAccepts(time.Hour)
	w.complete(time.Hour)
	w.completeNotes(0)
	w.record()
	counted(0, 0)
}

// record runs the completer of recorded payments.
func (w *world) record() {
	w.T.Helper()
	if err := w.completers.Receipts(w.accounts)(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}
