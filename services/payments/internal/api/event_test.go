package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

func storeIntent(ctx context.Context, w *world, id string) (domain.Intent, error) {
	return store.Intent(ctx, w.DB.App.Read(ctx), domain.GatewayID(id))
}

// anyone returns the context of a request without a credential.
func anyone() context.Context {
	c := caller.Service("gateway", ids.Tenant{}, "")
	return caller.With(context.Background(), c)
}

// event sends an event of the payment gateway, signed with the secret at the given time.
func (w *world) event(account, secret string, at time.Time, body string) response {
	w.T.Helper()
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: secret, Timestamp: at})
	return response{w.Send(anyone(), w.engine, "gateway", "POST", "/internal/v1/gateway-events/"+account, body,
		apitest.Header("Stripe-Signature: "+signed.Header))}
}

func eventBody(id, kind, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","api_version":"2020-01-01","type":%q,"data":{"object":%s}}`, id, kind, object)
}

// TestEvents checks that an event only causes a read of the intent. Its content about the state is not trusted, in any order,
// however late and however often it arrives.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx).ID.String()
	p := w.post(ctx, w.booked(ctx, 1000)).is(201).intent()
	lie := func(id, kind string) string {
		return eventBody(id, kind, fmt.Sprintf(`{"id":%q,"object":"payment_intent","status":"succeeded","amount_received":1000}`, p.ID))
	}
	w.event(account, "whsec_1", time.Now(), lie("evt_1", "payment_intent.succeeded")).is(200)
	w.work()
	if got := w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(200).intent(); got.Status != "requires_payment_method" {
		t.Errorf("the event was believed: %+v", got)
	}
	w.gateway.Change(p.ID, func(s *domain.Snapshot) {
		s.Failure, s.FailedCharge = &domain.Failure{Code: "card_declined", Message: "Your card was declined."}, "ch_1"
	})
	w.event(account, "whsec_1", time.Now(), lie("evt_2", "payment_intent.payment_failed")).is(200)
	w.work()
	w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Received, s.Failure = domain.Succeeded, 1000, nil })
	for range 3 {
		w.event(account, "whsec_1", time.Now(), lie("evt_3", "payment_intent.processing")).is(200)
		w.event(account, "whsec_1", time.Now(), lie("evt_2", "payment_intent.payment_failed")).is(200)
		w.event(account, "whsec_1", time.Now(), eventBody("evt_4", "charge.succeeded", fmt.Sprintf(`{"id":"ch_2","payment_intent":%q}`, p.ID))).is(200)
		w.event(account, "whsec_1", time.Now(), eventBody("evt_5", "customer.created", `{"id":"cus_1"}`)).is(200)
		w.work()
	}
	if types := w.types(); types != "updated failed succeeded" {
		t.Errorf("%s", types)
	}
	if n := w.Count(`select count(*) from gateway_events`); n != 3 { // events about charge.succeeded and about a customer contain nothing new
		t.Errorf("%d events are stored", n)
	}
	if n := w.Count(`select count(*) from gateway_events where due_at is not null`); n != 0 {
		t.Errorf("%d events are left", n)
	}
}

// TestEventsOfAnIntentShareOneRead checks that events about one intent that are due at the same time cause one read of it, up to a
// limit. An event that arrives during the read causes another one. An event without new information causes none, and is not stored.
func TestEventsOfAnIntentShareOneRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx).ID.String()
	p := w.post(ctx, w.booked(ctx, 1000)).is(201).intent()
	n := 0
	send := func(kind, object string) {
		n++
		w.event(account, "whsec_1", time.Now(), eventBody(fmt.Sprintf("evt_%d", n), kind, object)).is(200)
	}
	ofIntent, ofCharge := fmt.Sprintf(`{"id":%q}`, p.ID), fmt.Sprintf(`{"id":"ch_1","payment_intent":%q}`, p.ID)
	reads := 0
	w.gateway.After = func(_ context.Context, call string) error {
		if call == "read" {
			reads++
		}
		return nil
	}
	for _, kind := range []string{"succeeded", "failed", "pending", "captured", "expired"} {
		send("charge."+kind, ofCharge)
	}
	send("payment_intent.created", ofIntent)
	w.work()
	if reads != 0 {
		t.Errorf("%d reads for events that say nothing", reads)
	}
	for range 150 {
		send("payment_intent.processing", ofIntent)
	}
	w.work()
	if reads != 2 {
		t.Errorf("%d reads for 150 events", reads)
	}
	w.gateway.After = func(context.Context, string) error {
		if reads++; reads == 3 { // the gateway returned the earlier state
			w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, 1000 })
			send("payment_intent.succeeded", ofIntent)
		}
		return nil
	}
	send("payment_intent.processing", ofIntent)
	w.work()
	if got, err := storeIntent(ctx, w, p.ID); err != nil || got.Status != domain.Succeeded || reads != 4 {
		t.Errorf("%s after %d reads, %v", got.Status, reads, err)
	}
	const silent = 6
	if stored, due := w.Count(`select count(*) from gateway_events`), w.Count(`select count(*) from gateway_events where due_at is not null`); stored != n-silent || due != 0 {
		t.Errorf("%d of %d events are stored, %d are due", stored, n-silent, due)
	}
}

