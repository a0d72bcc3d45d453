package api_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
)

// The tests of this file deliver no event of payments unless they say so: each decision is right without them.

// accountOf returns the account of an invoice.
func (w *world) accountOf(v invoice) domain.AccountRef {
	w.T.Helper()
	id, booking := deref(v.BookingID), domain.BookingID{}
	if id == "" {
		id = v.ID
	} else if parsed, err := ids.Parse[ids.BookingPrefix](id); err == nil {
		booking = parsed
	}
	of, err := domain.ParseAccount(id, v.Total.Currency)
	if err != nil || of.Booking != booking {
		w.T.Fatal(err)
	}
	return of
}

// booked creates an open invoice of a booking, or of the booking of another invoice.
func (w *world) booked(ctx context.Context, total int64, of ...invoice) invoice {
	w.T.Helper()
	var booking string
	if len(of) > 0 {
		booking = *of[0].BookingID
	} else {
		id, err := ids.Parse[ids.CustomerPrefix](w.create(ctx, "").ID)
		if err != nil {
			w.T.Fatal(err)
		}
		booking = w.bookings.AddBooking(id, money.Amount{Minor: total, Currency: "USD"}).ID.String()
	}
	v := w.do(ctx, "POST", "/invoices", fmt.Sprintf(`{"booking_id":%q,"line_items":[%s]}`, booking, line(total))).is(201).invoice()
	return w.act(ctx, v, "open").is(200).invoice()
}

// card is a card payment for the booking of an invoice. Its event is not delivered.
func (w *world) card(v invoice, id string, amount, refunded int64) {
	w.T.Helper()
	of := w.accountOf(v)
	w.payments.Card(domain.Charge{
		ID: id, Account: of, Amount: money.Amount{Minor: amount, Currency: of.Currency}, ChargeState: domain.ChargeState{Refunded: refunded},
	})
}

// keyed is an action with an Idempotency-Key.
func (w *world) keyed(ctx context.Context, v invoice, action, body string) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/invoices/"+v.ID+"/"+action, body, "Idempotency-Key: k")
}

// cash is the body of record-payment.
func cash(amount int64) string {
	return `{"amount":` + usd(amount) + `,"method":"cash","reference":"R 1"}`
}

// TestPaymentAfterCard checks that an invoice accepts only what is due after a card payment whose event has not arrived.
func TestPaymentAfterCard(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v := w.booked(ctx, 1000)
	w.card(v, "pi_1", 1000, 0)
	w.keyed(ctx, v, "record-payment", cash(1000)).is(422, "invalid_status_transition", "status")
	w.has(ctx, v, "paid", 1000, 0, 0)
	part := w.booked(ctx, 1000)
	w.card(part, "pi_2", 600, 0)
	w.keyed(ctx, part, "record-payment", cash(401)).is(422, "invalid_request", "amount")
	w.keyed(ctx, part, "record-payment", cash(400)).is(200)
	w.has(ctx, part, "paid", 1000, 0, 0)
	if n := w.Count(`select count(*) from charges where call_until is not null`); n != 0 {
		t.Errorf("%d payments are open", n)
	}
	if received, _ := w.payments.Sums(w.accountOf(v)); received != 1000 {
		t.Errorf("%d received", received)
	}
}

