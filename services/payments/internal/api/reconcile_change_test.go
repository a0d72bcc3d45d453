package api_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

const day = 24 * time.Hour

// eventsOf returns the state of the events that the account shows.
func (w *world) eventsOf(ctx context.Context) domain.EventsState {
	w.T.Helper()
	a, err := w.accounts.Show(ctx)
	if err != nil {
		w.T.Fatal(err)
	}
	return a.Events
}

// TestReconcilerFollowsChanges checks that the gateway's events reveal changes of old objects: an intent that is paid and a refund
// that fails, both created days ago, while their events are lost. Each event is taken once, and the next run finds nothing.
func TestReconcilerFollowsChanges(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	paid, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa_chargeDeclined")
	refunded, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.deliver(account, paid, "payment_intent.payment_failed")
	w.deliver(account, refunded, "payment_intent.succeeded")
	r := w.refund(ctx, refundOf(refunded, `,"amount_minor":3000`)).is(201).refund()
	w.work()
	if r.Status != "succeeded" {
		t.Fatalf("%+v", r)
	}
	l := &lister{Lister: w.standIn.stripe, events: true}
	w.reconcile(l)
	w.work()

	l.only = domain.StageEvents // the lists of recently created objects no longer contain them
	w.standIn.confirm(paid.ID, "pm_card_visa")
	w.standIn.control("refunds/"+*r.Allocations[0].Gateway+"/finish", map[string]any{"outcome": "failed"}, nil)
	w.reconcile(l)
	w.work()
	if got := w.intent(ctx, paid.ID); got.Status != domain.Succeeded {
		t.Errorf("%+v", got)
	}
	if got := w.getRefund(ctx, r.ID); got.Status != "failed" {
		t.Errorf("%+v", got)
	}
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
	if got := w.differences(); got["event"] == 0 {
		t.Errorf("%v", got)
	}
	before, stored := fmt.Sprint(w.differences()), w.Count(`select count(*) from gateway_events`)
	w.reconcile(l)
	w.work()
	if after, now := fmt.Sprint(w.differences()), w.Count(`select count(*) from gateway_events`); after != before || now != stored {
		t.Errorf("%s, then %s; %d events, then %d", before, after, stored, now)
	}
}

// TestReconcilerComparesWhatIsOpen checks that open intents, refunds and disputes are compared once a day however old they are,
// even if the gateway has forgotten the events.
func TestReconcilerComparesWhatIsOpen(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	open, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa_chargeDeclined")
	w.deliver(account, open, "payment_intent.payment_failed")
	pending, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_pendingRefund")
	w.deliver(account, pending, "payment_intent.succeeded")
	r := w.refund(ctx, refundOf(pending, `,"amount_minor":3000`)).is(201).refund()
	w.work()
	disputed, charge := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	var d struct{ ID string }
	w.standIn.control("charges/"+charge+"/dispute", map[string]any{}, &d)
	w.deliver(account, disputed, "payment_intent.succeeded", "charge.dispute.created "+d.ID)
	if row := w.intent(ctx, disputed.ID); !row.Disputed || r.Status != "pending" {
		t.Fatalf("%+v, %+v", row, r)
	}
	w.Exec(`update payment_intents set created_at = created_at - interval '200 days'; update disputes set opened_at = opened_at - interval '200 days';
		update refund_allocations set attempted_at = attempted_at - interval '200 days'`)
	nothing := &lister{Lister: w.standIn.stripe, hide: true}
	w.reconcile(nothing)
	if got := w.differences(); len(got) != 0 {
		t.Errorf("%v of nothing", got)
	}
	w.standIn.confirm(open.ID, "pm_card_visa")
	w.standIn.control("refunds/"+*r.Allocations[0].Gateway+"/finish", map[string]any{"outcome": "succeeded"}, nil)
	w.standIn.control("disputes/"+d.ID+"/close", map[string]any{"outcome": "won"}, nil)
	w.reconcile(nothing)
	if got := w.differences(); len(got) != 0 {
		t.Errorf("%v within the day", got)
	}
	w.ahead.Add(int64(day))
	w.reconcile(nothing)
	if got := w.differences(); fmt.Sprint(got) != "map[dispute:1 intent:1 refund:1]" {
		t.Errorf("%v", got)
	}
	if row := w.intent(ctx, open.ID); row.Status != domain.Succeeded {
		t.Errorf("%+v", row)
	}
	if row := w.intent(ctx, disputed.ID); row.Disputed {
		t.Errorf("%+v", row)
	}
	if got := w.getRefund(ctx, r.ID); got.Status != "succeeded" {
		t.Errorf("%+v", got)
	}
	w.ahead.Add(int64(day))
	before := fmt.Sprint(w.differences())
	w.reconcile(nothing)
	if after := fmt.Sprint(w.differences()); after != before {
		t.Errorf("%s, then %s", before, after)
	}
}

