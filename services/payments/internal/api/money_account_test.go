package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// account reads an account of money in USD as customers does.
func (w *world) account(ctx context.Context, id fmt.Stringer, query string) internalapi.Account {
	w.T.Helper()
	return w.accountCall(ctx, "GET", id.String()+"?currency=USD"+query, "").account()
}

func (w *world) accountCall(ctx context.Context, method, path, body string) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, "customers", method, "/internal/v1/accounts/"+path, body)}
}

func (a response) account() internalapi.Account {
	a.T.Helper()
	return apitest.Decode[internalapi.Account](a.is(200).Response)
}

// receive records cash for an account.
func (w *world) receive(ctx context.Context, id fmt.Stringer, payment ids.Payment, minor, version int64) response {
	w.T.Helper()
	return w.accountCall(ctx, "POST", id.String()+"/receipts", fmt.Sprintf(`{"payment_id":%q,"invoice_id":%q,"amount":%d,"currency":"USD",
		"method":"cash","received_at":"2026-01-02T03:04:05Z","if_version":%d}`, payment, ids.New[ids.InvoicePrefix](), minor, version))
}

func (w *world) reverse(ctx context.Context, id fmt.Stringer, payment ids.Payment) response {
	w.T.Helper()
	return w.accountCall(ctx, "POST", fmt.Sprintf("%s/receipts/%s/reverse", id, payment), `{"currency":"USD","since":0}`)
}

// giveBack records the manual refund of a credit note.
func (w *world) giveBack(ctx context.Context, id fmt.Stringer, note ids.CreditNote, minor, version int64) response {
	w.T.Helper()
	return w.accountCall(ctx, "POST", id.String()+"/returns", fmt.Sprintf(`{"credit_note_id":%q,"invoice_id":%q,"amount":%d,"currency":"USD",
		"if_version":%d}`, note, ids.New[ids.InvoicePrefix](), minor, version))
}

// balanced fails the test if the sums of an account differ from its entries or its payments, or an event is missing.
func (w *world) balanced() {
	w.T.Helper()
	if n := w.Count(`select count(*) from (` + store.UnbalancedMoney + `) differ`); n != 0 {
		w.T.Fatalf("%d accounts differ from their payments", n)
	}
	if n := w.Count(`select count(*) from money_accounts where emitted <> version`); n != 0 {
		w.T.Fatalf("%d accounts have changed without an event", n)
	}
}

// accountEvents returns the objects of the events about an account.
func (w *world) accountEvents(id fmt.Stringer) (list []internalapi.Account) {
	w.T.Helper()
	for _, e := range w.Events() {
		if e.GetType() != "account.updated" || e.GetObjectId() != id.String() {
			continue
		}
		var a internalapi.Account
		if err := json.Unmarshal(e.GetObject(), &a); err != nil || a.Version != e.GetResourceVersion() || !e.GetInternal() {
			w.T.Errorf("%v, %v", e, err)
		}
		list = append(list, a)
	}
	return list
}

