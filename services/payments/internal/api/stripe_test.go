package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
	"holdfast.dev/services/payments/internal/store"
)

// withStripe returns a world whose gateway is Stripe itself, with the test account of STRIPE_SECRET_KEY, or the stand-in if the
// variable is not set.
func withStripe(t *testing.T, around func(app.Gateway) app.Gateway) (*world, context.Context, domain.Account) {
	t.Helper()
	w := newWorld(t)
	w.around = around
	if secret := os.Getenv("STRIPE_SECRET_KEY"); secret != "" {
		const address = "https://api.stripe.com"
		w.standIn = &standIn{t: t, url: address, secret: secret, stripe: peers.NewStripe(address, 10*time.Second, 4)}
	} else {
		t.Log("STRIPE_SECRET_KEY is not set: this runs against the stand-in")
		w.standIn = startStandIn(t)
	}
	w.engine = w.serve(w.DB.App)
	ctx := pgtest.Ctx(t, caller.Test)
	a, err := w.accounts.Connect(ctx, false, domain.Keys{
		Publishable: cmp.Or(os.Getenv("STRIPE_PUBLISHABLE_KEY"), standInPublic), Secret: domain.Secret(w.standIn.secret), Webhook: "whsec_1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return w, ctx, a
}

// forgetful is a gateway that loses its next response to a creation.
type forgetful struct {
	app.Gateway

	lose bool
}

func (f *forgetful) lost() bool {
	defer func() { f.lose = false }()
	return f.lose
}

func (f *forgetful) Create(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	snapshot, err := f.Gateway.Create(ctx, a, p)
	if f.lost() {
		return domain.Snapshot{}, errLost
	}
	return snapshot, err
}

func (f *forgetful) CreateRefund(ctx context.Context, a domain.Account, r domain.Refund, part domain.Allocation) (domain.GatewayRefund, error) {
	got, err := f.Gateway.CreateRefund(ctx, a, r, part)
	if f.lost() {
		return domain.GatewayRefund{}, errLost
	}
	return got, err
}

// withForgetful returns a world whose gateway is a stand-in that loses selected responses.
func withForgetful(t *testing.T) (*world, context.Context, domain.Account, *forgetful) {
	t.Helper()
	gateway := &forgetful{}
	w := newWorld(t)
	w.standIn = startStandIn(t)
	w.around = func(g app.Gateway) app.Gateway {
		gateway.Gateway = g
		return gateway
	}
	w.engine = w.serve(w.DB.App)
	ctx := pgtest.Ctx(t, caller.Test)
	account, err := w.accounts.Connect(ctx, false, domain.Keys{Publishable: standInPublic, Secret: standInSecret, Webhook: "whsec_1"})
	if err != nil {
		t.Fatal(err)
	}
	return w, ctx, account, gateway
}

// TestStripe checks that every call of payments has the intended effect at Stripe. With the key of a test account, it runs against
// Stripe.
func TestStripe(t *testing.T) {
	t.Parallel()
	gateway := &forgetful{}
	w, ctx, account := withStripe(t, func(g app.Gateway) app.Gateway {
		gateway.Gateway = g
		return gateway
	})
	begun := w.now()
	for _, code := range []string{"USD", "EUR", "JPY"} {
		b := w.bookings.Add(ctx, "confirmed", 40_000, 40_000, code)
		pay := func(name, more string) intent {
			t.Helper()
			return w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":10000%s}`, b.ID, more), key(code+name)).is(201).intent()
		}
		gateway.lose = true
		w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":10000}`, b.ID), key(code+"lost")).is(502, "payment_intent_failed")
		w.ahead.Add(int64(2 * time.Second))
		paid := pay("lost", "")
		w.standIn.confirm(paid.ID, "pm_card_visa_chargeDeclined")
		w.deliverAll(ctx, account, paid.ID)
		if got := w.intent(ctx, paid.ID); got.Status != domain.RequiresPaymentMethod || got.Failure == nil || got.Failure.Code != "card_declined" {
			t.Errorf("%s declined: %+v", code, got)
		}
		w.standIn.confirm(paid.ID, "pm_card_visa")
		w.deliverAll(ctx, account, paid.ID)
		if got := w.intent(ctx, paid.ID); got.Status != domain.Succeeded || got.Received != 10_000 {
			t.Errorf("%s paid: %+v", code, got)
		}

		gateway.lose = true
		w.refund(ctx, refundOf(paid, `,"amount_minor":2500`), key(code+"refund")).is(502)
		w.ahead.Add(int64(2 * time.Second))
		w.refund(ctx, refundOf(paid, `,"amount_minor":2500`), key(code+"refund")).is(201)
		w.refund(ctx, refundOf(paid, `,"amount_minor":7501`)).is(422)
		w.refund(ctx, refundOf(paid, ``)).is(201)
		w.refund(ctx, refundOf(paid, `,"amount_minor":100`)).is(409, "nothing_to_refund")
		w.deliverAll(ctx, account, paid.ID)
		if got := w.intent(ctx, paid.ID); got.Refunded != 10_000 {
			t.Errorf("%s refunded: %+v", code, got)
		}

		held := pay("held", `,"capture_method":"manual"`)
		w.standIn.confirm(held.ID, "pm_card_visa")
		w.deliverAll(ctx, account, held.ID)
		w.do(ctx, "POST", "/payment-intents/"+held.ID+"/capture", `{"amount_minor":4000}`, key(code+"capture")).is(200)
		if got := w.intent(ctx, held.ID); got.Status != domain.Succeeded || got.Received != 4000 {
			t.Errorf("%s captured: %+v", code, got)
		}

		dropped := pay("dropped", "")
		w.do(ctx, "POST", "/payment-intents/"+dropped.ID+"/cancel", `{}`, key(code+"cancel")).is(200)
		if got := w.intent(ctx, dropped.ID); got.Status != domain.Canceled {
			t.Errorf("%s canceled: %+v", code, got)
		}

		for id, want := range map[string]int64{paid.ID: 0, held.ID: -4000, dropped.ID: 0} {
			entries, err := store.LedgerOfIntent(ctx, w.DB.App.Read(ctx), w.intent(ctx, id).ID, 100)
			if err != nil {
				t.Fatal(err)
			}
			var payments, all int64
			for _, e := range entries {
				if all += e.Amount; e.Account == domain.Payments && e.Currency == code {
					payments += e.Amount
				}
			}
			if all != 0 || payments != want && len(entries) > 0 && entries[0].Currency == code {
				t.Errorf("%s: the ledger of %s adds up to %d, and payments to %d, want %d", code, id, all, payments, want)
			}
		}
	}
	created := 0
	for _, p := range w.listed(account, begun) {
		if p.Tenant == caller.FromContext(ctx).Tenant.String() {
			created++
		}
	}
	if created != 9 {
		t.Errorf("%d intents at the gateway, want 9", created)
	}
	w.reconcile(w.standIn.stripe)
	got := w.differences()
	if delete(got, "event"); len(got) != 0 { // some events were never sent here, because the gateway's responses contained the states

		t.Errorf("differences: %v", got)
	}
}

func (w *world) intent(ctx context.Context, id string) domain.Intent {
	w.T.Helper()
	p, err := storeIntent(ctx, w, id)
	if err != nil {
		w.T.Fatal(err)
	}
	return p
}

// listed returns the intents that the gateway lists since a time.
func (w *world) listed(account domain.Account, since time.Time) (out []domain.Listed) {
	w.T.Helper()
	for after := ""; ; {
		page, err := w.standIn.stripe.List(w.T.Context(), account, domain.StageIntents, since.Add(-time.Minute), after)
		if err != nil {
			w.T.Fatal(err)
		}
		if out = append(out, page.Items...); !page.More {
			return out
		}
		after = page.Last
	}
}

// deliverAll delivers the events that the gateway lists for an intent, in that order, and processes them. It reads the intent even
// if the gateway has not listed the events yet.
func (w *world) deliverAll(ctx context.Context, account domain.Account, id string) {
	w.T.Helper()
	var page struct {
		Data []json.RawMessage
	}
	w.standIn.call("GET", "/v1/events", url.Values{"limit": {"100"}}, &page)
	for _, raw := range page.Data {
		var e struct {
			Data struct {
				Object struct {
					ID     string
					Intent string `json:"payment_intent"`
				}
			}
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			w.T.Fatal(err)
		}
		if e.Data.Object.ID == id || e.Data.Object.Intent == id {
			w.event(account.ID.String(), "whsec_1", time.Now(), string(raw)).is(200)
		}
	}
	w.work()
	if _, err := w.intents.Refresh(ctx, account, w.intent(ctx, id)); err != nil {
		w.T.Fatal(err)
	}
}

// TestRepeatedWithOtherParameters checks that the gateway refuses a repeated attempt with other parameters, as after an upgrade.
// The refusal does not show whether the first call had an effect, so the object is searched for and not created again.
func TestRepeatedWithOtherParameters(t *testing.T) {
	t.Parallel()
	w, ctx, account, gateway := withForgetful(t)
	b := w.bookings.Add(ctx, "confirmed", 20_000, 20_000, "USD")
	begun := w.now()
	gateway.lose = true
	w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID), key("k")).is(502, "payment_intent_failed")
	w.Exec(`update payment_intents set description = 'other'`)
	w.ahead.Add(int64(time.Minute))
	w.complete()
	list := w.listed(account, begun)
	if len(list) != 1 {
		t.Fatalf("%d intents at the gateway", len(list))
	}
	id := string(list[0].Intent)
	w.standIn.confirm(id, "pm_card_visa")
	w.deliverAll(ctx, account, id)

	gateway.lose = true
	w.refund(ctx, fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":500,"reason":"duplicate"}`, id), key("r")).is(502)
	w.Exec(`update refunds set reason = 'fraudulent'`)
	w.ahead.Add(int64(time.Minute))
	if err := w.refunder.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.deliverAll(ctx, account, id)
	if got := w.intent(ctx, id); got.Refunded != 500 || got.RefundReserved != 500 {
		t.Errorf("%+v", got)
	}
	if n := w.Count(`select count(*) from refund_allocations where status = 'succeeded' and attempt = 1`); n != 1 {
		t.Errorf("%d refunds were created by the first attempt", n)
	}
}
