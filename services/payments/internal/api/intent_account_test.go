package api_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"holdfast.dev/libs/ids"

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

// TestIntentsRestOnTheAccount checks that an intent is at most what is due after everything that was received, by card or otherwise,
// until its row is written: also if money arrives after customers has answered.
func TestIntentsRestOnTheAccount(t *testing.T) {
	t.Parallel()
	for name, pay := range map[string]func(w *world, ctx context.Context, b domain.Booking, version int64){
		"card": func(w *world, ctx context.Context, b domain.Booking, _ int64) {
			w.payFor(ctx, b, domain.InvoiceID{}, 300)
		},
		"cash": func(w *world, ctx context.Context, b domain.Booking, version int64) {
			w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 300, version).is(200)
		},
	} {
		w := newWorld(t)
		ctx := w.tenant()
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		var late atomic.Bool
		w.invoices.Respond = func(d domain.Dues) domain.Dues {
			if late.CompareAndSwap(true, false) {
				pay(w, ctx, b, d.Version)
			}
			return d
		}
		for _, want := range []int64{700, 400, 100} {
			late.Store(true)
			if p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(201).intent(); p.Amount != want {
				t.Errorf("%s: %d, want %d", name, p.Amount, want)
			}
		}
	}
}

// TestIntentsAwaitCustomers checks that no intent is created while customers has counted another version of the account.
func TestIntentsAwaitCustomers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	w.payFor(ctx, b, domain.InvoiceID{}, 300)
	for _, by := range []int64{-1, 1} {
		w.invoices.Respond = func(d domain.Dues) domain.Dues {
			d.Version += by
			return d
		}
		w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(503, "unavailable")
	}
}

// TestIntentsReadDues checks that the amount follows from the price, the invoices and the account.
func TestIntentsReadDues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for name, c := range map[string]struct {
		dues domain.Dues
		paid int64
		want int64 // 0: nothing is due
	}{
		"a part is paid":                   {domain.Dues{}, 400, 600},
		"an invoice is due":                {domain.Dues{Invoiced: 1000, Due: 1000}, 0, 1000},
		"a note credits a part":            {domain.Dues{Invoiced: 1000, Due: 600}, 0, 600},
		"a note credits the rest":          {domain.Dues{Invoiced: 1000, Due: 0, Placed: 600}, 600, 0},
		"the deposit is paid":              {domain.Dues{Invoiced: 200, Placed: 200}, 200, 800},
		"a new invoice, money lies on one": {domain.Dues{Invoiced: 2200, Due: 200, Placed: 2000}, 1000, 200},
		"more is invoiced than the price":  {domain.Dues{Invoiced: 1500, Due: 1500}, 0, 1500},
	} {
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		w.invoices.Respond = nil
		if c.paid > 0 {
			w.payFor(ctx, b, domain.InvoiceID{}, c.paid)
		}
		w.invoices.Respond = func(d domain.Dues) domain.Dues {
			c.dues.Version = d.Version
			return c.dues
		}
		a := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID))
		if c.want == 0 {
			a.is(422, "booking_already_paid")
		} else if p := a.is(201).intent(); p.Amount != c.want {
			t.Errorf("%s: %d, want %d", name, p.Amount, c.want)
		}
	}
}
