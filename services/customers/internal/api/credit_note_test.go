package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
)

// note is the response body of a credit note as a client reads it.
type note struct {
	ID, Object, Number, Status, Mode string
	Version                          int64
	InvoiceID                        string  `json:"invoice_id"`
	CustomerID                       string  `json:"customer_id"`
	BookingID                        *string `json:"booking_id"`
	Reason                           *string
	LineItems                        []struct {
		Description string
		UnitAmount  amount `json:"unit_amount"`
		TaxAmount   amount `json:"tax_amount"`
	} `json:"line_items"`
	Tax          amount `json:"tax_amount"`
	Total        amount `json:"total_amount"`
	Refund       string
	RefundAmount amount  `json:"refund_amount"`
	RefundID     *string `json:"refund_id"`
}

func (a response) note() note { return decode[note](a) }

// credit creates a credit note of an invoice.
func (w *world) credit(ctx context.Context, v invoice, body string, headers ...header) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/invoices/"+v.ID+"/credit-notes", body, headers...)
}

func (w *world) readInvoice(ctx context.Context, id string) invoice {
	w.T.Helper()
	return w.do(ctx, "GET", "/invoices/"+id, "").is(200).invoice()
}

// has checks the amounts and the status of an invoice.
func (w *world) has(ctx context.Context, v invoice, status string, paid, credited, due int64) {
	w.T.Helper()
	got := w.readInvoice(ctx, v.ID)
	if got.Status != status || got.AmountPaid.Amount != paid || got.Credited.Amount != credited || got.AmountDue.Amount != due {
		w.T.Errorf("%s, paid %d, credited %d, due %d; want %s, %d, %d, %d", got.Status, got.AmountPaid.Amount, got.Credited.Amount,
			got.AmountDue.Amount, status, paid, credited, due)
	}
}

// cardPaid creates an open invoice of a booking, of which a card paid an amount with the charge pi_<name>.
func (w *world) cardPaid(ctx context.Context, name string, total, paid int64) (invoice, domain.Charge) {
	w.T.Helper()
	c := w.create(ctx, "")
	id, err := ids.Parse[ids.CustomerPrefix](c.ID)
	if err != nil {
		w.T.Fatal(err)
	}
	b := w.bookings.AddBooking(id, money.Amount{Minor: total, Currency: "USD"})
	v := w.do(ctx, "POST", "/invoices", fmt.Sprintf(`{"booking_id":%q,"line_items":[%s]}`, b.ID, line(total))).is(201).invoice()
	w.act(ctx, v, "open").is(200)
	charge := domain.Charge{ID: "pi_" + name, Account: domain.AccountRef{Booking: b.ID, Currency: "USD"}, Amount: money.Amount{Minor: paid, Currency: "USD"}}
	return v, w.charged(ctx, charge)
}

// charged changes a card payment, and delivers the event about its account.
func (w *world) charged(ctx context.Context, c domain.Charge) domain.Charge {
	w.T.Helper()
	w.payments.Card(c)
	w.deliver(ctx, c.Account)
	return c
}

// deliver delivers the event about the last change of an account.
func (w *world) deliver(ctx context.Context, of domain.AccountRef) {
	w.T.Helper()
	if err := w.accounts.ApplyEvent(ctx, w.payments.Event(of)); err != nil {
		w.T.Fatal(err)
	}
}

// payer returns the context of a new tenant whose credential can also refund card payments.
func payer(t *testing.T) context.Context {
	t.Helper()
	return withScopes(pgtest.Ctx(t, caller.Test), "payments:write")
}

