package api_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// ledger returns the balances of the ledger's accounts, by currency.
func (w *world) ledger(ctx context.Context, account domain.AccountID) map[domain.LedgerAccount]map[string]int64 {
	w.T.Helper()
	list, err := store.LedgerBalances(ctx, w.DB.App.Read(ctx), account)
	if err != nil {
		w.T.Fatal(err)
	}
	out := map[domain.LedgerAccount]map[string]int64{domain.GatewayBalance: {}, domain.GatewayFees: {}, domain.Payments: {}}
	for _, b := range list {
		out[b.Account][b.Currency] = b.Amount
	}
	return out
}

// balances reports where the ledger differs from the stand-in's balance transactions.
func (w *world) balances(ctx context.Context, account domain.Account) error {
	w.T.Helper()
	net, fees, count := w.standIn.moved()
	got := w.ledger(ctx, account.ID)
	maps.DeleteFunc(fees, func(_ string, n int64) bool { return n == 0 })
	if !maps.Equal(got[domain.GatewayBalance], net) || !maps.Equal(got[domain.GatewayFees], fees) {
		return fmt.Errorf("the ledger has %v, and the gateway %v and fees %v", got, net, fees)
	}
	for code, amount := range net {
		if got[domain.Payments][code] != -amount-fees[code] {
			return fmt.Errorf("%s does not balance: %v", code, got)
		}
	}
	if n := w.Count(`select count(distinct movement) from ledger_entries where ledger_account = 'gateway_balance'`); n != count {
		return fmt.Errorf("%d movements, and the gateway has %d", n, count)
	}
	return nil
}

// payAt creates an intent of a new booking and pays it at the stand-in. It also returns its charge.
func (w *world) payAt(ctx context.Context, code string, minor int64, more, method string) (p intent, charge string) {
	w.T.Helper()
	b := w.bookings.Add(ctx, "confirmed", minor, minor, code)
	p = w.post(ctx, fmt.Sprintf(`{"booking_id":%q%s}`, b.ID, more)).is(201).intent()
	return p, w.standIn.confirm(p.ID, method)
}

// deliver delivers events of these types about an intent, in any order and twice, and processes them.
func (w *world) deliver(account domain.Account, p intent, events ...string) {
	w.T.Helper()
	events = append(events, events...)
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, e := range events {
		kind, object, _ := strings.Cut(e, " ")
		body := fmt.Sprintf(`{"id":%q,"object":"charge","payment_intent":%q}`, object, p.ID)
		switch {
		case strings.HasPrefix(kind, "payment_intent."):
			body = fmt.Sprintf(`{"id":%q,"object":"payment_intent"}`, p.ID)
		case strings.Contains(kind, "refund.updated"):
			body = fmt.Sprintf(`{"id":%q,"object":"refund","payment_intent":%q}`, object, p.ID)
		}
		w.event(account.ID.String(), "whsec_1", time.Now(), eventBody(fmt.Sprintf("evt_%d", rand.Int64()), kind, body)).is(200)
	}
	w.work()
}

// TestLedgerIsTheGatewaysBalance checks that, after each step, the ledger matches the gateway's balance transactions in each
// currency. The steps are charges, partial captures, refunds, failed refunds, lost and won disputes, and refunds from the
// operator's dashboard. The entries of an intent show the reason.
func TestLedgerIsTheGatewaysBalance(t *testing.T) {
	t.Parallel()
	t.Run("fees", func(t *testing.T) {
		t.Parallel()
		followBalance(t, []string{"USD", "JPY", "KWD", "EUR"}, "LOCAL_STRIPE_FEE_BASIS_POINTS=290", "LOCAL_STRIPE_FEE_FIXED=30", "LOCAL_STRIPE_FEE_DISPUTE=1500")
	})
	t.Run("no fees", func(t *testing.T) {
		t.Parallel()
		followBalance(t, []string{"ISK", "UGX", "BHD"}) // the gateway counts the first two, including their fees, in hundredths
	})
}

