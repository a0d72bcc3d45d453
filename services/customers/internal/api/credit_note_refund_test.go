package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
)

// completeNotes runs the completer of refunds with a clock that is ahead by d.
func (w *world) completeNotes(d time.Duration) {
	w.T.Helper()
	w.clock.move(d)
	if err := w.completers.CreditNotes(w.notes)(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

// refundEvent delivers an event about the refund of a credit note.
func (w *world) refundEvent(ctx context.Context, n note, r domain.NoteRefund) {
	w.T.Helper()
	if err := w.notes.ApplyEvent(ctx, ids.New[ids.EventPrefix](), noteID(w.T, n), r); err != nil {
		w.T.Fatal(err)
	}
}

func noteID(t *testing.T, n note) domain.CreditNoteID {
	t.Helper()
	id, err := ids.Parse[ids.CreditNotePrefix](n.ID)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestRefundByCard checks that a credit note refunds to the card what was paid beyond the new total, and only with the scope of
// refunds.
func TestRefundByCard(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v, charge := w.cardPaid(ctx, "1", 100, 100)
	body := `{"amount":` + usd(30) + `,"refund":"gateway"}`
	w.credit(pgtestScopes(ctx), v, body).is(403, "insufficient_scope")
	n := w.credit(ctx, v, body, "Idempotency-Key: k").is(201).note()
	if n.Status != "issued" || n.RefundAmount.Amount != 30 || !strings.HasPrefix(deref(n.RefundID), "rf_") || deref(n.BookingID) == "" {
		t.Errorf("%+v", n)
	}
	if again := w.credit(ctx, v, body, "Idempotency-Key: k").is(201).note(); again.ID != n.ID {
		t.Errorf("%+v", again)
	}
	w.has(ctx, v, "paid", 100, 30, 0)
	if count, sum, calls := w.payments.Refunded(); count != 1 || sum != 30 || calls != 1 {
		t.Errorf("%d refunds of %d in %d calls", count, sum, calls)
	}
	charge.Refunded = 30
	w.charged(ctx, charge)
	if got := w.readInvoice(ctx, v.ID); got.Refunded.Amount != 30 || got.AmountDue.Amount != 0 || got.Status != "paid" {
		t.Errorf("%+v", got)
	}
	w.credit(ctx, v, `{"refund":"gateway"}`).is(201)
	if _, sum, _ := w.payments.Refunded(); sum != 100 {
		t.Errorf("%d of 100 are refunded", sum)
	}
}

// pgtestScopes returns ctx without the scope of refunds.
func pgtestScopes(ctx context.Context) context.Context {
	return in(ctx, func(c *caller.Caller) { c.Scopes = []string{"write:invoices"} })
}

// TestRefundOfCash checks that nothing is refunded to a card that did not pay it, and that no credit note is created then.
func TestRefundOfCash(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v := w.open(ctx, 100)
	w.pay(ctx, v, 100).is(200)
	w.credit(ctx, v, `{"refund":"gateway"}`).is(422, "invalid_request", "refund")
	mixed, charge := w.cardPaid(ctx, "1", 100, 50)
	w.pay(ctx, mixed, 50).is(200)
	w.credit(ctx, mixed, `{"refund":"gateway","amount":`+usd(51)+`}`).is(422, "invalid_request", "refund")
	charge.Refunded = 20 // with POST /refunds
	w.charged(ctx, charge)
	w.credit(ctx, mixed, `{"refund":"gateway","amount":`+usd(51)+`}`).is(422, "invalid_request", "refund") // 31, of which 30 by card
	n := w.credit(ctx, mixed, `{"refund":"gateway","amount":`+usd(50)+`}`).is(201).note()
	if n.RefundAmount.Amount != 30 || w.Count(`select count(*) from credit_notes`) != 1 {
		t.Errorf("%+v", n)
	}
}

// TestRefundOfADisputedPayment checks that a credit note refunds no card payment that a payer disputes, as payments reports it at that
// moment: other card payments cover the refund, or there is no credit note.
func TestRefundOfADisputedPayment(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v, charge := w.cardPaid(ctx, "1", 100, 60)
	newer := charge
	newer.ID, newer.Amount.Minor = "pi_2", 40
	newer = w.charged(ctx, newer)
	newer.Disputed = true
	w.payments.Card(newer) // no event has arrived
	w.credit(ctx, v, `{"refund":"gateway"}`).is(422, "payment_disputed", "refund")
	w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(61)+`}`).is(422, "payment_disputed", "refund")
	if n := w.Count(`select count(*) from credit_notes`); n != 0 {
		t.Errorf("%d credit notes", n)
	}
	n := w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(60)+`}`).is(201).note()
	if n.RefundAmount.Amount != 60 || n.Status != "issued" || w.Count(`select count(*) from credit_note_refunds where charge_id <> 'pi_1'`) != 0 {
		t.Errorf("%+v", n)
	}
	w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(1)+`}`).is(422, "payment_disputed", "refund")
	w.credit(ctx, v, `{"refund":"manual","amount":`+usd(1)+`}`).is(201)
	newer.Disputed = false // it is won
	w.payments.Card(newer)
	w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(39)+`}`).is(201)
	if _, sum, _ := w.payments.Refunded(); sum != 99 {
		t.Errorf("%d are refunded by card", sum)
	}
}

