package domain_test

import (
	"testing"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

// TestIntentRefusals checks that an intent is refused for a booking or an invoice that accepts no payment, and for another
// currency.
func TestIntentRefusals(t *testing.T) {
	t.Parallel()
	usd := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "USD"} }
	id, invoice, lower, other := ids.New[ids.BookingPrefix](), ids.New[ids.InvoicePrefix](), "usd", "EUR"
	text := invoice.String()
	for name, c := range map[string]struct {
		change func(*domain.IntentInput, *domain.Booking, *domain.Invoice)
		ok     bool
	}{
		"none":                       {func(*domain.IntentInput, *domain.Booking, *domain.Invoice) {}, true},
		"currency in lower case":     {func(in *domain.IntentInput, _ *domain.Booking, _ *domain.Invoice) { in.Currency = &lower }, true},
		"another currency":           {func(in *domain.IntentInput, _ *domain.Booking, _ *domain.Invoice) { in.Currency = &other }, false},
		"cancelled booking":          {func(_ *domain.IntentInput, b *domain.Booking, _ *domain.Invoice) { b.Status = "cancelled" }, false},
		"invoice of another":         {func(_ *domain.IntentInput, _ *domain.Booking, v *domain.Invoice) { v.BookingID = domain.BookingID{} }, false},
		"draft invoice":              {func(_ *domain.IntentInput, _ *domain.Booking, v *domain.Invoice) { v.Status = "draft" }, false},
		"nothing due of the invoice": {func(_ *domain.IntentInput, _ *domain.Booking, v *domain.Invoice) { v.Due.Minor = 0 }, false},
		"invoice in other currency":  {func(_ *domain.IntentInput, _ *domain.Booking, v *domain.Invoice) { v.Due.Currency = "EUR" }, false},
	} {
		in := domain.IntentInput{Invoice: &text}
		b := domain.Booking{ID: id, Status: "confirmed", Total: usd(300), Due: usd(300)}
		v := domain.Invoice{ID: invoice, BookingID: id, Status: "open", Due: usd(200)}
		c.change(&in, &b, &v)
		p, err := domain.NewIntent(in, b, &v)
		if (err == nil) != c.ok || c.ok && p.InvoiceID != invoice {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := domain.IntentInput{Invoice: &text}
	if _, err := domain.NewIntent(in, domain.Booking{ID: id, Total: usd(1), Due: usd(1)}, nil); err == nil {
		t.Error("an unknown invoice is taken")
	}
	if in.NamedInvoice() != invoice || !(domain.IntentInput{}).NamedInvoice().IsZero() {
		t.Error("the named invoice is another one")
	}
}

// TestSubjectsOfSettlements checks that a late payment is owed by its own id.
func TestSubjectsOfSettlements(t *testing.T) {
	t.Parallel()
	late, cancelled := domain.OwedRefund{Cause: domain.PaidLate, Subject: "pi_1"}, domain.OwedRefund{Cause: domain.BookingCancelled, Subject: "bk_1"}
	if late.Intent() != "pi_1" || cancelled.Intent() != "" {
		t.Errorf("subjects: %q, %q", late.Intent(), cancelled.Intent())
	}
	failed := domain.OwedRefund{Failure: &domain.Failure{Code: "x"}}
	if failed.Seen() == (domain.OwedRefund{}).Seen() {
		t.Error("a failure is not seen")
	}
}
