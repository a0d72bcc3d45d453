package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
)

// part is a part of an intent to refund.
type part struct {
	of    intent
	minor int64
}

// noteRefund requests the refund of a credit note as customers does.
func (w *world) noteRefund(ctx context.Context, note ids.CreditNote, b domain.Booking, parts ...part) response {
	w.T.Helper()
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = fmt.Sprintf(`{"payment_intent_id":%q,"amount":%d}`, p.of.ID, p.minor)
	}
	body := fmt.Sprintf(`{"credit_note_id":%q,"booking_id":%q,"parts":[%s],"currency":"USD","if_version":-1}`, note, b.ID, strings.Join(list, ","))
	return response{w.Send(ctx, w.engine, "customers", "POST", "/internal/v1/credit-note-refunds", body)}
}

func (a response) noteRefund() internalapi.CreditNoteRefund {
	a.T.Helper()
	return apitest.Decode[internalapi.CreditNoteRefund](a.is(200).Response)
}

// TestNoteRefund checks that a credit note refunds only the named payments, in their order, and only once.
func TestNoteRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	first, second, third := w.paidOf(ctx, b, 300), w.paidOf(ctx, b, 300), w.paidOf(ctx, b, 400)
	note := ids.New[ids.CreditNotePrefix]()
	got := w.noteRefund(ctx, note, b, part{first, 300}, part{second, 200}).noteRefund()
	if got.Status != "succeeded" || !got.Shown || len(got.Parts) != 2 || got.Parts[0].PaymentIntentID != first.ID || got.Parts[0].Amount != 300 ||
		got.Parts[1].PaymentIntentID != second.ID || got.Parts[1].Amount != 200 {
		t.Errorf("%+v", got)
	}
	if again := w.noteRefund(ctx, note, b, part{first, 300}, part{second, 200}).noteRefund(); again.ID != got.ID || again.Version != got.Version {
		t.Errorf("%+v, then %+v", got, again)
	}
	w.ahead.Add(int64(48 * time.Hour)) // no idempotency record lives that long
	if again := w.noteRefund(ctx, note, b, part{first, 300}, part{second, 200}).noteRefund(); again.ID != got.ID {
		t.Errorf("%+v, then %+v", got, again)
	}
	if list := w.gateway.Refunds(); len(list) != 2 {
		t.Errorf("%+v", list)
	}
	if shown := w.do(ctx, "GET", "/refunds/"+got.ID, "").is(200); !strings.Contains(string(shown.Body), fmt.Sprintf(`"credit_note_id":%q`, note)) {
		t.Errorf("%s", shown.Body)
	}
	other := ids.New[ids.CreditNotePrefix]()
	w.noteRefund(ctx, other, b, part{second, 101}).is(422, "invalid_request", "parts")
	w.noteRefund(ctx, other, b, part{second, 1}, part{second, 1}).is(422, "invalid_request", "parts.1.payment_intent_id")
	w.noteRefund(ctx, other, b, part{third, 1}, part{first, 1}).is(409, "nothing_to_refund")
	w.noteRefund(w.tenant(), other, b, part{third, 1}).is(409, "nothing_to_refund")
	elsewhere := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	w.noteRefund(ctx, other, elsewhere, part{third, 1}).is(409, "nothing_to_refund")
	if n := w.Count(`select count(*) from refunds`); n != 1 {
		t.Errorf("%d refunds", n)
	}
}

// TestNoteRefundRace checks that parallel requests of one credit note create one refund, and that those of many never exceed the
// payments.
func TestNoteRefundRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	one := ids.New[ids.CreditNotePrefix]()
	atOnce(20, func(i int) {
		note := one
		if i%2 == 1 {
			note = ids.New[ids.CreditNotePrefix]()
		}
		if a := w.noteRefund(ctx, note, b, part{p, 300}); a.Status != 200 && a.Status != 422 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	if n := w.Count(`select count(*) from refunds where credit_note_id = '` + fmt.Sprintf("%x", one.UUID()) + `'`); n > 1 {
		t.Errorf("%d refunds of one credit note", n)
	}
	if list := w.gateway.Refunds(); len(list) != 3 {
		t.Errorf("%d refunds of 300 from 1000", len(list))
	}
}

// TestLostNoteRefund checks that a refund whose response was lost is pending, and that the completer finishes it. A busy gateway
// refuses nothing either.
func TestLostNoteRefund(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after", "busy"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := w.tenant()
			b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
			p, note := w.paidOf(ctx, b, 1000), ids.New[ids.CreditNotePrefix]()
			switch when {
			case "before":
				w.gateway.Before = onCall("refund", 1, func() error { return errLost })
			case "after":
				w.gateway.After = onCall("refund", 1, func() error { return errLost })
			case "busy":
				w.gateway.Before = onCall("refund", 1, func() error { return &domain.BusyError{} })
			}
			for range 2 { // the second time, the first one's call is in progress
				if got := w.noteRefund(ctx, note, b, part{p, 400}).noteRefund(); got.Status != "pending" || got.Shown {
					t.Errorf("%+v", got)
				}
			}
			w.ahead.Add(int64(31 * time.Second))
			w.completeRefunds()
			if got := w.noteRefund(ctx, note, b, part{p, 400}).noteRefund(); got.Status != "succeeded" || !got.Shown {
				t.Errorf("%+v", got)
			}
			if list := w.gateway.Refunds(); len(list) != 1 || list[0].Minor != 400 {
				t.Errorf("%+v", list)
			}
		})
	}
}

// TestRefusedNoteRefund checks that a refund that the gateway refuses has failed, is not attempted again, and releases its amount.
func TestRefusedNoteRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p, note := w.paidOf(ctx, b, 1000), ids.New[ids.CreditNotePrefix]()
	w.gateway.Disputed = map[string]bool{p.ID: true}
	for range 2 {
		if got := w.noteRefund(ctx, note, b, part{p, 400}).noteRefund(); got.Status != "failed" || got.Shown {
			t.Errorf("%+v", got)
		}
		w.gateway.Disputed = nil // a repeated call returns the refusal
	}
	if list := w.gateway.Refunds(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if n := w.Count(`select sum(refund_reserved) from payment_intents`); n != 0 {
		t.Errorf("%d are reserved", n)
	}
}