// TestUnknownRefund checks that an unknown outcome is no refusal: the credit note is pending until the completer or an event reports
// the result. No refund is created twice.
func TestUnknownRefund(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"request", "response"} {
		for _, who := range []string{"client", "completer", "event"} {
			t.Run(lost+", "+who, func(t *testing.T) {
				t.Parallel()
				w, ctx := newWorld(t), payer(t)
				v, _ := w.cardPaid(ctx, "1", 100, 100)
				var seen atomic.Int64
				once := func(context.Context) error {
					if seen.Add(1) == 1 {
						return apperr.ErrTimeout
					}
					return nil
				}
				w.payments.Before = once
				if lost == "response" {
					w.payments.Before, w.payments.After = nil, once
				}
				body := `{"refund":"gateway"}`
				n := w.credit(ctx, v, body, "Idempotency-Key: k").is(201).note()
				if n.Status != "refund_pending" || n.RefundID != nil || n.RefundAmount.Amount != 100 {
					t.Errorf("%+v", n)
				}
				w.has(ctx, v, "paid", 100, 100, 0)
				if again := w.credit(ctx, v, body, "Idempotency-Key: k").is(201).note(); again.ID != n.ID {
					t.Errorf("%+v", again)
				}
				switch {
				case who == "event" && lost == "response":
					r := w.payments.End(noteID(t, n), "succeeded")
					w.refundEvent(ctx, n, r)
					w.refundEvent(ctx, n, r)
				default:
					w.completeNotes(31 * time.Second)
				}
				got := w.do(ctx, "GET", "/credit-notes/"+n.ID, "").is(200).note()
				if got.Status != "issued" || got.RefundID == nil || got.Version != 2 {
					t.Errorf("%+v", got)
				}
				if n := w.Count(`select count(*) from credit_notes where call_until is null`); n != 1 {
					t.Error("the request is still open")
				}
				if count, sum, _ := w.payments.Refunded(); count != 1 || sum != 100 {
					t.Errorf("%d refunds of %d", count, sum)
				}
			})
		}
	}
}

// TestRefundWhileMoneyIsHandedBack checks that a credit note refunds only what is left if money is handed back before payments records the
// refund.
func TestRefundWhileMoneyIsHandedBack(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"manual", "gateway"} {
		w, ctx := newWorld(t), payer(t)
		v, charge := w.cardPaid(ctx, "1", 100, 100)
		w.payments.Before = func(context.Context) error {
			w.payments.Before = nil
			w.payments.HandBack(charge.Account, "rf_1", 30)
			return nil
		}
		if n := w.credit(ctx, v, `{"refund":"`+way+`"}`).is(201).note(); n.Status != "issued" || n.RefundAmount.Amount != 70 {
			t.Errorf("%s: %+v", way, n)
		}
		if _, returned := w.payments.Sums(charge.Account); returned != 30 && returned != 100 { // a card is refunded later
			t.Errorf("%s: %d are returned", way, returned)
		}
	}
}