func followBalance(t *testing.T, codes []string, settings ...string) {
	t.Helper()
	w, ctx, account := withStandIn(t, settings...)
	kinds := map[string]string{}
	check := func(code, step string, p intent) {
		t.Helper()
		if err := w.balances(ctx, account); err != nil {
			t.Errorf("%s, %s: %v", code, step, err)
		}
		row, err := storeIntent(ctx, w, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := store.LedgerOfIntent(ctx, w.DB.App.Read(ctx), row.ID, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			if e.Account == domain.Payments {
				got = append(got, string(e.Kind))
			}
		}
		slices.Sort(got)
		kinds[step] = strings.Join(got, " ")
	}
	for _, code := range codes {
		p, _ := w.payAt(ctx, code, 10_000, "", "pm_card_visa")
		w.deliver(account, p, "payment_intent.succeeded", "charge.succeeded ch")
		check(code, "charge", p)

		held, _ := w.payAt(ctx, code, 10_000, `,"capture_method":"manual"`, "pm_card_visa")
		w.deliver(account, held, "payment_intent.amount_capturable_updated", "charge.succeeded ch")
		check(code, "held", held)
		w.do(ctx, "POST", "/payment-intents/"+held.ID+"/capture", `{"amount_minor":4000}`, key(held.ID)).is(200)
		check(code, "captured in part", held) // before any event
		w.deliver(account, held, "charge.captured ch", "payment_intent.succeeded")

		r := w.refund(ctx, refundOf(p, `,"amount_minor":3000`)).is(201).refund()
		if err := w.balances(ctx, account); err != nil { // before any event
			t.Errorf("%s, refund: %v", code, err)
		}
		w.deliver(account, p, "charge.refunded ch")
		w.standIn.call("POST", "/v1/refunds", url.Values{"payment_intent": {p.ID}, "amount": {fmt.Sprint(stripeUnits(t, 1000, code))}}, nil)
		w.deliver(account, p, "charge.refunded ch")
		check(code, "refunds", p)
		w.standIn.control("refunds/"+*r.Allocations[0].Gateway+"/finish", map[string]any{"outcome": "failed"}, nil)
		w.deliver(account, p, "charge.refund.updated "+*r.Allocations[0].Gateway, "refund.updated "+*r.Allocations[0].Gateway)
		check(code, "a refund fails", p)

		for outcome, want := range map[string]bool{"won": false, "lost": true} {
			p, charge := w.payAt(ctx, code, 5_000, "", "pm_card_visa")
			var d struct{ ID string }
			w.standIn.control("charges/"+charge+"/dispute", map[string]any{"reason": "fraudulent"}, &d)
			w.deliver(account, p, "payment_intent.succeeded", "charge.dispute.created dp", "charge.dispute.funds_withdrawn dp")
			check(code, "disputed", p)
			w.standIn.control("disputes/"+d.ID+"/close", map[string]any{"outcome": outcome}, nil)
			w.deliver(account, p, "charge.dispute.closed dp")
			check(code, outcome, p)
			if row, err := storeIntent(ctx, w, p.ID); err != nil || row.Disputed != want {
				t.Errorf("%s: %+v, %v", outcome, row, err)
			}
		}
	}
	for step, want := range map[string]string{
		"charge": "charge", "held": "", "captured in part": "charge", "refunds": "charge refund refund",
		"a refund fails": "charge refund refund refund_failed", "disputed": "charge dispute", "won": "charge dispute dispute_reversed", "lost": "charge dispute",
	} {
		if kinds[step] != want {
			t.Errorf("%s: %s", step, kinds[step])
		}
	}
	if n := w.Count(`select count(*) from ledger_entries where kind = 'refund' and object like 're_%'`); n == 0 {
		t.Error("no refund names its object")
	}
}

func stripeUnits(t *testing.T, minor int64, code string) int64 {
	t.Helper()
	n, err := domain.ToStripe(minor, code)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMovementsAreWrittenOnce checks that each movement is written once if many processes read the same intent at the same time.
func TestMovementsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	atOnce(12, func(i int) {
		if i%3 == 0 {
			w.refund(ctx, refundOf(p, `,"amount_minor":100`))
			return
		}
		row, err := storeIntent(ctx, w, p.ID)
		if err == nil {
			_, err = w.intents.Refresh(ctx, account, row)
		}
		if err != nil {
			t.Error(err)
		}
	})
	w.refund(ctx, refundOf(p, `,"amount_minor":100`)).is(201)
	w.work()
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
	if n := w.Count(`select count(*) from ledger_entries`); n < 4 {
		t.Errorf("%d entries", n)
	}
}

// TestManyRefundsOfTheDashboard checks that, if an intent has more refunds than one response contains, a single read writes all of
// them to the ledger.
func TestManyRefundsOfTheDashboard(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, _ := w.payAt(ctx, "EUR", 10_000, "", "pm_card_visa")
	for range 13 {
		w.standIn.call("POST", "/v1/refunds", url.Values{"payment_intent": {p.ID}, "amount": {"100"}}, nil)
	}
	w.deliver(account, p, "charge.refunded ch")
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
	if n := w.refunded(ctx, p.ID); n != 1300 {
		t.Errorf("%d refunded", n)
	}
}

// TestAMovementIsWrittenWithItsState checks that a state and its movement are written together or not at all. If the transaction
// fails after the movement, nothing of it remains, and the next attempt writes it once.
func TestAMovementIsWrittenWithItsState(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	broken := func(f func()) {
		w.Exec(`alter table outbox add constraint broken check (false) not valid`)
		f()
		w.Exec(`alter table outbox drop constraint broken`)
	}
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	broken(func() {
		w.deliver(account, p, "payment_intent.succeeded")
		if n := w.Count(`select count(*) from ledger_entries`); n != 0 {
			t.Errorf("%d entries without the state", n)
		}
	})
	w.ahead.Add(int64(time.Minute))
	w.work()
	broken(func() {
		if a := w.refund(ctx, refundOf(p, `,"amount_minor":400`), key("k")); a.Status < 500 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		if n := w.Count(`select count(*) from ledger_entries where kind = 'refund'`); n != 0 {
			t.Errorf("%d entries without the state", n)
		}
	})
	w.ahead.Add(int64(time.Minute))
	if err := w.refunder.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
	w.refund(ctx, refundOf(p, `,"amount_minor":400`), key("k")).is(201)
	w.work()
	if n := w.Count(`select count(*) from ledger_entries`); n != 4 || w.balances(ctx, account) != nil {
		t.Errorf("%d entries", n)
	}
}

// TestLedgerIsAppendOnlyAndBalances checks that the database refuses entries that do not balance, and every change of existing
// entries.
func TestLedgerIsAppendOnlyAndBalances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	row, err := storeIntent(ctx, w, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	move := domain.Movement{ID: "txn_1", Kind: domain.MovedCharge, Object: "ch_1", Amount: 1000, Fee: 30, Currency: "USD", Paid: 920, PaidCurrency: "EUR", At: time.Now()}
	write := func(list ...domain.Movement) error {
		return w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.PutMovements(ctx, tx, row, list) })
	}
	if err := write(move, move); err != nil {
		t.Fatal(err)
	}
	if err := write(move); err != nil {
		t.Error(err)
	}
	if n := w.Count(`select count(*) from ledger_entries`); n != 5 {
		t.Errorf("%d entries", n)
	}
	const columns = `tenant_id, livemode, account_id, movement, ledger_account, currency, amount, kind, object, intent_id, moved_at`
	const ofPayments = `from ledger_entries l where l.tenant_id = @tenant and l.livemode = @live and l.ledger_account = 'payments'`
	for name, c := range map[string]struct{ sql, code string }{
		"one side": {`insert into ledger_entries (` + columns + `) select @tenant, @live, account_id, 'txn_2', ledger_account, currency, amount, kind,
			object, intent_id, moved_at ` + ofPayments, "23514"},
		"an entry more": {`insert into ledger_entries (` + columns + `) select @tenant, @live, account_id, movement, 'payments', 'USD', 1, kind,
			object, intent_id, moved_at ` + ofPayments, "23514"},
		"a change": {`update ledger_entries l set amount = 0 where l.tenant_id = @tenant and l.livemode = @live`, "42501"},
		"a loss":   {`delete from ledger_entries l where l.tenant_id = @tenant and l.livemode = @live`, "42501"},
		"a purge":  {`truncate ledger_entries`, "42501"},
	} {
		err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, c.sql, pg.Args{})
			return err
		})
		if pg.Code(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.Count(`select count(*) from ledger_entries`); n != 5 {
		t.Errorf("%d entries", n)
	}
}