// TestPaymentsAtOnce checks that 20 payments of one invoice at the same time never exceed what is due.
func TestPaymentsAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 1000)
	var recorded atomic.Int64
	atOnce(20, func(int) {
		switch a := w.act(ctx, v, "record-payment", cash(300)); a.Status {
		case 200:
			recorded.Add(1)
		case 422, 503:
		default:
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	received, _ := w.payments.Sums(w.accountOf(v))
	if got := w.readInvoice(ctx, v.ID); recorded.Load() != 3 || received != 900 || got.AmountPaid.Amount != 900 {
		t.Errorf("%d recorded, %d received, %d paid", recorded.Load(), received, got.AmountPaid.Amount)
	}
	if n := w.Count(`select count(*) from charges`); n != 3 {
		t.Errorf("%d charges", n)
	}
}

// TestCrashedPayment checks that a payment is recorded once if the process ends before or after the call to payments: a repeated
// request, the completer or the event of payments completes it, with its reference.
func TestCrashedPayment(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after", "timeout"} {
		for _, who := range []string{"client", "completer", "event", "void"} {
			if when == "before" && (who == "event" || who == "void") {
				continue
			}
			t.Run(when+", "+who, func(t *testing.T) {
				t.Parallel()
				w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
				v := w.open(ctx, 100)
				crash := func(context.Context) error {
					w.payments.Before, w.payments.After = nil, nil
					if when == "timeout" {
						return apperr.ErrTimeout
					}
					return errors.New("crash")
				}
				w.payments.After = crash
				if when == "before" {
					w.payments.Before, w.payments.After = crash, nil
				}
				w.keyed(ctx, v, "record-payment", cash(100)).is(map[string]int{"before": 500, "after": 500, "timeout": 504}[when])
				w.has(ctx, v, "open", 0, 0, 100)
				if when == "before" {
					w.act(ctx, v, "void").is(409, "idempotency_in_progress")
				}
				w.clock.move(31 * time.Second)
				switch who {
				case "void": // reads the account first
					w.act(ctx, v, "void").is(422, "invalid_status_transition")
					w.has(ctx, v, "paid", 100, 0, 0)
				case "completer":
					if err := w.completers.Receipts(w.accounts)(t.Context()); err != nil {
						t.Fatal(err)
					}
				case "event":
					w.deliver(ctx, w.accountOf(v))
				}
				a := w.keyed(ctx, v, "record-payment", cash(100)).is(200).invoice()
				if len(a.Payments) != 1 || a.Status != "paid" || deref(a.Payments[0].Reference) != "R 1" || a.Payments[0].Method != "cash" {
					t.Errorf("%+v", a.Payments)
				}
				if received, _ := w.payments.Sums(w.accountOf(v)); received != 100 {
					t.Errorf("%d received", received)
				}
				if n := w.Count(`select count(*) from charges where call_until is not null`); n != 0 {
					t.Error("the request is still open")
				}
				w.deliver(ctx, w.accountOf(v))
				w.has(ctx, v, "paid", 100, 0, 0)
			})
		}
	}
}

// TestPaymentTakenOver checks that a refusal of an attempt that another one has taken over does not discard what that one has recorded.
func TestPaymentTakenOver(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 100)
	w.payments.Before = func(context.Context) error {
		w.payments.Before = nil
		w.clock.move(31 * time.Second)
		if err := w.completers.Receipts(w.accounts)(t.Context()); err != nil {
			return err
		}
		return domain.ErrAccountMoved
	}
	a := w.keyed(ctx, v, "record-payment", cash(100)).is(200).invoice()
	if received, _ := w.payments.Sums(w.accountOf(v)); len(a.Payments) != 1 || received != 100 {
		t.Errorf("%d received, %+v", received, a.Payments)
	}
	w.keyed(ctx, v, "record-payment", cash(100)).is(200)
}

// TestPaymentIsDecidedAgain checks that a payment that payments has not recorded is decided again when a repeated request or the completer
// resumes it, because another payment can have been recorded in the meantime.
func TestPaymentIsDecidedAgain(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"request", "completer"} {
		w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
		v := w.open(ctx, 100)
		w.payments.Before = func(context.Context) error { return apperr.ErrTimeout }
		w.keyed(ctx, v, "record-payment", cash(100)).is(504)
		w.payments.Before = nil
		w.pay(ctx, v, 60).is(200)
		w.clock.move(31 * time.Second)
		if who == "completer" {
			if err := w.completers.Receipts(w.accounts)(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.keyed(ctx, v, "record-payment", cash(100)).is(422, "invalid_request", "amount")
		if received, _ := w.payments.Sums(w.accountOf(v)); received != 60 {
			t.Errorf("%s: %d received", who, received)
		}
		w.has(ctx, v, "partially_paid", 60, 0, 40)
		w.pay(ctx, v, 40).is(200)
	}
}

// TestPaymentRefusedMeanwhile checks that a process does not record a payment that the completer has discarded because it was refused. It
// begins again.
func TestPaymentRefusedMeanwhile(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 100)
	w.payments.Before = func(context.Context) error {
		w.payments.Before = nil
		other := w.pay(ctx, v, 100).is(200).invoice().Payments[0].ID
		w.clock.move(31 * time.Second)
		if err := w.completers.Receipts(w.accounts)(t.Context()); err != nil {
			return err
		}
		w.act(ctx, v, "payments/"+other+"/reverse").is(200)
		return domain.ErrAccountMoved
	}
	list := w.keyed(ctx, v, "record-payment", cash(100)).is(200).invoice().Payments
	if received, _ := w.payments.Sums(w.accountOf(v)); received != 100 || len(list) != 2 || deref(list[1].Reference) != "R 1" {
		t.Errorf("%d received, %+v", received, list)
	}
}