// TestFailedRefund checks that a refused or failed refund leaves the credit note, and that the next one refunds the amount as well.
func TestFailedRefund(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v, _ := w.cardPaid(ctx, "1", 100, 100)
	w.payments.Refuse = true
	n := w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(30)+`}`).is(201).note()
	if n.Status != "refund_failed" || n.RefundID != nil {
		t.Errorf("%+v", n)
	}
	w.has(ctx, v, "paid", 100, 30, 0)
	w.payments.Refuse, w.payments.Status = false, "pending"
	n = w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(10)+`}`).is(201).note()
	if n.Status != "refund_pending" || n.RefundID == nil || n.RefundAmount.Amount != 40 {
		t.Errorf("%+v", n)
	}
	r := w.payments.End(noteID(t, n), "failed")
	w.refundEvent(ctx, n, r)
	if got := w.do(ctx, "GET", "/credit-notes/"+n.ID, "").is(200).note(); got.Status != "refund_failed" || got.Version != 3 && got.Version != 2 {
		t.Errorf("%+v", got)
	}
	w.has(ctx, v, "paid", 100, 40, 0)
	r.Version, r.Status = 1, "pending" // an event that arrives late
	w.refundEvent(ctx, n, r)
	if got := w.do(ctx, "GET", "/credit-notes/"+n.ID, "").is(200).note(); got.Status != "refund_failed" {
		t.Errorf("%+v", got)
	}
	w.payments.Status = ""
	if n := w.credit(ctx, v, `{"refund":"gateway"}`).is(201).note(); n.RefundAmount.Amount != 100 || n.Status != "issued" {
		t.Errorf("%+v", n)
	}
}

// TestCrashedCreditNote checks that, if the process ends before or after the call to payments, a repeated request or the completer
// completes the same credit note.
func TestCrashedCreditNote(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		for _, who := range []string{"client", "completer"} {
			t.Run(when+", "+who, func(t *testing.T) {
				t.Parallel()
				w, ctx := newWorld(t), payer(t)
				v, _ := w.cardPaid(ctx, "1", 100, 100)
				crash := func(context.Context) error {
					w.Exec(`alter table idempotency_keys add constraint dead check (false) not valid`) // nothing more can be written
					w.payments.Before, w.payments.After = nil, nil
					return errors.New("crash")
				}
				if when == "before" {
					w.payments.Before = crash
				} else {
					w.payments.After = crash
				}
				body := `{"refund":"gateway"}`
				w.credit(ctx, v, body, "Idempotency-Key: k").is(500)
				w.Exec(`alter table idempotency_keys drop constraint dead`)
				w.clock.move(31 * time.Second)
				if who == "completer" {
					w.completeNotes(0)
				}
				n := w.credit(ctx, v, body, "Idempotency-Key: k").is(201).note()
				if n.Number != "CN-000001" || n.Status != "issued" || n.RefundID == nil {
					t.Errorf("%+v", n)
				}
				if count, sum, _ := w.payments.Refunded(); count != 1 || sum != 100 || w.Count(`select count(*) from credit_notes`) != 1 {
					t.Errorf("%d refunds of %d", count, sum)
				}
			})
		}
	}
}

// TestRefundsOfAParallelPayment checks that 20 credit notes with refunds at the same time never refund more than was paid.
func TestRefundsOfAParallelPayment(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	v, _ := w.cardPaid(ctx, "1", 1000, 1000)
	atOnce(20, func(int) { w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(100)+`}`) })
	if count, sum, _ := w.payments.Refunded(); count != 10 || sum != 1000 {
		t.Errorf("%d refunds of %d", count, sum)
	}
	w.has(ctx, v, "paid", 1000, 1000, 0)
}