// TestMoneyAccount checks that an account has the payments by card and otherwise, that each is recorded once, and that each change has an
// event with the entries that changed.
func TestMoneyAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	if a := w.account(ctx, b.ID, "&since=0"); a.Version != 0 || a.Received != 0 || a.Entries == nil || len(a.Entries) != 0 || a.ID != b.ID.String() {
		t.Errorf("%+v", a)
	}
	card := w.paidOf(ctx, b, 600)
	cash := ids.New[ids.PaymentPrefix]()
	a := w.receive(ctx, b.ID, cash, 400, 1).account()
	if a.Received != 1000 || a.Version != 2 || len(a.Entries) != 1 || a.Entries[0].ID != cash.String() || a.Entries[0].Kind != "receipt" ||
		a.Entries[0].Method != "cash" || a.Entries[0].Amount != 400 || a.Entries[0].InvoiceID == nil || a.Entries[0].At.Year() != 2026 {
		t.Errorf("%+v", a)
	}
	w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 1, 1).is(409, "account_moved")
	if again := w.receive(ctx, b.ID, cash, 400, 1).account(); again.Version != 2 || again.Received != 1000 {
		t.Errorf("%+v", again)
	}
	r := w.refund(ctx, refundOf(card, `,"amount_minor":150`)).is(201).refund()
	w.refresh(ctx, card.ID)
	note := ids.New[ids.CreditNotePrefix]()
	w.giveBack(ctx, b.ID, note, 851, domain.AnyVersion).is(422, "invalid_request", "amount")
	a = w.giveBack(ctx, b.ID, note, 850, domain.AnyVersion).account()
	if again := w.giveBack(ctx, b.ID, note, 850, 0).account(); again.Version != a.Version || again.Returned != 1000 {
		t.Errorf("%+v", again)
	}
	if e := a.Entries[len(a.Entries)-1]; a.Returned != 1000 || len(a.Entries) != 3 || e.ID != note.String() || e.Kind != "return" || e.Amount != 850 || *e.CreditNoteID != note.String() {
		t.Errorf("%+v", a)
	}
	if e := a.Entries[1]; e.ID != card.ID || e.Kind != "card" || e.Amount != 600 || e.Returned != 150 || e.Method != "card" {
		t.Errorf("%+v", a)
	}
	w.reverse(ctx, b.ID, cash).is(422, "invalid_request", "payment_id")
	if got := w.reverse(ctx, b.ID, cash); !strings.Contains(string(got.Body), r.ID) {
		t.Errorf("no refund is named: %s", got.Body)
	}
	w.reverse(ctx, b.ID, ids.New[ids.PaymentPrefix]()).is(404, "invoice_payment_not_found")
	w.accountCall(ctx, "GET", "cu_1?currency=USD", "").is(404, "booking_not_found")
	w.accountCall(ctx, "GET", b.ID.String(), "").is(422, "invalid_request", "currency")
	w.balanced()
	var seen int64
	merged := map[string]internalapi.AccountEntry{}
	for _, e := range w.accountEvents(b.ID) {
		if e.Version <= seen {
			t.Errorf("version %d after %d", e.Version, seen)
		}
		seen = e.Version
		for _, entry := range e.Entries {
			merged[entry.ID] = entry
		}
	}
	full := w.account(ctx, b.ID, "&since=0")
	if seen != full.Version || len(merged) != len(full.Entries) {
		t.Errorf("events up to %d with %d entries, and %+v", seen, len(merged), full)
	}
	for _, e := range full.Entries {
		if got, want := fmt.Sprintf("%+v", merged[e.ID].Version), fmt.Sprint(e.Version); got != want {
			t.Errorf("%s: version %s in events, and %s", e.ID, got, want)
		}
	}
	other := pgtest.Ctx(t, caller.Test)
	for _, elsewhere := range []context.Context{other, pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live)} {
		if a := w.account(elsewhere, b.ID, "&since=0"); a.Received != 0 || a.Version != 0 || len(a.Entries) != 0 {
			t.Errorf("%+v", a)
		}
		w.reverse(elsewhere, b.ID, cash).is(404, "invoice_payment_not_found")
	}
}

// TestInvoiceMoney checks the account of an invoice without a booking, whose payment is reversed once.
func TestInvoiceMoney(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	invoice, payment := ids.New[ids.InvoicePrefix](), ids.New[ids.PaymentPrefix]()
	w.receive(ctx, invoice, payment, 70, 0).is(200)
	for range 2 {
		a := w.reverse(ctx, invoice, payment).account()
		if a.Received != 0 || a.Version != 2 || len(a.Entries) != 1 || a.Entries[0].ReversedAt == nil || a.Entries[0].Amount != 70 {
			t.Errorf("%+v", a)
		}
	}
	if a := w.receive(ctx, invoice, payment, 70, 2).account(); a.Received != 0 || a.Version != 2 { // late repetition
		t.Errorf("%+v", a)
	}
	w.balanced()
}

// TestReceiptRace checks that of parallel receipts that rest on one version, one is recorded, and that parallel repetitions of one
// receipt record it once.
func TestReceiptRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	var won atomic.Int64
	atOnce(20, func(int) {
		if a := w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 1000, 0); a.Status == 200 {
			won.Add(1)
		} else if a.Status != 409 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	if a := w.account(ctx, b.ID, ""); won.Load() != 1 || a.Received != 1000 || a.Version != 1 {
		t.Errorf("%d were recorded: %+v", won.Load(), a)
	}
	once := ids.New[ids.PaymentPrefix]()
	atOnce(20, func(int) { w.receive(ctx, b.ID, once, 50, domain.AnyVersion).is(200) })
	if a := w.account(ctx, b.ID, ""); a.Received != 1050 || a.Version != 2 {
		t.Errorf("%+v", a)
	}
	w.balanced()
}

// TestManyEntries checks that the entries of an account come in pages, each after the version of the last entry, and that an event has
// no more of them than a page.
func TestManyEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	c := caller.FromContext(ctx)
	w.Exec(`select move_money($1, $2, $3, 'booking', 'USD', 'received', 1, 0, true, 'cash', 'pay_' || n, null, null, now())
		from generate_series(1, 1001) n`, c.Tenant.UUID(), c.Live(), b.ID.UUID())
	var got []string
	since, pages := int64(0), 0
	for more := true; more; pages++ {
		a := w.account(ctx, b.ID, fmt.Sprintf("&since=%d", since))
		for _, e := range a.Entries {
			got = append(got, e.ID)
		}
		since, more = a.Entries[len(a.Entries)-1].Version, a.More
	}
	if slices.Sort(got); pages != 3 || len(slices.Compact(got)) != 1001 {
		t.Errorf("%d entries on %d pages", len(got), pages)
	}
	w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 1, domain.AnyVersion).is(200)
	if events := w.accountEvents(b.ID); len(events) != 1 || len(events[0].Entries) != domain.MaxMoneyEntries || !events[0].More {
		t.Errorf("%d events", len(events))
	}
	w.balanced()
}
