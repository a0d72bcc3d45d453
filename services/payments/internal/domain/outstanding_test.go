package domain_test

import (
	"errors"
	"testing"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

// TestInvoiceIntentIsLimitedByTheBooking checks that an intent for an invoice charges at most the amounts due of the invoice and of
// its booking.
func TestInvoiceIntentIsLimitedByTheBooking(t *testing.T) {
	t.Parallel()
	usd := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "USD"} }
	booking := ids.New[ids.BookingPrefix]()
	invoice := ids.New[ids.InvoicePrefix]()
	text := invoice.String()
	for name, c := range map[string]struct{ total, due, invoiced, want int64 }{
		"the invoice is less": {300, 300, 200, 200}, "the booking is less": {300, 100, 200, 100}, "the booking is paid": {300, 0, 200, 0},
		"no price": {0, 0, 200, 200},
	} {
		p, err := domain.NewIntent(domain.IntentInput{Booking: booking.String(), Invoice: &text},
			domain.Booking{ID: booking, Status: "confirmed", Total: usd(c.total), Due: usd(c.due)},
			&domain.Invoice{ID: invoice, BookingID: booking, Status: "open", Due: usd(c.invoiced)})
		if c.want == 0 {
			if !errors.Is(err, domain.ErrAlreadyPaid) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || p.Amount.Minor != c.want {
			t.Errorf("%s: %d, %v, want %d", name, p.Amount.Minor, err, c.want)
		}
	}
}
