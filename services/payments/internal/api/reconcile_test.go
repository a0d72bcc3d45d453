package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// lister provides the gateway's lists, which a test can change. It has no events unless the test adds them, as if they were older
// than what the gateway stores.
type lister struct {
	app.Lister

	events bool
	hide   bool         // the lists are empty, as if all objects were older
	only   domain.Stage // the other lists are empty
	before func(stage domain.Stage, after string) error
	get    func(id string) error // runs before an object is read; nil: nothing fails
	mu     sync.Mutex
	calls  []string
}

func (l *lister) Get(ctx context.Context, a domain.Account, kind domain.Stage, id string) (*domain.Listed, error) {
	if l.get != nil {
		if err := l.get(id); err != nil {
			return nil, err
		}
	}
	return l.Lister.Get(ctx, a, kind, id)
}

func (l *lister) List(ctx context.Context, a domain.Account, stage domain.Stage, since time.Time, after string) (domain.ListPage, error) {
	if stage == domain.StageEvents && !l.events || l.hide || l.only != "" && l.only != stage {
		return domain.ListPage{}, nil
	}
	l.mu.Lock()
	l.calls = append(l.calls, string(stage)+" "+after)
	l.mu.Unlock()
	if l.before != nil {
		if err := l.before(stage, after); err != nil {
			return domain.ListPage{}, err
		}
	}
	return l.Lister.List(ctx, a, stage, since, after)
}

// reconciler returns a reconciler that reads the gateway with l; nil means the stand-in's lists without events.
func (w *world) reconciler(l app.Lister) *app.Reconciler {
	w.T.Helper()
	if l == nil {
		l = &lister{Lister: w.standIn.stripe}
	}
	return &app.Reconciler{
		Intents: w.intents, Refunds: w.events.Refunds, Gateways: w.accounts, Wake: func() { w.woken.Add(1) }, Lister: l, Worker: w.DB.Worker,
		Log: slog.New(slog.DiscardHandler), Interval: time.Hour, Grace: time.Millisecond,
	}
}

// reconcile runs the next comparison of all accounts.
func (w *world) reconcile(l app.Lister) {
	w.T.Helper()
	if err := w.reconciler(l).Run(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
	w.ahead.Add(int64(time.Hour + time.Second))
}

// differences returns how many differences of each kind were counted.
func (w *world) differences() map[string]int {
	w.T.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.T.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		if f.GetName() != "payment_reconciler_differences_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if n := int(m.GetCounter().GetValue()); n > 0 {
				out[m.GetLabel()[0].GetValue()] = n
			}
		}
	}
	return out
}

// refundReads is a gateway that records which refunds are read.
type refundReads struct {
	app.Gateway

	mu  sync.Mutex
	ids []string
}

func (g *refundReads) ReadRefund(ctx context.Context, a domain.Account, id string) (domain.GatewayRefund, error) {
	g.mu.Lock()
	g.ids = append(g.ids, id)
	g.mu.Unlock()
	return g.Gateway.ReadRefund(ctx, a, id)
}