// TestCreditNote checks that credit notes lower what is due, that one of the whole rest ends the invoice without invoice.paid, and
// that nothing can be credited twice.
func TestCreditNote(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 1000)
	before := len(w.Events())
	a := w.credit(ctx, v, `{"amount":`+usd(300)+`,"reason":"Rain"}`, "Idempotency-Key: k").is(201)
	n := a.note()
	if !strings.HasPrefix(n.ID, "cn_") || n.Object != "credit_note" || n.Number != "CN-000001" || n.Status != "issued" || n.InvoiceID != v.ID ||
		n.CustomerID != v.CustomerID || n.BookingID != nil || deref(n.Reason) != "Rain" || n.Total.Amount != 300 || n.Refund != "none" ||
		n.RefundAmount.Amount != 0 || n.RefundID != nil || n.Version != 1 || n.Mode != "test" || len(n.LineItems) != 1 {
		t.Errorf("%s", a.Body)
	}
	if a.Header.Get("Location") != "/api/v1/credit-notes/"+n.ID || a.Header.Get("ETag") != `"1"` {
		t.Errorf("%v", a.Header)
	}
	if again := w.credit(ctx, v, `{"amount":`+usd(300)+`,"reason":"Rain"}`, "Idempotency-Key: k").is(201); string(again.Body) != string(a.Body) ||
		again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s", again.Body)
	}
	w.credit(ctx, v, `{"amount":`+usd(301)+`}`, "Idempotency-Key: k").is(422, "idempotency_mismatch", "Idempotency-Key")
	w.has(ctx, v, "open", 0, 300, 700)
	w.credit(ctx, v, `{"amount":`+usd(701)+`}`).is(422, "invalid_request", "amount")
	w.credit(ctx, v, `{"line_items":[`+line(701)+`]}`).is(422, "invalid_request", "line_items")
	w.credit(ctx, v, `{"line_items":[`+line(0)+`]}`).is(422, "invalid_request", "line_items")
	w.credit(ctx, v, `{"line_items":[`+line(1)+`],"amount":`+usd(1)+`}`).is(422, "invalid_request", "amount")
	w.credit(ctx, v, `{"amount":{"amount":1,"currency":"EUR"}}`).is(422, "invalid_request", "amount.currency")
	w.credit(ctx, v, `{"refund":"card"}`).is(422, "invalid_request", "refund")
	w.credit(ctx, v, `{"amount":`+usd(1)+`}`, `If-Match: "1"`).is(412, "version_mismatch")
	if second := w.credit(ctx, v, `{"line_items":[`+line(200)+`]}`, `If-Match: "3"`).is(201).note(); second.Number != "CN-000002" || second.Total.Amount != 200 {
		t.Errorf("%+v", second)
	}
	if rest := w.credit(ctx, v, ``).is(201).note(); rest.Number != "CN-000003" || rest.Total.Amount != 500 {
		t.Errorf("%+v", rest)
	}
	w.has(ctx, v, "credited", 0, 1000, 0)
	w.credit(ctx, v, ``).is(422, "invalid_status_transition", "status")
	w.pay(ctx, v, 1).is(422, "invalid_status_transition", "status")
	w.act(ctx, v, "void").is(422, "invalid_status_transition", "status")
	types := ""
	for _, e := range w.Events()[before:] {
		types += e.Type + " "
		if !e.Internal {
			t.Errorf("%s is public", e.Type)
		}
	}
	if types != strings.Repeat("invoice.updated credit_note.updated ", 3) {
		t.Error(types)
	}
	if got := w.do(ctx, "GET", "/credit-notes/"+n.ID, "").is(200); string(got.Body) != string(a.Body) {
		t.Errorf("%s", got.Body)
	}
}

