package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/repair"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// TestALostIntentIsAdopted checks that a payment intent whose row was lost in a restore comes back with its id, booking and money, once,
// although an event is waiting for it, and that the repair compares the account again and raises the version above a newer copy.
// Its account is among the copies, with which customers compares its own.
func TestALostIntentIsAdopted(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	was, err := storeIntent(ctx, w, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.reconcile(nil)
	w.Exec(fmt.Sprintf(`alter table money_entries disable trigger user; delete from money_entries; alter table money_entries enable trigger user;
		delete from money_accounts; delete from payment_intent_metadata where intent_id in (select id from payment_intents where gateway_id = '%[1]s');
		alter table ledger_entries disable trigger user; delete from ledger_entries; alter table ledger_entries enable trigger user;
		delete from payment_intents where gateway_id = '%[1]s'`, p.ID))
	var lost bytes.Buffer
	c := caller.FromContext(ctx)
	held := fmt.Sprintf(`{"holder":"customers","tenant":%q,"livemode":%v,"id":%q,"version":8}`, c.Tenant, c.Live(), p.ID)
	do := func() error {
		return app.Repair().Do(t.Context(), repair.Run{
			URL: w.DB.OwnerURL, Since: time.Now().Add(-time.Hour), In: bytes.NewBufferString(held), Out: &lost, Progress: &bytes.Buffer{},
		})
	}
	if err := do(); err != nil || !bytes.Contains(lost.Bytes(), []byte(p.ID)) {
		t.Fatalf("%v, lost %s", err, lost.String())
	}
	w.deliver(account, p, "payment_intent.succeeded")
	if n := w.Count(`select count(*) from gateway_events where due_at is not null`); n == 0 {
		t.Error("no event is waiting for the intent")
	}
	for range 2 {
		w.reconcile(nil)
		got, err := storeIntent(ctx, w, p.ID)
		if err != nil || got.ID != was.ID || got.BookingID != was.BookingID || got.Status != domain.Succeeded || got.Received != 10_000 || got.Amount != was.Amount {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got := w.differences()["unknown"]; got != 1 {
		t.Errorf("it was unknown %d times, want once", got)
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if got, err := storeIntent(ctx, w, p.ID); err != nil || got.Version != 9 {
		t.Errorf("version %d, %v", got.Version, err)
	}
	if !slices.ContainsFunc(w.Events(), func(e *eventsv1.Event) bool { return e.GetObjectId() == p.ID && e.GetResourceVersion() == 9 }) {
		t.Error("version 9 was not published")
	}
	var own bytes.Buffer
	if err := repair.WriteCopies(t.Context(), w.DB.OwnerURL, "payments", app.Repair().Copies, time.Now(), &own); err != nil {
		t.Fatal(err)
	}
	if _, key := ids.Stored(was.BookingID.String()); !strings.Contains(own.String(), `"id":"ma_`+key+`:USD","version":1}`) {
		t.Errorf("the account is not among the copies: %s", own.String())
	}
}

// TestRepairOfAccounts checks that an account of money is published with all its entries until customers and bookings hold its version,
// that a newer copy raises its version, and that nobody needs a copy of an intent.
func TestRepairOfAccounts(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.deliver(account, p, "payment_intent.succeeded")
	was, err := storeIntent(ctx, w, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	c := caller.FromContext(ctx)
	_, key := ids.Stored(was.BookingID.String())
	do := func(check bool, held map[string]int64) (published []int64, err error) {
		t.Helper()
		before := len(w.Events())
		var in bytes.Buffer
		for holder, version := range held {
			fmt.Fprintf(&in, `{"holder":%q,"tenant":%q,"livemode":%v,"id":"ma_%s:USD","version":%d}`+"\n", holder, c.Tenant, c.Live(), key, version)
		}
		fmt.Fprintf(&in, `{"holder":"webhooks","tenant":%q,"livemode":%v,"id":%q,"version":1,"event":"payment.succeeded"}`+"\n", c.Tenant, c.Live(), p.ID)
		err = app.Repair().Do(t.Context(), repair.Run{
			URL: w.DB.OwnerURL, Since: time.Now().Add(-time.Hour), Check: check, In: &in, Out: &bytes.Buffer{}, Progress: &bytes.Buffer{},
		})
		for _, e := range w.Events()[before:] {
			var body internalapi.Account
			if err := json.Unmarshal(e.GetObject(), &body); err != nil || e.GetObjectId() != was.BookingID.String() || len(body.Entries) != 1 || body.Entries[0].ID != p.ID || body.Received != 10_000 {
				t.Errorf("%v, event %v", err, e)
			}
			published = append(published, body.Version)
		}
		return published, err
	}
	w.reconcile(nil)
	for _, step := range []struct {
		held map[string]int64
		want int64 // the version that is published; 0: nothing
	}{
		{nil, 1},
		{map[string]int64{"customers": 1}, 1},
		{map[string]int64{"bookings": 1}, 1},
		{map[string]int64{"bookings": 1, "customers": 1}, 0},
		{map[string]int64{"bookings": 1, "customers": 4}, 5},
		{map[string]int64{"bookings": 1, "customers": 5}, 5},
		{map[string]int64{"bookings": 0, "customers": 5}, 0}, // 0: unknown
	} {
		if _, err := do(true, step.held); errors.Is(err, repair.ErrDiffers) != (step.want > 0) {
			t.Errorf("%v: check: %v", step.held, err)
		}
		published, err := do(false, step.held)
		if err != nil || step.want == 0 && len(published) > 0 || step.want > 0 && !slices.Equal(published, []int64{step.want}) {
			t.Errorf("%v: published %v, want %d; %v", step.held, published, step.want, err)
		}
		w.reconcile(nil)
	}
}

// TestAnIntentThatWasBeingCreatedHasItsMoney checks that an intent whose creation was not finished at the moment of a restore gets its
// current state from the next processing of events, although the gateway repeats its first response, to the completer or to the client.
func TestAnIntentThatWasBeingCreatedHasItsMoney(t *testing.T) {
	t.Parallel()
	for name, repeat := range map[string]func(w *world, request func() response){
		"completer": func(w *world, _ func() response) { w.complete() },
		"client":    func(_ *world, request func() response) { request().is(201) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx, account, gateway := withForgetful(t)
			body, begun := w.booked(ctx, 10_000), w.now()
			request := func() response { return w.post(ctx, body, key("k")) }
			gateway.lose = true
			request().is(502, "payment_intent_failed")
			id := string(w.listed(account, begun)[0].Intent)
			w.standIn.confirm(id, "pm_card_visa")
			w.reconcile(nil)
			if n := w.Count(`select count(*) from payment_intents where status = 'creating' and gateway_id is null`); n != 1 {
				t.Fatalf("%d intents are being created", n)
			}
			repeat(w, request)
			w.work()
			if got, err := storeIntent(ctx, w, id); err != nil || got.Status != domain.Succeeded || got.Received != 10_000 {
				t.Errorf("%+v, %v", got, err)
			}
			if n := w.Count(`select count(*) from ledger_entries`); n == 0 {
				t.Error("the ledger lacks the charge")
			}
		})
	}
}

// TestTheCheckWaitsForAccounts checks that the check fails until each account was compared with the gateway, also if the gateway fails
// in the middle. An account whose keys are refused blocks it until the account is disconnected.
func TestTheCheckWaitsForAccounts(t *testing.T) {
	t.Parallel()
	w, ctx, _ := withStandIn(t)
	do := func(check bool) error {
		return app.Repair().Do(t.Context(), repair.Run{
			URL: w.DB.OwnerURL, Since: time.Now(), Check: check, In: &bytes.Buffer{}, Out: &bytes.Buffer{}, Progress: &bytes.Buffer{},
		})
	}
	differs := func(when string, want bool) {
		t.Helper()
		if err := do(true); errors.Is(err, repair.ErrDiffers) != want || !want && err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	refusing := &lister{Lister: w.standIn.stripe, before: func(domain.Stage, string) error { return &domain.RefusedError{Unread: true} }}
	repaired := func(l app.Lister) {
		t.Helper()
		if err := do(false); err != nil {
			t.Fatal(err)
		}
		differs("before the comparison", true)
		w.reconcile(l)
	}
	w.reconcile(nil)
	repaired(nil)
	differs("compared", false)
	failing := &lister{Lister: w.standIn.stripe, before: func(s domain.Stage, _ string) error {
		if s == domain.StageDisputes {
			return errors.New("the gateway fails")
		}
		return nil
	}}
	repaired(failing)
	differs("the gateway failed in the middle", true)
	w.reconcile(nil)
	differs("continued", false)
	w.reconcile(failing)
	differs("a later comparison runs", true)
	repaired(nil)
	differs("compared after the failure", false)
	repaired(refusing)
	differs("its keys are refused", true)
	if _, err := w.accounts.Disconnect(ctx); err != nil {
		t.Fatal(err)
	}
	differs("disconnected", false)
	repaired(refusing)
	differs("tried again", false)
}

// TestARepairDuringAComparisonCounts checks that a repair makes a running comparison begin again, wherever it is. The process that
// runs it stops and writes nothing: its progress is from before the repair.
func TestARepairDuringAComparisonCounts(t *testing.T) {
	t.Parallel()
	for _, when := range []domain.Stage{domain.StageEvents, domain.StageIntents, domain.StageDisputes} {
		t.Run(string(when), func(t *testing.T) {
			t.Parallel()
			w, _, _ := withStandIn(t)
			w.reconcile(nil) // it later has no open objects to compare
			l := &lister{Lister: w.standIn.stripe, events: true}
			var seen []domain.Stage
			l.before = func(s domain.Stage, _ string) error {
				seen = append(seen, s)
				if s == when {
					w.Exec(store.CompareAccounts)
				}
				return nil
			}
			w.reconcile(l)
			if last := seen[len(seen)-1]; last != when {
				t.Errorf("it went on to %s after the repair", last)
			}
			if n := w.Count(`select count(*) from (` + store.Comparing + `) a`); n != 1 {
				t.Errorf("%d accounts are to be compared after the repair", n)
			}
			seen, when = nil, "" // no further repair
			w.reconcile(l)
			if n := w.Count(`select count(*) from (` + store.Comparing + `) a`); n != 0 || seen[0] != domain.StageEvents {
				t.Errorf("%d accounts are to be compared, after %v", n, seen)
			}
		})
	}
}