func (w *world) work() {
	w.T.Helper()
	if err := w.events.Run(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

func TestForgedEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Test)
	account, otherAccount := w.connect(ctx).ID.String(), w.connect(other).ID.String()
	if _, err := w.accounts.Rotate(other, false, domain.Keys{Webhook: "whsec_2"}, 0); err != nil {
		t.Fatal(err)
	}
	body := eventBody("evt_1", "payment_intent.succeeded", `{"id":"pi_1"}`)
	now := time.Now()
	w.event(account, "whsec_2", now, body).is(400, "malformed_request")
	w.event(otherAccount, "whsec_1", now, body).is(400, "malformed_request")
	w.event(account, "whsec_1", now.Add(-6*time.Minute), body).is(400, "malformed_request")
	w.event(account, "whsec_1", now.Add(6*time.Minute), body).is(400, "malformed_request")
	w.event(account, "whsec_1", now, strings.Replace(body, `"type"`, fmt.Sprintf(`"created":%d,"type"`, now.Add(6*time.Minute).Unix()), 1)).is(400, "malformed_request")
	w.event("ga_00000000000000000000000000", "whsec_1", now, body).is(404, "not_found")
	w.event("x", "whsec_1", now, body).is(404, "not_found")
	w.event(account, "whsec_1", now, `{"id":`).is(400, "malformed_request")
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: "whsec_1", Timestamp: now})
	forged := response{w.Send(anyone(), w.engine, "gateway", "POST", "/internal/v1/gateway-events/"+account, strings.Replace(body, "pi_1", "pi_2", 1),
		apitest.Header("Stripe-Signature: "+signed.Header))}
	forged.is(400, "malformed_request")
	if n := w.Count(`select count(*) from gateway_events`); n != 0 {
		t.Errorf("%d events are stored", n)
	}
	w.event(otherAccount, "whsec_2", now, body).is(200)
}

// TestRotatedSecret checks that events signed with either secret are accepted during a rotation.
func TestRotatedSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx).ID.String()
	if _, err := w.accounts.Rotate(ctx, false, domain.Keys{Webhook: "whsec_2"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	body := func(id string) string { return eventBody(id, "payment_intent.succeeded", `{"id":"pi_1"}`) }
	w.event(account, "whsec_1", time.Now(), body("evt_1")).is(200)
	w.event(account, "whsec_2", time.Now(), body("evt_2")).is(200)
	w.ahead.Add(int64(2 * time.Hour))
	w.event(account, "whsec_1", time.Now(), body("evt_3")).is(400, "malformed_request")
	w.event(account, "whsec_2", time.Now(), body("evt_4")).is(200)
}

// TestEventBeforeTheResponse checks that an event that arrives before the response to the creation waits for it. An event of
// another program on the same account is given up.
func TestEventBeforeTheResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx).ID.String()
	w.gateway.After = func(_ context.Context, call string) error {
		if call == "create" {
			return errLost
		}
		return nil
	}
	w.post(ctx, w.booked(ctx, 100), key("k")).is(502, "payment_intent_failed")
	w.gateway.After = nil
	row := w.intentRow(ctx)
	id := fmt.Sprintf("pi_%s_1", row)
	w.gateway.Change(id, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, 100 })
	w.event(account, "whsec_1", time.Now(), eventBody("evt_1", "payment_intent.succeeded", fmt.Sprintf(`{"id":%q}`, id))).is(200)
	w.event(account, "whsec_1", time.Now(), eventBody("evt_2", "payment_intent.succeeded", `{"id":"pi_foreign"}`)).is(200)
	w.work()
	w.ahead.Add(int64(3 * time.Second))
	if err := w.completer.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		w.work()
		w.ahead.Add(int64(10 * time.Minute))
	}
	if got := w.do(ctx, "GET", "/payment-intents/"+id, "").is(200).intent(); got.Status != "succeeded" {
		t.Errorf("%+v", got)
	}
	if n := w.Count(`select count(*) from gateway_events where id like 'evt%'`); n != 1 { // another program's event is not stored, and this service's own does not count
		t.Errorf("%d events are left", n)
	}
}

// intentRow returns the id of the only row with an unfinished call.
func (w *world) intentRow(ctx context.Context) (id domain.IntentID) {
	w.T.Helper()
	err := w.DB.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		left, err := store.IntentsLeft(ctx, tx, w.now().Add(time.Hour), nil, 2)
		if err == nil && len(left) == 1 {
			id = left[0].ID
		}
		return err
	})
	if err != nil || id.IsZero() {
		w.T.Fatal(err)
	}
	return id
}