// TestReconcilerRepairsAfterLostEvents checks that, if all events of the gateway are lost, the reconciler corrects everything,
// including the events of the platform and the ledger, and counts its repairs. Afterwards it finds no difference.
func TestReconcilerRepairsAfterLostEvents(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t, "LOCAL_STRIPE_FEE_FIXED=30")
	reads := &refundReads{Gateway: w.standIn.stripe}
	w.around = func(app.Gateway) app.Gateway { return reads }
	w.engine = w.serve(w.DB.App)
	w.reconcile(nil)
	if got := w.differences(); len(got) != 0 {
		t.Errorf("%v of nothing", got)
	}
	paid, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	declined, _ := w.payAt(ctx, "JPY", 10_000, "", "pm_card_visa_chargeDeclined")
	held, _ := w.payAt(ctx, "EUR", 10_000, `,"capture_method":"manual"`, "pm_card_visa")
	disputed, charge := w.payAt(ctx, "KWD", 10_000, "", "pm_card_visa")
	w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.reconcile(nil)
	if got := w.differences(); fmt.Sprint(got) != "map[intent:5]" || len(reads.ids) != 0 {
		t.Errorf("%v, and refunds are read: %v", got, reads.ids)
	}
	for p, want := range map[string]string{paid.ID: "[succeeded]", declined.ID: "[requires_payment_method card_declined generic_decline]", disputed.ID: "[succeeded]"} {
		if got := w.failures(p); fmt.Sprint(got) != want {
			t.Errorf("%s: %v", p, got)
		}
	}
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}

	r := w.refund(ctx, refundOf(paid, `,"amount_minor":3000`)).is(201).refund()
	w.work() // the event that the refund stored
	w.standIn.control("refunds/"+*r.Allocations[0].Gateway+"/finish", map[string]any{"outcome": "failed"}, nil)
	w.standIn.call("POST", "/v1/payment_intents/"+held.ID+"/capture", url.Values{"amount_to_capture": {"4000"}}, nil)
	w.standIn.call("POST", "/v1/refunds", url.Values{"payment_intent": {held.ID}, "amount": {"500"}}, nil)
	var d struct{ ID string }
	w.standIn.control("charges/"+charge+"/dispute", map[string]any{}, &d)
	w.reconcile(nil)
	if got := w.getRefund(ctx, r.ID); got.Status != "failed" {
		t.Errorf("%+v", got)
	}
	if row, err := storeIntent(ctx, w, disputed.ID); err != nil || !row.Disputed {
		t.Errorf("%+v, %v", row, err)
	}
	if row, err := storeIntent(ctx, w, held.ID); err != nil || row.Received != 4000 || row.Refunded != 500 {
		t.Errorf("%+v, %v", row, err)
	}
	// The intent of the failed refund also differs, because less is refunded. The dispute belongs to the intent that the stage for
	// disputes finds.
	if got := w.differences(); fmt.Sprint(got) != "map[dispute:1 intent:7 refund:1]" {
		t.Errorf("%v", got)
	}
	w.standIn.control("disputes/"+d.ID+"/close", map[string]any{"outcome": "won"}, nil)
	w.reconcile(nil)
	if row, err := storeIntent(ctx, w, disputed.ID); err != nil || row.Disputed {
		t.Errorf("%+v, %v", row, err)
	}
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
	before, events := fmt.Sprint(w.differences()), len(w.Events())
	w.reconcile(nil)
	if after := fmt.Sprint(w.differences()); after != before || len(w.Events()) != events {
		t.Errorf("%s, then %s", before, after)
	}
}

// TestReconcilerRepairsTheLedger checks that a movement that is not in the ledger is a difference, although all states are equal.
func TestReconcilerRepairsTheLedger(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, charge := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	var d struct{ ID string }
	w.standIn.control("charges/"+charge+"/dispute", map[string]any{"amount": 10}, &d)
	w.standIn.control("disputes/"+d.ID+"/close", map[string]any{"outcome": "won"}, nil)
	w.standIn.call("POST", "/v1/refunds", url.Values{"payment_intent": {p.ID}, "amount": {"500"}}, nil)
	w.deliver(account, p, "charge.dispute.created dp", "payment_intent.succeeded")
	for _, object := range []string{"ch", "re", "dp"} {
		w.Exec(`alter table ledger_entries disable trigger append_only; delete from ledger_entries where object like '` + object + `_%';
			alter table ledger_entries enable trigger append_only`)
		if err := w.balances(ctx, account); err == nil {
			t.Error("nothing is missing")
		}
		w.reconcile(nil)
		if err := w.balances(ctx, account); err != nil {
			t.Errorf("%s: %v", object, err)
		}
	}
	if got := w.differences(); fmt.Sprint(got) != "map[ledger:3]" {
		t.Errorf("%v", got)
	}
}

// TestReconcilerFindsAnInquiry checks that an inquiry, which the charge does not show, is found in the list of disputes. After it
// was read, it is no longer a difference.
func TestReconcilerFindsAnInquiry(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, charge := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	w.deliver(account, p, "payment_intent.succeeded")
	w.standIn.control("charges/"+charge+"/dispute", map[string]any{"inquiry": true}, nil)
	for range 2 {
		w.reconcile(nil)
		if got := w.differences(); fmt.Sprint(got) != "map[dispute:1]" || !w.intent(ctx, p.ID).Disputed {
			t.Errorf("%v", got)
		}
	}
}

