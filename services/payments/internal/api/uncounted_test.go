package api_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"holdfast.dev/services/payments/internal/domain"
)

// payFor creates a successful intent of a booking, and, if v is not zero, of an invoice.
func (w *world) payFor(ctx context.Context, b domain.Booking, v domain.InvoiceID, amount int64) {
	w.T.Helper()
	body := fmt.Sprintf(`{"booking_id":%q,"amount_minor":%d}`, b.ID, amount)
	if !v.IsZero() {
		body = fmt.Sprintf(`{"booking_id":%q,"invoice_id":%q,"amount_minor":%d}`, b.ID, v, amount)
	}
	p := w.post(ctx, body).is(201).intent()
	w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, amount })
	w.refresh(ctx, p.ID)
}

// TestPaymentThatIsNotCountedYet checks that, before the other services have read a payment, none of many simultaneous requests
// charges its amount again, for the booking or for the paid invoice. Amounts that they have counted are not subtracted twice.
func TestPaymentThatIsNotCountedYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for name, c := range map[string]struct {
		total, due, counted int64 // as bookings returns them
		invoiced, byInvoice int64 // as customers returns them
		forInvoice          bool  // whether the payment is for the invoice
		paid                int64
		ofBooking, want     int64 // amounts that can be requested; 0: none
	}{
		"a part is paid":                {1000, 1000, 0, 1000, 0, false, 400, 600, 600},
		"all is paid":                   {1000, 1000, 0, 1000, 0, false, 1000, 0, 0},
		"all is paid, on the invoice":   {1000, 1000, 0, 1000, 0, true, 1000, 0, 0},
		"bookings has counted it":       {1000, 600, 400, 1000, 0, true, 400, 600, 600},
		"customers has counted it":      {1000, 1000, 0, 600, 400, true, 400, 600, 600},
		"both have counted it":          {1000, 600, 400, 600, 400, true, 400, 600, 600},
		"the deposit invoice is paid":   {1000, 1000, 0, 300, 0, true, 300, 700, 0},
		"a part of the invoice":         {1000, 1000, 0, 300, 0, true, 100, 900, 200},
		"no price: the invoice is paid": {0, 0, 0, 300, 0, true, 300, 0, 0},
		"more than the other ones know": {1000, 1000, 0, 300, 0, false, 1000, 0, 0},
		"an earlier one is counted":     {1000, 700, 300, 700, 300, true, 300, 700, 700},
	} {
		b := w.bookings.Add(ctx, "pending", c.total, 5000, "USD")
		v := w.invoices.Add(ctx, b.ID, "open", 5000, "USD")
		other := w.invoices.Add(ctx, b.ID, "open", 5000, "USD")
		paidOn := domain.InvoiceID{}
		if c.forInvoice {
			paidOn = v.ID
		}
		w.payFor(ctx, b, paidOn, c.paid)
		w.bookings.Set(b.ID, c.due, c.counted)
		w.invoices.Set(v.ID, c.invoiced, c.byInvoice)
		w.invoices.Set(other.ID, c.invoiced, c.byInvoice)
		request := func(body string, want int64) {
			t.Helper()
			var refused atomic.Int64
			atOnce(8, func(int) {
				switch a := w.post(ctx, body); a.Status {
				case 201:
					if got := a.intent().Amount; got != want {
						t.Errorf("%s: %s requests %d, want %d", name, body, got, want)
					}
				case 422:
					refused.Add(1)
				default:
					t.Errorf("%s: %d %s", name, a.Status, a.Body)
				}
			})
			if n := refused.Load(); n != 0 && want > 0 || n != 8 && want == 0 {
				t.Errorf("%s: %s: %d are refused, want an intent of %d", name, body, n, want)
			}
		}
		if c.total > 0 {
			request(fmt.Sprintf(`{"booking_id":%q}`, b.ID), c.ofBooking)
		}
		request(fmt.Sprintf(`{"booking_id":%q,"invoice_id":%q}`, b.ID, v.ID), c.want)
		if c.forInvoice && c.total > 0 { // only the booking limits another invoice
			request(fmt.Sprintf(`{"booking_id":%q,"invoice_id":%q}`, b.ID, other.ID), min(c.invoiced, c.ofBooking))
		}
	}
}