// TestCreditIsComputedAgain checks that the refund of a credit note that payments has not recorded is computed again when the completer
// resumes it.
func TestCreditIsComputedAgain(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v := w.open(ctx, 100)
	first := w.pay(ctx, v, 50).is(200).invoice().Payments[0].ID
	w.pay(ctx, v, 50).is(200)
	w.payments.Before = func(context.Context) error { return apperr.ErrTimeout }
	w.credit(ctx, v, `{"amount":`+usd(40)+`,"refund":"manual"}`).is(201)
	w.payments.Before = nil
	w.act(ctx, v, "payments/"+first+"/reverse").is(200)
	w.clock.move(31 * time.Second)
	if err := w.completers.CreditNotes(w.notes)(t.Context()); err != nil {
		t.Fatal(err)
	}
	if received, returned := w.payments.Sums(w.accountOf(v)); received != 50 || returned != 0 {
		t.Errorf("%d received, %d returned", received, returned)
	}
	w.has(ctx, v, "partially_paid", 50, 40, 10)
}

// TestRepeatedReversal checks that a reversal whose response was lost is completed by a repeated request.
func TestRepeatedReversal(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 100)
	payment := w.pay(ctx, v, 100).is(200).invoice().Payments[0].ID
	w.payments.After = func(context.Context) error { return apperr.ErrTimeout }
	path := "payments/" + payment + "/reverse"
	w.keyed(ctx, v, path, "").is(504)
	w.payments.After = nil
	for range 2 {
		w.keyed(ctx, v, path, "").is(200)
	}
	w.act(ctx, v, path, "").is(200)
	w.has(ctx, v, "open", 0, 0, 100)
}

// TestReversalOfACreditedInvoice checks that a payment of a credited invoice can be reversed.
func TestReversalOfACreditedInvoice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 100)
	payment := w.pay(ctx, v, 40).is(200).invoice().Payments[0].ID
	w.credit(ctx, v, ``).is(201)
	w.has(ctx, v, "credited", 40, 100, 0)
	w.act(ctx, v, "payments/"+payment+"/reverse").is(200)
	w.has(ctx, v, "credited", 0, 100, 0)
	if received, _ := w.payments.Sums(w.accountOf(v)); received != 0 {
		t.Errorf("%d received", received)
	}
}

// TestCreditAfterRefund checks that a credit note returns nothing more after a refund whose event has not arrived, by card and in cash.
func TestCreditAfterRefund(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"card", "cash"} {
		w, ctx := newWorld(t), payer(t)
		v := w.booked(ctx, 1000)
		w.card(v, "pi_1", 1000, 0)
		if method == "card" {
			w.card(v, "pi_1", 1000, 400)
		} else if !w.payments.HandBack(w.accountOf(v), "rf_1", 400) {
			t.Fatal("nothing is left")
		}
		n := w.credit(ctx, v, `{"amount":`+usd(400)+`,"refund":"gateway"}`).is(201).note()
		if _, returned := w.payments.Sums(w.accountOf(v)); n.RefundAmount.Amount != 0 || returned != 400 {
			t.Errorf("%s: refunded %d, returned %d", method, n.RefundAmount.Amount, returned)
		}
		w.has(ctx, v, "paid", 1000, 400, 0)
		n = w.credit(ctx, v, `{"refund":"gateway"}`).is(201).note()
		if n.RefundAmount.Amount != 600 || n.Status != "issued" {
			t.Errorf("%s: %+v", method, n)
		}
	}
}

