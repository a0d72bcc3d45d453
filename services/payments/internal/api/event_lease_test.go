package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// TestEventOfAKilledProcess checks that, if a process takes an event and crashes before it has read the intent, another process
// reads the intent half a minute later, and not before.
func TestEventOfAKilledProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx)
	p := w.post(ctx, w.booked(ctx, 1000)).is(201).intent()
	w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, 1000 })
	w.event(account.ID.String(), "whsec_1", time.Now(), eventBody("evt_1", "payment_intent.succeeded", fmt.Sprintf(`{"id":%q}`, p.ID))).is(200)
	err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		due, now := store.EventDue{AccountID: account.ID, Intent: domain.GatewayID(p.ID)}, w.now()
		taken, err := w.intents.Accounts.TakeEvents(ctx, tx, due, now, domain.EventLease(now), 10)
		if err == nil && len(taken.Events) != 1 {
			t.Fatalf("%d events are taken", len(taken.Events))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		wait time.Duration
		want string
	}{{25 * time.Second, "requires_payment_method"}, {6 * time.Second, "succeeded"}} {
		w.ahead.Add(int64(step.wait))
		w.work()
		if got := w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(200).intent(); got.Status != step.want {
			t.Errorf("%s after another %s, want %s", got.Status, step.wait, step.want)
		}
	}
}