// TestRefundOfOneInvoice checks that the refund of a credit note appears on its invoice, although a later invoice was paid with the
// same charge, and that money on no invoice stays available.
func TestRefundOfOneInvoice(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"note", "charge"} {
		w, ctx := newWorld(t), payer(t)
		v, charge := w.cardPaid(ctx, "1", 100, 250)
		next := func(total int64) invoice {
			v := w.do(ctx, "POST", "/invoices", `{"booking_id":`+str(charge.Account.ID())+`,"line_items":[`+line(total)+`]}`).is(201).invoice()
			return w.act(ctx, v, "open").is(200).invoice()
		}
		second := next(100)
		w.payments.Status = "pending"
		refunded := charge
		refunded.Refunded = 100
		if first == "note" {
			w.credit(ctx, v, `{"refund":"gateway"}`).is(201)
			refunded = w.charged(ctx, refunded)
		} else {
			w.payments.After = func(context.Context) error {
				refunded = w.charged(ctx, refunded)
				return nil
			}
			w.credit(ctx, v, `{"refund":"gateway"}`).is(201)
		}
		if a, b := w.readInvoice(ctx, v.ID), w.readInvoice(ctx, second.ID); a.Refunded.Amount != 100 || b.Refunded.Amount != 0 {
			t.Errorf("%s first: %d and %d are refunded", first, a.Refunded.Amount, b.Refunded.Amount)
		}
		if third := next(100); third.AmountPaid.Amount != 50 {
			t.Errorf("%s first: %d of 50 are on the third invoice", first, third.AmountPaid.Amount)
		}
		refunded.Refunded = 110 // 10 of the second or third invoice, with POST /refunds
		w.charged(ctx, refunded)
		if a := w.readInvoice(ctx, v.ID); a.Refunded.Amount != 100 {
			t.Errorf("%s first: %d are refunded", first, a.Refunded.Amount)
		}
	}
}

// TestLatePayment checks that a card payment that arrives after the credit pays only what is due, and the rest stays on no invoice.
func TestLatePayment(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v, charge := w.cardPaid(ctx, "1", 100, 10)
	w.credit(ctx, v, `{"amount":`+usd(60)+`}`).is(201)
	charge.ID = "pi_2"
	w.charged(ctx, charge)
	charge.ID, charge.Amount.Minor = "pi_3", 100
	w.charged(ctx, charge)
	w.has(ctx, v, "paid", 40, 60, 0)
	if n := w.Count(`select sum(unapplied) from charges`); n != 80 {
		t.Errorf("%d lie on no invoice", n)
	}
	gone, _ := w.cardPaid(ctx, "4", 100, 1)
	w.credit(ctx, gone, ``).is(201)
	w.has(ctx, gone, "credited", 1, 100, 0)
}

// TestNotesAfterOtherRefunds checks that money that others have refunded is neither refunded again by credit notes nor used for another
// invoice, before and after payments has read the refund of a credit note from the gateway.
func TestNotesAfterOtherRefunds(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{false, true} {
		w, ctx := newWorld(t), payer(t)
		v, charge := w.cardPaid(ctx, "1", 1000, 1000)
		charge.Refunded = 300
		w.charged(ctx, charge)
		w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(600)+`}`).is(201)
		if charge.Refunded = 600; read {
			w.charged(ctx, charge)
		}
		if n := w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(100)+`}`).is(201).note(); n.RefundAmount.Amount != 100 {
			t.Errorf("read %v: %+v", read, n)
		}
		if _, sum, _ := w.payments.Refunded(); sum != 400 {
			t.Errorf("read %v: %d are refunded by credit notes", read, sum)
		}
	}
	for name, c := range map[string]struct {
		total, amount  int64 // of the first invoice and of its credit note
		older, newer   int64 // what others have refunded of its two payments, which are half of the total
		refund, second int64 // what the credit note refunds, and what the second invoice gets
	}{
		"of the older payment":  {2000, 1000, 500, 0, 500, 0},
		"all of the newer one":  {1000, 1000, 0, 500, 500, 0},
		"nothing":               {1000, 400, 0, 0, 400, 0},
		"of both, none is left": {1000, 500, 250, 250, 0, 0},
	} {
		w, ctx := newWorld(t), payer(t)
		v, older := w.cardPaid(ctx, "1", c.total, c.total/2)
		newer := older
		newer.ID = "pi_2"
		newer = w.charged(ctx, newer)
		second := w.do(ctx, "POST", "/invoices", fmt.Sprintf(`{"booking_id":%q,"line_items":[%s]}`, older.Account.Booking, line(300))).is(201).invoice()
		w.act(ctx, second, "open").is(200)
		older.Refunded, newer.Refunded = c.older, c.newer
		w.charged(ctx, older)
		w.charged(ctx, newer)
		n := w.credit(ctx, v, `{"refund":"gateway","amount":`+usd(c.amount)+`}`).is(201).note()
		if got := w.readInvoice(ctx, second.ID); n.RefundAmount.Amount != c.refund || got.AmountPaid.Amount != c.second {
			t.Errorf("%s: %d are refunded, and the second invoice gets %d", name, n.RefundAmount.Amount, got.AmountPaid.Amount)
		}
	}
}