// TestReconcilerWaitsForEventsInTransit checks that pending changes are no difference: an event that is due, an intent that is
// being created, a change that arrives within the grace period, and a change that happens while the reconciler reads.
func TestReconcilerWaitsForEventsInTransit(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa_chargeDeclined")
	w.event(account.ID.String(), "whsec_1", time.Now(), eventBody("evt_1", "payment_intent.payment_failed", fmt.Sprintf(`{"id":%q}`, p.ID))).is(200)
	w.reconcile(nil)
	w.work()
	w.standIn.confirm(p.ID, "pm_card_visa_chargeDeclinedLostCard")
	l := &lister{Lister: w.standIn.stripe}
	l.before = func(stage domain.Stage, _ string) error {
		if len(l.calls) == 2 { // the second read
			w.deliver(account, p, "payment_intent.payment_failed")
		}
		return nil
	}
	w.reconcile(l)
	w.standIn.confirm(p.ID, "pm_card_visa_chargeDeclinedExpiredCard")
	l.calls = nil
	l.before = func(stage domain.Stage, _ string) error {
		if len(l.calls) == 2 {
			w.standIn.confirm(p.ID, "pm_card_visa")
		}
		return nil
	}
	w.reconcile(l)
	if got := w.differences(); len(got) != 0 || len(l.calls) != 4 {
		t.Errorf("%v, %v", got, l.calls)
	}
	w.reconcile(nil)
	if got := w.differences(); fmt.Sprint(got) != "map[intent:1]" {
		t.Errorf("%v", got)
	}
	w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	var looks []time.Time
	l.before = func(stage domain.Stage, _ string) error {
		if stage == domain.StageIntents {
			looks = append(looks, time.Now())
		}
		return nil
	}
	patient := w.reconciler(l)
	patient.Grace = 500 * time.Millisecond
	if w.run(patient.Run); len(looks) != 2 || looks[1].Sub(looks[0]) < patient.Grace { // earlier pages had no difference
		t.Errorf("%v", looks)
	}
}

// TestReconcilerKnowsItsOwn checks that objects of other programs and of other tenants on the same account are ignored. An object
// with this tenant's metadata but without a row is counted. A row that is being created is left to the completer.
func TestReconcilerKnowsItsOwn(t *testing.T) {
	t.Parallel()
	w, ctx, _ := withStandIn(t)
	other := pgtest.Ctx(t, caller.Test)
	if _, err := w.accounts.Connect(other, false, domain.Keys{Publishable: standInPublic, Secret: standInSecret}); err != nil {
		t.Fatal(err)
	}
	p, _ := w.payAt(other, "USD", 10_000, "", "pm_card_visa")
	make := func(metadata url.Values) (id string) {
		var created struct{ ID string }
		form := url.Values{"amount": {"1000"}, "currency": {"usd"}, "automatic_payment_methods[enabled]": {"true"}}
		for k, v := range metadata {
			form[k] = v
		}
		w.standIn.call("POST", "/v1/payment_intents", form, &created)
		w.standIn.confirm(created.ID, "pm_card_visa")
		return created.ID
	}
	foreign := make(nil)
	w.standIn.call("POST", "/v1/refunds", url.Values{"payment_intent": {foreign}, "amount": {"500"}}, nil)
	w.reconcile(nil)
	if got := w.differences(); fmt.Sprint(got) != "map[intent:1]" {
		t.Errorf("%v", got)
	}
	if row, err := storeIntent(other, w, p.ID); err != nil || row.Received != 10_000 {
		t.Errorf("%+v, %v", row, err)
	}
	tenant := caller.FromContext(ctx).Tenant.String()
	make(url.Values{"metadata[holdfast_payment]": {"pir_01000000000000000000000000"}, "metadata[holdfast_tenant]": {tenant}})
	w.reconcile(nil)
	if got := w.differences(); fmt.Sprint(got) != "map[intent:1 unknown:1]" {
		t.Errorf("%v", got)
	}
	for _, status := range []string{"creating", "refused"} {
		q, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
		w.Exec(fmt.Sprintf(`update payment_intents set status = '%s', gateway_id = null, leased_until = now() + interval '1 day' where gateway_id = '%s'`, status, q.ID))
		w.reconcile(nil)
		row, err := storeIntent(ctx, w, q.ID)
		if mended := err == nil && row.Status == domain.Succeeded; mended != (status == "refused") {
			t.Errorf("%s: %+v, %v", status, row, err)
		}
	}
	if got := w.differences(); fmt.Sprint(got) != "map[intent:2 unknown:3]" { // the one without a row is counted each time
		t.Errorf("%v", got)
	}
}