// TestReconcilerComparesAllThatIsOpen checks that all open objects are compared if there are more than one page contains. Objects
// that the gateway no longer knows do not block others. If one cannot be read, its page is compared again within seconds.
func TestReconcilerComparesAllThatIsOpen(t *testing.T) {
	t.Parallel()
	w, ctx, _ := withStandIn(t)
	b := w.bookings.Add(ctx, "confirmed", 1_000_000, 1_000_000, "USD")
	var list []intent
	for range 105 {
		list = append(list, w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":1000}`, b.ID)).is(201).intent())
	}
	w.Exec(`update payment_intents set created_at = created_at - interval '10 days';
		update payment_intents set gateway_id = 'pi_00gone' where gateway_id = (select min(gateway_id) from payment_intents)`)
	for _, p := range list {
		w.standIn.confirm(p.ID, "pm_card_visa")
	}
	var unread atomic.Bool
	l := &lister{Lister: w.standIn.stripe, hide: true, get: func(id string) error {
		if id == list[len(list)/2].ID && unread.CompareAndSwap(false, true) {
			return errLost
		}
		return nil
	}}
	for range 2 {
		w.run(w.reconciler(l).Run)
		w.ahead.Add(int64(5 * time.Second))
	}
	if n := w.Count(`select count(*) from payment_intents where status = 'succeeded'`); n != 104 {
		t.Errorf("%d of 104 are repaired", n)
	}
}

// TestEventsState checks that an account shows whether its events arrive: missing without a signing secret, late if the gateway has
// some that were not received. The platform's services get an event for each change.
func TestEventsState(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	all := &lister{Lister: w.standIn.stripe, events: true}
	expect := func(want domain.EventsState) {
		t.Helper()
		w.Exec(`update gateway_reconciliations set events_until = least(events_until, now())`) // the gateway's clock is not ahead
		w.reconcile(all)
		w.work()
		if got := w.eventsOf(ctx); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
	expect(domain.EventsOK)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	expect(domain.EventsLate)
	if got := w.intent(ctx, p.ID); got.Status != domain.Succeeded {
		t.Errorf("%+v", got)
	}
	n := len(w.Events())
	all.events = false // no events since then
	expect(domain.EventsLate)
	all.events = true
	if len(w.Events()) != n {
		t.Error("an event of no change")
	}
	w.Exec(`update gateway_reconciliations set events_until = null`) // all of them are received by now
	expect(domain.EventsOK)

	w.Exec(`delete from gateway_webhook_secrets`)
	expect(domain.EventsMissing)
	before := fmt.Sprint(w.differences())
	q, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	expect(domain.EventsMissing)
	if got := w.intent(ctx, q.ID); got.Status != domain.Succeeded {
		t.Errorf("%+v", got)
	}
	if after := fmt.Sprint(w.differences()); after != before {
		t.Errorf("an account that shows its state counts too: %s, then %s", before, after)
	}
	if _, err := w.accounts.Rotate(ctx, false, domain.Keys{Webhook: "whsec_2"}, 0); err != nil {
		t.Fatal(err)
	}
	if got := w.eventsOf(ctx); got != domain.EventsOK {
		t.Errorf("%s", got)
	}
	var objects []string
	for _, e := range w.Events() {
		if e.GetType() == "gateway_account.updated" {
			objects = append(objects, string(e.GetObject()))
		}
	}
	if len(objects) < 5 || account.Events != domain.EventsOK {
		t.Errorf("%q", objects)
	}
	other := pgtest.Ctx(t, caller.Test)
	if a, err := w.accounts.Connect(other, false, domain.Keys{Publishable: standInPublic, Secret: standInSecret}); err != nil || a.Events != domain.EventsMissing {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestReconcilerAdoptsByEvents checks that an intent that exists, although it was recorded as refused, is found by the event of its
// creation, however old it is.
func TestReconcilerAdoptsByEvents(t *testing.T) {
	t.Parallel()
	w, ctx, _ := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.Exec(fmt.Sprintf(`update payment_intents set status = 'refused', gateway_id = null where gateway_id = '%s'`, p.ID))
	w.reconcile(&lister{Lister: w.standIn.stripe, events: true, only: domain.StageEvents})
	if got := w.intent(ctx, p.ID); got.Status != domain.Succeeded {
		t.Errorf("%+v", got)
	}
}

// reading is a gateway that runs a function before an intent is read.
type reading struct {
	app.Gateway

	before func()
}

func (g *reading) Read(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	g.before()
	return g.Gateway.Read(ctx, a, p)
}

// TestReconcilerAdoptsNoNewAttempt checks that the reconciler leaves a row to another attempt that begins while the reconciler
// reads.
func TestReconcilerAdoptsNoNewAttempt(t *testing.T) {
	t.Parallel()
	w, ctx, _ := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.Exec(fmt.Sprintf(`update payment_intents set status = 'refused', gateway_id = null where gateway_id = '%s'`, p.ID))
	w.around = func(g app.Gateway) app.Gateway {
		return &reading{Gateway: g, before: func() {
			w.Exec(`update payment_intents set status = 'creating', leased_until = now() + interval '1 day'`)
		}}
	}
	w.engine = w.serve(w.DB.App)
	w.reconcile(nil)
	if n := w.Count(`select count(*) from payment_intents where status = 'creating' and gateway_id is null`); n != 1 {
		t.Error("the row was taken from its attempt")
	}
}

// TestEventsOfAnAccountAreBounded checks that at most the allowed number of events of an account wait, and that the newest of the
// processed events are retained. Each account has its own limits.
func TestEventsOfAnAccountAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Test)
	account, otherAccount := w.connect(ctx), w.connect(other)
	fill := func(n int, due string) {
		w.Exec(fmt.Sprintf(`insert into gateway_events (tenant_id, livemode, account_id, id, type, intent, received_at, due_at)
			select tenant_id, livemode, id, 'evt_%[2]s_' || n, 'x', 'pi_' || n, now() - n * interval '1 millisecond', %[2]s
			from gateway_accounts, generate_series(1, %[1]d) n where id = '%[3]x'`, n, due, account.ID.UUID()))
	}
	send := func(a domain.Account, id string) response {
		return w.event(a.ID.String(), "whsec_1", time.Now(), eventBody(id, "payment_intent.succeeded", `{"id":"pi_1"}`))
	}
	fill(domain.EventsWaiting-1, "now()")
	send(account, "evt_last").is(200)
	if got := send(account, "evt_over"); got.is(503, "unavailable").Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	send(otherAccount, "evt_1").is(200)
	w.Exec(`delete from gateway_events where id like 'evt_now%'`)
	send(account, "evt_over").is(200)

	fill(domain.EventsRetained+15_000, "null")
	for more := true; more; {
		if err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			more, err = store.TrimEvents(ctx, tx, account.ID, domain.EventsRetained)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Count(`select count(*) from gateway_events where due_at is null`); n != domain.EventsRetained {
		t.Errorf("%d are stored", n)
	}
	if n := w.Count(`select count(*) from gateway_events where id = 'evt_null_1'`); n != 1 {
		t.Error("the newest is gone")
	}
}

// TestForeignEventsAreNotTaken checks that events about other programs' use of the account are not stored.
func TestForeignEventsAreNotTaken(t *testing.T) {
	t.Parallel()
	w, ctx, _ := withStandIn(t)
	var created struct{ ID string }
	w.standIn.call("POST", "/v1/payment_intents", url.Values{"amount": {"1000"}, "currency": {"usd"}, "automatic_payment_methods[enabled]": {"true"}}, &created)
	w.standIn.confirm(created.ID, "pm_card_visa")
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.reconcile(&lister{Lister: w.standIn.stripe, events: true, only: domain.StageEvents})
	if n := w.Count(`select count(*) from gateway_events where intent = '` + created.ID + `'`); n != 0 {
		t.Errorf("%d events of another program", n)
	}
	w.work()
	if got := w.intent(ctx, p.ID); got.Status != domain.Succeeded {
		t.Errorf("%+v", got)
	}
}