// TestCreditNoteStates checks in which status an invoice can be credited, and what becomes of it.
func TestCreditNoteStates(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	draft := w.draft(ctx, 100)
	w.credit(ctx, draft, ``).is(422, "invalid_status_transition", "status")
	void := w.open(ctx, 100)
	w.act(ctx, void, "void").is(200)
	w.credit(ctx, void, ``).is(422, "invalid_status_transition", "status")

	partly := w.open(ctx, 100)
	w.credit(ctx, partly, `{"amount":`+usd(30)+`}`).is(201)
	w.act(ctx, partly, "void").is(422, "invalid_status_transition", "status") // its credit note would credit nothing
	w.pay(ctx, partly, 71).is(422, "invalid_request", "amount")
	w.pay(ctx, partly, 70).is(200)
	w.has(ctx, partly, "paid", 70, 30, 0)

	mixed := w.open(ctx, 100)
	w.pay(ctx, mixed, 40).is(200)
	before := len(w.Events())
	w.credit(ctx, mixed, `{"amount":`+usd(60)+`}`).is(201)
	w.has(ctx, mixed, "paid", 40, 60, 0)
	if e := w.Events()[before]; e.Type != "invoice.paid" || e.Internal {
		t.Errorf("a payment and a credit cover the invoice: %s", e.Type)
	}

	lost := w.open(ctx, 100)
	w.act(ctx, lost, "mark-uncollectible").is(200)
	w.credit(ctx, lost, `{"amount":`+usd(1)+`}`).is(201)
	w.has(ctx, lost, "uncollectible", 0, 1, 99)
	w.credit(ctx, lost, ``).is(201)
	w.has(ctx, lost, "credited", 0, 100, 0)
	if list := w.do(ctx, "GET", "/invoices?overdue=false&status=credited", "").is(200); !strings.Contains(string(list.Body), lost.ID) {
		t.Errorf("%s", list.Body)
	}
}

// TestManualRefund checks that a credit note refunds only what was paid beyond the new total, and that this is not owed again.
func TestManualRefund(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 100)
	w.pay(ctx, v, 80).is(200)
	for i, c := range []struct {
		amount        int64
		refund        string
		refunded      int64
		status        string
		credited, due int64
	}{
		{10, "manual", 0, "partially_paid", 10, 10},
		{30, "manual", 20, "paid", 40, 0}, // 60 are left, of the 80 that were paid
		{10, "none", 0, "paid", 50, 0},
		{10, "manual", 20, "paid", 60, 0}, // with what the note before left
		{40, "manual", 40, "paid", 100, 0},
	} {
		n := w.credit(ctx, v, fmt.Sprintf(`{"amount":%s,"refund":%q}`, usd(c.amount), c.refund)).is(201).note()
		if n.RefundAmount.Amount != c.refunded || n.Status != "issued" || n.RefundID != nil || n.Refund != c.refund {
			t.Errorf("%d: %+v", i, n)
		}
		w.has(ctx, v, c.status, 80, c.credited, c.due)
	}
	w.credit(ctx, v, ``).is(422, "invalid_request", "amount")
	if count, _, calls := w.payments.Refunded(); count != 0 || calls != 0 {
		t.Errorf("%d refunds by card", count)
	}
}

// TestReversalAfterCredit checks which status a credited invoice has after a payment is reversed.
func TestReversalAfterCredit(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for name, c := range map[string]struct {
		payments []int64
		credit   int64
		refund   string
		status   string // after the first payment is reversed
		due      int64
	}{
		"all is credited":           {[]int64{100}, 100, "none", "credited", 0},
		"the rest is still covered": {[]int64{40, 60}, 40, "none", "paid", 0},
		"a part is due":             {[]int64{60, 40}, 40, "none", "partially_paid", 20},
		"the whole rest is due":     {[]int64{100}, 40, "none", "open", 60},
	} {
		v := w.open(ctx, 100)
		for _, minor := range c.payments {
			w.pay(ctx, v, minor).is(200)
		}
		w.credit(ctx, v, fmt.Sprintf(`{"amount":%s,"refund":%q}`, usd(c.credit), c.refund)).is(201)
		paid := w.readInvoice(ctx, v.ID)
		after := w.act(ctx, v, "payments/"+paid.Payments[0].ID+"/reverse").is(200).invoice()
		if after.Status != c.status || after.AmountDue.Amount != c.due || (after.PaidAt != nil) != (c.status == "paid") {
			t.Errorf("%s: %s, due %d, paid at %v", name, after.Status, after.AmountDue.Amount, after.PaidAt)
		}
	}
}

