package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// lose sets the booking of a quote to a state while its accept is in progress.
func (w *world) lose(status string) domain.Booking {
	w.T.Helper()
	b := w.bookings.Created()[0]
	b.Status = status
	return w.bookings.ChangeBooking(b)
}

// TestAcceptOfALostBooking checks that an accept resumed after its booking was canceled or expired opens no invoice. The quote is
// in the status sent again. The response to the client contains the reason, also after the completer has resumed the accept.
func TestAcceptOfALostBooking(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"cancelled", "expired"} {
		for _, by := range []string{"client", "completer"} {
			w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
			q := w.sentQuote(ctx, "")
			w.fail(nil, apperr.ErrTimeout)
			w.onQuote(ctx, q.ID, "accept", "Idempotency-Key: k")
			w.fail(nil, nil)
			w.lose(status)
			if by == "completer" {
				w.resumeAccepts(31 * time.Second)
				w.resumeAccepts(time.Hour)
			} else {
				w.clock.move(31 * time.Second)
			}
			for range 2 {
				a := w.onQuote(ctx, q.ID, "accept", "Idempotency-Key: k").is(422, "invalid_status_transition", "status")
				if !strings.Contains(string(a.Body), status) {
					t.Errorf("%s, %s: responded %s", status, by, a.Body)
				}
			}
			if got := w.readQuote(ctx, q.ID); got.Status != "sent" || got.Version != 2 || got.BookingID != nil || len(got.InvoiceIDs) != 0 {
				t.Errorf("%s, %s: reads %+v", status, by, got)
			}
			w.ended(q, 1, 0, 0)
			if by == "client" { // the refusal released the key
				w.do(ctx, "POST", "/customers", ann, "Idempotency-Key: k").is(201)
			}
			w.onQuote(ctx, q.ID, "decline").is(200)
		}
	}
}

// TestBookingIsLostBeforeTheInvoice checks that the booking's event counts if the booking is canceled between the response of
// bookings and the last transaction.
func TestBookingIsLostBeforeTheInvoice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.sentQuote(ctx, "")
	w.bookings.After = func(_ context.Context, call string) error {
		if call != "create" {
			return nil
		}
		return w.DB.App.Tx(ctx, func(_ context.Context, tx pg.Tx) error {
			store.PutBooking(tx, w.lose("cancelled"))
			return nil
		})
	}
	w.onQuote(ctx, q.ID, "accept", "Idempotency-Key: k").is(422, "invalid_status_transition", "status")
	if got := w.readQuote(ctx, q.ID); got.Status != "sent" || len(got.InvoiceIDs) != 0 {
		t.Errorf("reads %+v", got)
	}
	w.ended(q, 1, 0, 0)
}
