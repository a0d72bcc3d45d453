package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	listed "holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/consume"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// TestEachTopicHasAHandler checks that exactly the topics that proto/services.yaml lets the service read have a handler.
func TestEachTopicHasAHandler(t *testing.T) {
	t.Parallel()
	service, _ := listed.ServiceNamed("payments")
	var got []string
	for topic := range (consume.Handlers{}).Topics() {
		got = append(got, topic)
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(service.Reads))
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("handlers of %v, and proto/services.yaml lists %v", got, want)
	}
}

// message returns an event of another service in the tenant and mode of ctx.
func message(ctx context.Context, t *testing.T, topic, kind, object string, version int64, body string) kafkax.Message {
	t.Helper()
	c := caller.FromContext(ctx)
	raw, err := proto.Marshal(&eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: kind, TenantId: c.Tenant.String(), Livemode: c.Live(), ObjectId: object,
		ResourceVersion: version, CreatedAt: timestamppb.New(time.Unix(0, 0)), Object: []byte(body), Internal: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return kafkax.Message{Topic: topic, Key: object, Value: raw}
}

// TestBookingStatusFollowsEvents checks that an intent shows the newest state of its booking, for any order and batches of its
// events.
func TestBookingStatusFollowsEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "pending", 100, 100, "USD")
	p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(201).intent()
	live := pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live)
	event := func(ctx context.Context, version int64, status string) kafkax.Message {
		return message(ctx, t, "bookings", "booking.updated", b.ID.String(), version, fmt.Sprintf(`{"status":%q,"customer_id":null}`, status))
	}
	status := func() string {
		t.Helper()
		body := string(w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(200).Body)
		_, rest, _ := strings.Cut(body, `"booking_status":"`)
		state, _, _ := strings.Cut(rest, `"`)
		return state
	}
	batch := []kafkax.Message{event(ctx, 18, "pending"), event(ctx, 20, "completed"), event(live, 30, "cancelled"), event(ctx, 20, "completed"), event(ctx, 19, "confirmed")}
	broken := message(ctx, t, "bookings", "booking.updated", b.ID.String(), 99, `{`)
	if err := w.topicHandlers.HandleBatch(ctx, append(batch[:len(batch):len(batch)], broken)); err == nil || status() != "pending" {
		t.Errorf("half of a batch: %v, %s", err, status())
	}
	for range 2 {
		if err := w.topicHandlers.HandleBatch(ctx, batch); err != nil || status() != "completed" {
			t.Errorf("%v, %s", err, status())
		}
	}
	if err := w.topicHandlers.Handle(ctx, event(ctx, 21, "no_show")); err != nil || status() != "no_show" {
		t.Errorf("%v, %s", err, status())
	}
	for name, m := range map[string]kafkax.Message{
		"no JSON": broken, "another topic": {Topic: "others", Value: broken.Value}, "no event": {Topic: "bookings", Value: []byte("x")},
		"no id": message(ctx, t, "customers", "customer.erased", "cu_x", 1, `{}`),
	} {
		if err := w.topicHandlers.Handle(ctx, m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestErasure checks that erasing a customer clears the personal data of its intents once, in rows, stored responses and
// unpublished events, and notifies the platform.
func TestErasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := w.tenant(), w.tenant()
	b := w.bookings.Add(ctx, "pending", 100, 100, "USD")
	foreign := w.bookings.Add(other, "pending", 100, 100, "USD")
	body := func(b domain.Booking) string {
		return fmt.Sprintf(`{"booking_id":%q,"description":"For Ann","receipt_email":"ann@example.com","metadata":{"who":"Ann"}}`, b.ID)
	}
	p := w.post(ctx, body(b), key("k")).is(201).intent()
	untouched := w.post(other, body(foreign)).is(201).intent()
	for _, one := range []struct {
		ctx context.Context
		intent
	}{{ctx, p}, {other, untouched}} {
		w.gateway.Change(one.ID, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, 100 })
		w.refresh(one.ctx, one.ID)
		w.refund(one.ctx, refundOf(one.intent, `,"amount_minor":10,"metadata":{"who":"Ann"}`), key("r")).is(201)
	}
	refund := w.refund(ctx, refundOf(p, `,"amount_minor":10,"metadata":{"who":"Ann"}`), key("r")).is(201).refund()
	erased := message(ctx, t, "customers", "customer.erased", b.CustomerID.String(), 2, `{}`)
	if err := w.topicHandlers.HandleBatch(ctx, []kafkax.Message{erased, erased}); !errors.Is(err, kafkax.ErrSeparate) {
		t.Errorf("a batch: %v", err)
	}
	for range 2 {
		if err := w.topicHandlers.Handle(ctx, erased); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"the intent":                   string(w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(200).Body),
		"the stored response":          string(w.post(ctx, body(b), key("k")).is(201).Body),
		"the refund":                   string(w.do(ctx, "GET", "/refunds/"+refund.ID, "").is(200).Body),
		"the refund's stored response": string(w.refund(ctx, refundOf(p, `,"amount_minor":10,"metadata":{"who":"Ann"}`), key("r")).is(201).Body),
		"the refunds of Ann":           string(w.do(ctx, "GET", "/refunds?metadata[who]=Ann", "").is(200).Body),
	} {
		if strings.Contains(text, "Ann") || strings.Contains(text, "ann@") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if n := w.Count(`select count(*) from payment_intent_metadata where value = 'Ann'`); n != 1 {
		t.Errorf("%d pairs are left, want the other tenant's", n)
	}
	if n := w.Count(`select count(*) from refund_metadata where value = 'Ann'`); n != 1 {
		t.Errorf("%d pairs of refunds are left, want the other tenant's", n)
	}
	if got := string(w.do(other, "GET", "/payment-intents/"+untouched.ID, "").is(200).Body); !strings.Contains(got, "ann@example.com") {
		t.Errorf("another tenant's: %s", got)
	}
	erasures := 0
	for _, e := range w.emitted() {
		if e.GetObjectId() != p.ID && e.GetObjectId() != refund.ID {
			continue
		}
		if e.GetType() == "payment_intent.erased" && e.GetInternal() {
			erasures++
		}
		if strings.Contains(string(e.GetObject()), "Ann") {
			t.Errorf("an event holds it: %s", e.GetObject())
		}
	}
	if erasures != 1 {
		t.Errorf("%d events", erasures)
	}
}

// TestErasureOfAnIntentThatIsBeingCreated checks that an intent with an unknown outcome does not block the erasure. The intent is
// still created exactly once, and shows no data of the customer.
func TestErasureOfAnIntentThatIsBeingCreated(t *testing.T) {
	t.Parallel()
	w, ctx, account, gateway := withForgetful(t)
	b, begun := w.bookings.Add(ctx, "pending", 100, 100, "USD"), w.now()
	body := fmt.Sprintf(`{"booking_id":%q,"description":"For Ann","receipt_email":"ann@example.com"}`, b.ID)
	gateway.lose = true
	w.post(ctx, body, key("k")).is(502, "payment_intent_failed")
	if err := w.topicHandlers.Handle(ctx, message(ctx, t, "customers", "customer.erased", b.CustomerID.String(), 2, `{}`)); err != nil {
		t.Fatal(err)
	}
	for _, e := range w.emitted() {
		t.Errorf("an event of an unknown intent: %v", e)
	}
	w.ahead.Add(int64(time.Minute))
	w.complete()
	if text := string(w.post(ctx, body, key("k")).is(201).Body); strings.Contains(text, "Ann") || strings.Contains(text, "ann@") {
		t.Errorf("%s", text)
	}
	if list := w.listed(account, begun); len(list) != 1 {
		t.Errorf("%d intents at the gateway", len(list))
	}
}

// TestAccountEvents checks that each change of an account emits an event that names the caller and contains no secret.
func TestAccountEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := caller.FromContext(pgtest.Ctx(t, caller.Test))
	c.Credential = "cli"
	ctx := caller.With(t.Context(), c)
	w.connect(ctx)
	if _, err := w.accounts.Rotate(ctx, false, domain.Keys{Secret: "sk_test_another98765432"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := w.accounts.Disconnect(ctx); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range w.Events() {
		if strings.Contains(string(e.GetObject()), "sk_test_") || strings.Contains(string(e.GetObject()), "whsec_") {
			t.Errorf("a secret: %s", e.GetObject())
		}
		var a internalapi.GatewayAccount
		if err := json.Unmarshal(e.GetObject(), &a); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.GetType(), e.GetActor(), a.Connected, a.SecretKeyLast4, string(e.GetPreviousAttributes())))
	}
	want := []string{
		`gateway_account.updatedclitrue4567{}`, `gateway_account.updatedclitrue5432{"secret_key_last4":"4567"}`,
		`gateway_account.updatedclifalse5432{"connected":true}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestIntentsOfABookingDoNotWait checks that intents of one booking can be created at the same time, but not during a change of the
// booking.
func TestIntentsOfABookingDoNotWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "pending", 100, 100, "USD")
	body := fmt.Sprintf(`{"booking_id":%q}`, b.ID)
	w.post(ctx, body).is(201)
	release := w.Hold(`select from bookings for share`)
	w.post(ctx, body).is(201)
	release()
	release = w.Hold(`update bookings set status = status`)
	w.post(ctx, body).is(503)
	release()
}

// TestIntentsOfLostBookings checks that the open intents of a booking that is canceled or expires are canceled at the gateway,
// despite any failures. A paid intent stays. New intents of such a booking are refused, even if bookings has not reported the end
// yet.
func TestIntentsOfLostBookings(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"cancelled", "expired"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := w.tenant()
			b, other := w.bookings.Add(ctx, "pending", 100, 100, "USD"), w.bookings.Add(ctx, "pending", 100, 100, "USD")
			body := fmt.Sprintf(`{"booking_id":%q}`, b.ID)
			open, paid, late := w.post(ctx, body).is(201).intent(), w.post(ctx, body).is(201).intent(), w.post(ctx, body).is(201).intent()
			untouched := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, other.ID)).is(201).intent()
			w.gateway.After = func(context.Context, string) error { return errLost }
			w.post(ctx, body, key("k")).is(502, "payment_intent_failed") // the intent exists, but its response was lost
			w.gateway.After = nil
			w.gateway.Change(paid.ID, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, 100 })
			w.gateway.Change(late.ID, func(s *domain.Snapshot) { s.Status = domain.Processing })
			gone := message(ctx, t, "bookings", "booking.updated", b.ID.String(), 50, fmt.Sprintf(`{"status":%q,"customer_id":null}`, end))
			for range 2 {
				if err := w.topicHandlers.Handle(ctx, gone); err != nil {
					t.Fatal(err)
				}
			}
			w.post(ctx, body).is(422, "booking_not_payable", "booking_id")
			w.gateway.Before = func(_ context.Context, call string) error {
				if call == "cancel" {
					return errLost
				}
				return nil
			}
			runWorkers := func() {
				t.Helper()
				if err := w.completer.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := w.canceler.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			runWorkers()
			w.gateway.Before = nil
			for n := range 3 {
				w.ahead.Store(int64(time.Duration(n+1) * 10 * time.Minute))
				runWorkers()
			}
			states := map[string]int{}
			list := string(w.do(ctx, "GET", "/payment-intents?booking_id="+b.ID.String(), "").is(200).Body)
			for _, state := range []string{"canceled", "succeeded", "processing"} {
				states[state] = strings.Count(list, `"status":"`+state+`"`)
			}
			if want := map[string]int{"canceled": 2, "succeeded": 1, "processing": 1}; !maps.Equal(states, want) {
				t.Errorf("%v, want %v", states, want)
			}
			for id, want := range map[string]string{open.ID: "canceled", untouched.ID: "requires_payment_method"} {
				if got := w.do(ctx, "GET", "/payment-intents/"+id, "").is(200).intent().Status; got != want {
					t.Errorf("%s is %s, want %s", id, got, want)
				}
			}
			if n := w.Count(`select count(*) from lost_bookings`); n != 0 {
				t.Errorf("%d bookings are left", n)
			}
			w.gateway.Change(late.ID, func(s *domain.Snapshot) { s.Status = domain.RequiresPaymentMethod }) // the debit has failed, but another card can pay
			w.refresh(ctx, late.ID)
			runWorkers()
			if got := w.do(ctx, "GET", "/payment-intents/"+late.ID, "").is(200).intent().Status; got != "canceled" {
				t.Errorf("the intent that was open again is %s", got)
			}
			w.refresh(ctx, late.ID) // an ended intent causes no work
			if n := w.Count(`select count(*) from lost_bookings`); n != 0 {
				t.Errorf("%d bookings are left", n)
			}
		})
	}
}

// TestAnIntentThatReopensDuringACancellation checks that an intent of a lost booking that becomes open again while the others are
// canceled is canceled too: a booking is only ended when no open intent is left.
func TestAnIntentThatReopensDuringACancellation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "pending", 100, 100, "USD")
	body := fmt.Sprintf(`{"booking_id":%q}`, b.ID)
	late := w.post(ctx, body).is(201).intent()
	w.post(ctx, body).is(201)
	w.gateway.Change(late.ID, func(s *domain.Snapshot) { s.Status = domain.Processing })
	w.refresh(ctx, late.ID)
	w.lose(ctx, b, "cancelled", 2)
	w.gateway.Before = func(_ context.Context, call string) error {
		if call == "cancel" {
			w.gateway.Before = nil
			w.gateway.Change(late.ID, func(s *domain.Snapshot) { s.Status = domain.RequiresPaymentMethod })
			w.refresh(ctx, late.ID)
		}
		return nil
	}
	for _, want := range []int{1, 2} {
		w.run(w.canceler.Run)
		if n, left := w.Count(`select count(*) from payment_intents where status = 'canceled'`), w.Count(`select count(*) from lost_bookings`); n != want || left != 2-want {
			t.Errorf("%d intents are canceled and %d bookings are left, want %d and %d", n, left, want, 2-want)
		}
		w.ahead.Add(int64(time.Minute))
	}
}

// TestABookingWithAWaitingIntentStaysDue checks that a booking stays due if one of its intents has to be processed from the moment
// at which a worker ends the booking.
func TestABookingWithAWaitingIntentStaysDue(t *testing.T) {
	t.Parallel()
	for state, due := range map[domain.Status]struct {
		list store.DueBookings
		put  func(context.Context, pg.Tx, domain.BookingID, time.Time) error
	}{
		domain.RequiresPaymentMethod: {store.Cancellations, store.Cancellations.Put}, domain.Succeeded: {store.Settlements, store.Settlements.Put},
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := w.tenant()
			b := w.bookings.Add(ctx, "pending", 100, 100, "USD")
			w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(201)
			w.Exec(`update payment_intents set status = 'processing'`)
			put := func(ctx context.Context, tx pg.Tx) error { return due.put(ctx, tx, b.ID, w.now()) }
			end := func() (ended bool) {
				if err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
					ended, err = due.list.End(ctx, tx, b.ID)
					return err
				}); err != nil {
					t.Error(err)
				}
				return ended
			}
			if err := w.DB.App.Tx(ctx, put); err != nil {
				t.Fatal(err)
			}
			ended := make(chan bool, 1)
			if err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
				if _, err := tx.Exec(ctx, `update payment_intents p set status = @state where p.tenant_id = @tenant and p.livemode = @live`, pg.Args{"state": state}); err != nil {
					return err
				}
				if err := put(ctx, tx); err != nil {
					return err
				}
				go func() { ended <- end() }()
				w.untilWaiting(1)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if <-ended {
				t.Error("it ended although an intent waits")
			}
			w.Exec(`update payment_intents set status = 'canceled'`)
			if !end() {
				t.Error("it did not end")
			}
		})
	}
}

// TestManyIntentsOfALostBooking checks that many open intents of a lost booking are canceled in several steps, each by one call.
// One of the intents has an unknown outcome at first. More than one step is no failure.
func TestManyIntentsOfALostBooking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	failures := w.logged()
	b := w.bookings.Add(ctx, "pending", 100, 100, "USD")
	body := fmt.Sprintf(`{"booking_id":%q}`, b.ID)
	const many = 25
	for range many {
		w.post(ctx, body).is(201)
	}
	w.gateway.After = func(context.Context, string) error { return errLost }
	w.post(ctx, body).is(502, "payment_intent_failed")
	w.gateway.After = nil
	w.lose(ctx, b, "cancelled", 2)
	var calls atomic.Int64
	w.gateway.Before = func(_ context.Context, call string) error {
		if call == "cancel" {
			calls.Add(1)
		}
		return nil
	}
	canceled := func(want, left int) {
		t.Helper()
		w.run(w.canceler.Run)
		n, bookings := w.Count(`select count(*) from payment_intents where status = 'canceled'`), w.Count(`select count(*) from lost_bookings`)
		if n != want || int(calls.Load()) != want || bookings != left {
			t.Errorf("%d are canceled by %d calls, %d bookings are left; want %d and %d", n, calls.Load(), bookings, want, left)
		}
		w.ahead.Add(int64(5 * time.Second))
	}
	canceled(20, 1)
	canceled(many, 1)
	w.complete()
	canceled(many+1, 0)
	if failures.Len() != 0 {
		t.Errorf("log: %s", failures)
	}
}