// TestCreditWhileTheAccountMoves checks that the refund of a credit note is computed again if money is returned between its decision and
// its recording. The credit does not change.
func TestCreditWhileTheAccountMoves(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"gateway", "manual"} {
		for _, moved := range []int64{100, 400, 700} {
			w, ctx := newWorld(t), payer(t)
			v := w.booked(ctx, 1000)
			w.card(v, "pi_1", 1000, 0)
			w.payments.Before = func(context.Context) error {
				w.payments.Before = nil
				w.card(v, "pi_1", 1000, moved)
				return nil
			}
			n := w.credit(ctx, v, fmt.Sprintf(`{"amount":%s,"refund":%q}`, usd(400), way)).is(201).note()
			want := max(0, 400-moved)
			if n.RefundAmount.Amount != want || n.Total.Amount != 400 || n.Status != "issued" {
				t.Errorf("%s, %d: %+v", way, moved, n)
			}
			if w.Count(`select count(*) from credit_notes where call_until is null`) != 1 {
				t.Errorf("%s, %d: the request is still open", way, moved)
			}
			_, returned := w.payments.Sums(w.accountOf(v))
			_, held, _ := w.payments.Refunded()
			if returned+held != max(400, moved) {
				t.Errorf("%s, %d: %d and %d are returned", way, moved, returned, held)
			}
			w.has(ctx, v, "paid", 1000, 400, 0)
		}
	}
}

// TestManualRefundIsRecorded checks that the manual refund of a credit note reaches the ledger, once, whatever the outcome of the request
// that recorded it.
func TestManualRefundIsRecorded(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"request", "completer", "event"} {
		w, ctx := newWorld(t), payer(t)
		v := w.booked(ctx, 1000)
		w.card(v, "pi_1", 1000, 0)
		if who != "request" {
			w.payments.After = func(context.Context) error {
				w.payments.After = nil
				return apperr.ErrTimeout
			}
		}
		n := w.credit(ctx, v, `{"refund":"manual"}`, "Idempotency-Key: k").is(201).note()
		if n.Status != "issued" || n.RefundAmount.Amount != 1000 || n.Version != 1 {
			t.Errorf("%s: %+v", who, n)
		}
		switch who {
		case "completer":
			w.completeNotes(31 * time.Second)
		case "event":
			w.deliver(ctx, w.accountOf(v))
		}
		if _, returned := w.payments.Sums(w.accountOf(v)); returned != 1000 || w.payments.HandBack(w.accountOf(v), "rf_1", 1) {
			t.Errorf("%s: %d are returned", who, returned)
		}
		if w.Count(`select count(*) from credit_notes where call_until is null`) != 1 {
			t.Errorf("%s: the request is still open", who)
		}
		if again := w.do(ctx, "GET", "/credit-notes/"+n.ID, "").is(200).note(); again.Version != 1 {
			t.Errorf("%s: %+v", who, again)
		}
	}
}

// TestMoneyOfACreditedInvoice checks that money that a credited invoice no longer needs pays the next invoice of the booking, by card and
// in cash, and that the payment can still be reversed.
func TestMoneyOfACreditedInvoice(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"card", "cash"} {
		for _, next := range []int64{900, 300, 1000} {
			w, ctx := newWorld(t), payer(t)
			v := w.booked(ctx, 1000)
			if method == "card" {
				w.card(v, "pi_1", 1000, 0)
			} else {
				w.pay(ctx, v, 1000).is(200)
			}
			w.credit(ctx, v, ``).is(201)
			second := w.booked(ctx, next, v)
			w.has(ctx, second, "paid", next, 0, 0)
			if got := w.readInvoice(ctx, v.ID); got.AmountPaid.Amount != 1000-next || got.AmountDue.Amount != 0 {
				t.Errorf("%s, %d: %+v", method, next, got)
			}
			if method == "card" {
				continue
			}
			paid := w.readInvoice(ctx, second.ID)
			if p := paid.Payments[0]; p.Source != "manual" || p.Method != "cash" {
				t.Errorf("%+v", p)
			}
			w.act(ctx, second, "payments/"+paid.Payments[0].ID+"/reverse").is(200)
			w.has(ctx, second, "open", 0, 0, next)
			if received, _ := w.payments.Sums(w.accountOf(v)); received != 0 {
				t.Errorf("%d received", received)
			}
		}
	}
}