// TestReversalOfWhatWasRefunded checks that a payment cannot be reversed if less would be left than a credit note has refunded.
func TestReversalOfWhatWasRefunded(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 100)
	payment := w.pay(ctx, v, 100).is(200).invoice().Payments[0].ID
	w.credit(ctx, v, `{"amount":`+usd(40)+`,"refund":"manual"}`).is(201)
	w.act(ctx, v, "payments/"+payment+"/reverse").is(422, "invalid_request", "payment_id")
	w.has(ctx, v, "paid", 100, 40, 0)
}

// TestCreditNoteRace checks that 50 credit notes of an invoice at the same time never exceed its total, and that their numbers have
// no gap.
func TestCreditNoteRace(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 1000)
	atOnce(50, func(int) {
		if a := w.credit(ctx, v, `{"amount":`+usd(100)+`}`); a.Status != 201 && a.Status != 422 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	w.has(ctx, v, "credited", 0, 1000, 0)
	if n := w.Count(`select count(*) from credit_notes where total = 100 and seq between 1 and 10`); n != 10 {
		t.Errorf("%d of 10 credit notes", n)
	}
	if n := w.Count(`select next from credit_note_counters`); n != 11 {
		t.Errorf("the next number is %d", n)
	}
}

// TestCreditNotesOfAnInvoice checks the limit of credit notes.
func TestCreditNotesOfAnInvoice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 1000)
	w.Exec(`update invoices set credit_notes = ` + fmt.Sprint(domain.MaxCreditNotes-1))
	w.credit(ctx, v, `{"amount":`+usd(1)+`}`).is(201)
	w.credit(ctx, v, `{"amount":`+usd(1)+`}`).is(422, "limit_reached", "amount")
}

// TestCreditNoteIsolation checks that a credit note is visible only in its tenant and mode, and filtered by its invoice.
func TestCreditNoteIsolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	live := in(ctx, func(c *caller.Caller) { c.Mode = caller.Live })
	v := w.open(ctx, 100)
	n := w.credit(ctx, v, `{"amount":`+usd(1)+`}`).is(201).note()
	for _, path := range []string{"/credit-notes/" + n.ID, "/credit-notes/" + n.ID + "/pdf"} {
		w.do(live, "GET", path, "").is(403, "mode_mismatch")
		w.do(pgtest.Ctx(t, caller.Test), "GET", path, "").is(404, "credit_note_not_found")
	}
	w.credit(live, v, ``).is(403, "mode_mismatch")
	w.credit(pgtest.Ctx(t, caller.Test), v, ``).is(404, "invoice_not_found")
	w.do(ctx, "GET", "/credit-notes/cn_x", "").is(404, "credit_note_not_found")
	other := w.open(ctx, 100)
	w.credit(ctx, other, `{"amount":`+usd(1)+`}`).is(201)
	if m := w.credit(live, w.open(live, 5), ``).is(201).note(); m.Number != "CN-000001" || m.Mode != "live" {
		t.Errorf("%+v", m)
	}
	w.do(ctx, "GET", "/credit-notes?cursor=x", "").is(400, "invalid_cursor")
	for filter, want := range map[string]int{
		"": 2, "?invoice_id=" + v.ID: 1, "?customer_id=" + other.CustomerID: 1, "?invoice_id=inv_x": 0, "?booking_id=" + ids.New[ids.BookingPrefix]().String(): 0,
	} {
		list := decode[struct{ Data []note }](w.do(ctx, "GET", "/credit-notes"+filter, "").is(200))
		if len(list.Data) != want {
			t.Errorf("%q: %d", filter, len(list.Data))
		}
	}
}