// TestReconcilerGoesOnAfterACrash checks that, if the process of a run crashes, exactly one process continues the run with its page
// when the lease has ended.
func TestReconcilerGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	b := w.bookings.Add(ctx, "confirmed", 1_000_000, 1_000_000, "USD")
	var last intent
	for i := range 210 {
		p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":1000}`, b.ID)).is(201).intent()
		if i == 0 {
			last = p
		}
	}
	w.standIn.confirm(last.ID, "pm_card_visa")
	died, cancel := context.WithCancel(t.Context())
	l := &lister{Lister: w.standIn.stripe}
	l.before = func(_ domain.Stage, after string) error {
		if len(l.calls) == 2 {
			cancel()
			return context.Canceled
		}
		return nil
	}
	_ = w.reconciler(l).Run(died)
	w.Exec(`update gateway_reconciliations set due_at = now() + interval '5 minutes'`) // the state that a killed process leaves
	if err := w.reconciler(l).Run(t.Context()); err != nil || len(l.calls) != 2 {
		t.Errorf("a second process has taken it: %v, %v", l.calls, err)
	}
	w.ahead.Add(int64(6 * time.Minute))
	l.before = func(domain.Stage, string) error { // another process in the meantime
		if len(l.calls) >= 3 { // before the first page, and between two of them
			if err := w.reconciler(&lister{before: func(domain.Stage, string) error {
				t.Error("two compare at once")
				return errLost
			}}).Run(t.Context()); err != nil {
				t.Error(err)
			}
			if err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
				run, err := store.TakeReconciliation(ctx, tx, account.ID, w.now(), w.now())
				if run != nil {
					t.Error("two have taken it at once")
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	if err := w.reconciler(l).Run(t.Context()); err != nil {
		t.Error(err)
	}
	if len(l.calls) < 6 || l.calls[2] != l.calls[1] || l.calls[1] == "intents " {
		t.Errorf("%q", l.calls)
	}
	if row, err := storeIntent(ctx, w, last.ID); err != nil || row.Received != 1000 {
		t.Errorf("%+v, %v", row, err)
	}
	n := len(l.calls)
	if err := w.reconciler(l).Run(t.Context()); err != nil || len(l.calls) != n {
		t.Errorf("not an hour later: %v, %v", l.calls, err)
	}
}

// TestReconcilerOfAccounts checks that a disconnected account is compared too. An account whose keys are refused waits for the next
// run, and an outage delays it for less. Neither blocks another account. Two tenants with the same account compare their own
// intents.
func TestReconcilerOfAccounts(t *testing.T) {
	t.Parallel()
	w, ctx, _ := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	if _, err := w.accounts.Disconnect(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := w.accounts.Connect(pgtest.Ctx(t, caller.Test), false, domain.Keys{Publishable: standInPublic, Secret: standInSecret}); err != nil {
		t.Fatal(err)
	}
	w.reconcile(nil)
	if row, err := storeIntent(ctx, w, p.ID); err != nil || row.Received != 10_000 {
		t.Errorf("%+v, %v", row, err)
	}
	if got := w.differences(); fmt.Sprint(got) != "map[intent:1]" {
		t.Errorf("%v", got)
	}
	for name, c := range map[string]struct {
		err       error
		at, after time.Duration
	}{
		"refused keys": {&domain.RefusedError{Unread: true}, 59 * time.Minute, time.Minute + time.Second},
		"an outage":    {errors.New("no route"), time.Second, 2 * time.Second},
	} {
		l := &lister{Lister: w.standIn.stripe, before: func(domain.Stage, string) error { return c.err }}
		var log bytes.Buffer
		logging := w.reconciler(l)
		logging.Log = slog.New(slog.NewTextHandler(&log, nil))
		if err := logging.Run(t.Context()); err != nil || len(l.calls) != 2 || strings.Count(log.String(), "account not compared") != 2 {
			t.Errorf("%s: %v, %v, log: %s", name, l.calls, err, &log)
		}
		w.ahead.Add(int64(c.at))
		if err := w.reconciler(l).Run(t.Context()); err != nil || len(l.calls) != 2 {
			t.Errorf("%s: too early: %v, %v", name, l.calls, err)
		}
		w.ahead.Add(int64(c.after))
		l.before = nil
		log.Reset()
		if err := logging.Run(t.Context()); err != nil || len(l.calls) != 8 || !strings.HasPrefix(l.calls[2], "intents ") || log.Len() != 0 {
			t.Errorf("%s: %v, %v, log: %s", name, l.calls, err, &log)
		}
		w.ahead.Add(int64(time.Hour + time.Second))
	}
	w.Exec(`update gateway_reconciliations set stage = 'refunds', cursor = 're_gone', started_at = now()`) // the gateway no longer knows it
	l := &lister{Lister: w.standIn.stripe}
	for range 2 {
		if err := w.reconciler(l).Run(t.Context()); err != nil {
			t.Error(err)
		}
		w.ahead.Add(int64(3 * time.Second))
	}
	if got := strings.Join(l.calls, ","); strings.Count(got, "refunds re_gone") != 2 || strings.Count(got, "refunds ,") != 2 || strings.Count(got, "disputes") != 2 {
		t.Errorf("%q", got)
	}
}

// TestReconcilerWhenRepairFails checks that an object that cannot be repaired is counted and does not delay others. If the gateway
// accepts no requests, the page is compared again, and each difference counts once.
func TestReconcilerWhenRepairFails(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	var bad intent
	for i := range 5 {
		p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
		if i == 2 {
			bad = p
		}
	}
	w.standIn.control("faults", map[string]any{"action": "rate_limit", "method": "GET", "path": "/v1/payment_intents/", "times": 2}, nil)
	if err := w.reconciler(nil).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.differences(); fmt.Sprint(got) != "map[intent:3]" {
		t.Errorf("%v", got)
	}
	w.Exec(fmt.Sprintf(`update payment_intents set status = 'requires_action', received = 0 where gateway_id = '%[1]s';
		alter table payment_intents add constraint broken check (gateway_id <> '%[1]s' or received = 0) not valid`, bad.ID))
	w.ahead.Add(int64(3 * time.Second))
	before := w.differences()["intent"]
	if err := w.reconciler(nil).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.differences()["intent"] - before; n < 2 || n > 3 { // the bad object may already have been repaired
		t.Errorf("%d differences", n)
	}
	if n := w.Count(`select count(*) from payment_intents where status = 'succeeded'`); n != 4 {
		t.Errorf("%d are repaired", n)
	}
	if n := w.Count(`select count(*) from gateway_reconciliations where started_at is null`); n != 1 {
		t.Error("the run has not ended")
	}
	w.Exec(`alter table payment_intents drop constraint broken`)
	w.ahead.Add(int64(time.Hour))
	w.reconcile(nil)
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
}

// TestReconcilerStopsWithoutADatabase checks that a run whose progress cannot be written makes no more calls to the gateway, and
// later continues from its page.
func TestReconcilerStopsWithoutADatabase(t *testing.T) {
	t.Parallel()
	w, _, _ := withStandIn(t)
	l := &lister{Lister: w.standIn.stripe}
	l.before = func(domain.Stage, string) error {
		if len(l.calls) == 1 {
			w.Exec(`alter table gateway_reconciliations add constraint dead check (false) not valid`)
		}
		return nil
	}
	w.run(w.reconciler(l).Run)
	if len(l.calls) != 1 {
		t.Errorf("%q", l.calls)
	}
	w.Exec(`alter table gateway_reconciliations drop constraint dead`)
	w.ahead.Add(int64(10 * time.Minute))
	w.run(w.reconciler(l).Run)
	if got := strings.Join(l.calls, ","); got != "intents ,intents ,refunds ,disputes " {
		t.Errorf("%q", got)
	}
}