// TestMoneyOfACreditNote checks that a credit note puts what its invoice no longer needs on an invoice that is already open, but not what
// was handed back or refunded.
func TestMoneyOfACreditNote(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v := w.booked(ctx, 1000)
	w.card(v, "pi_1", 1000, 0)
	if !w.payments.HandBack(w.accountOf(v), "rf_1", 200) {
		t.Fatal("nothing is left")
	}
	w.card(v, "pi_1", 1000, 100)
	w.deliver(ctx, w.accountOf(v))
	second := w.booked(ctx, 900, v)
	w.has(ctx, second, "open", 0, 0, 900)
	w.credit(ctx, v, ``).is(201)
	w.has(ctx, second, "partially_paid", 700, 0, 200)
}

// TestCreditAfterOtherMoneyWasHandedBack checks that a refund by card takes the money of the invoice, if the money on no invoice was handed
// back before. The credit note then refunds nothing.
func TestCreditAfterOtherMoneyWasHandedBack(t *testing.T) {
	t.Parallel()
	for _, more := range []int64{0, 30} { // of another payment on no invoice
		w, ctx := newWorld(t), payer(t)
		first := w.booked(ctx, 1)
		w.act(ctx, first, "void").is(200)
		of := w.accountOf(first)
		w.card(first, "pi_1", 100, 0)
		w.deliver(ctx, of)
		if !w.payments.HandBack(of, "rf_1", 40) {
			t.Fatal("nothing is left")
		}
		v := w.booked(ctx, 80, first)
		w.has(ctx, v, "partially_paid", 60, 0, 20)
		if more > 0 {
			w.credit(ctx, v, `{"amount":`+usd(20)+`,"refund":"none"}`).is(201) // it awaits no more
			w.card(first, "pi_2", more, 0)
			w.deliver(ctx, of)
		}
		w.card(first, "pi_1", 100, 60)
		w.deliver(ctx, of)
		n := w.credit(ctx, v, `{"refund":"manual"}`).is(201).note()
		if _, returned := w.payments.Sums(of); n.RefundAmount.Amount != more || returned != 100+more {
			t.Errorf("the credit note returns %d, %d are returned", n.RefundAmount.Amount, returned)
		}
	}
}

// TestDues checks the sums of a booking, with a card payment whose event has not arrived.
func TestDues(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v := w.booked(ctx, 1000)
	w.draftOf(ctx, v)
	w.card(v, "pi_1", 600, 0)
	path := "/internal/v1/bookings/" + *v.BookingID + "/dues"
	type dues struct {
		Version, Invoiced, Due, Placed int64
		Invoice                        *struct {
			Status, Currency string
			Due              int64
			BookingID        *string `json:"booking_id"`
		}
	}
	read := func(version int64, query string) dues {
		t.Helper()
		return decode[dues](w.from(ctx, w.engine, "payments", "GET", fmt.Sprintf("%s?currency=USD&version=%d%s", path, version, query), "").is(200))
	}
	if got := read(0, ""); got.Version != 0 || got.Invoiced != 1000 || got.Due != 1000 || got.Placed != 0 || got.Invoice != nil {
		t.Errorf("%+v", got)
	}
	got := read(1, "&invoice_id="+v.ID)
	if got.Version != 1 || got.Due != 400 || got.Placed != 600 || got.Invoice == nil || got.Invoice.Status != "partially_paid" || got.Invoice.Due != 400 || deref(got.Invoice.BookingID) != *v.BookingID {
		t.Errorf("%+v", got)
	}
	w.credit(ctx, v, `{"amount":`+usd(300)+`}`).is(201)
	if got := read(1, "&invoice_id=inv_x"); got.Due != 100 || got.Invoice != nil {
		t.Errorf("%+v", got)
	}
	path += "?currency=USD&version=0&invoice_id=" + v.ID
	w.from(ctx, w.engine, "bookings", "GET", path, "").is(401, "invalid_credential")
	live := in(ctx, func(c *caller.Caller) { c.Mode = caller.Live })
	for _, other := range []context.Context{live, pgtest.Ctx(t, caller.Test)} {
		if got := decode[dues](w.from(other, w.engine, "payments", "GET", path, "").is(200)); got.Invoiced != 0 || got.Invoice != nil {
			t.Errorf("%+v", got)
		}
	}
}

// draftOf drafts another invoice of the booking of an invoice.
func (w *world) draftOf(ctx context.Context, v invoice) {
	w.T.Helper()
	w.do(ctx, "POST", "/invoices", fmt.Sprintf(`{"booking_id":%q,"line_items":[%s]}`, *v.BookingID, line(50))).is(201)
}
