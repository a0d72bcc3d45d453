package view

import (
	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// BookingPayment returns the public body of a payment of a booking.
func BookingPayment(p domain.BookingPayment) api.BookingPayment {
	invoice := api.Null[string]()
	if p.InvoiceID != "" {
		invoice.Set(p.InvoiceID)
	}
	return api.BookingPayment{
		Id:             p.ID,
		Object:         api.BookingPaymentObjectBookingPayment,
		Source:         api.PaymentSource(p.Source),
		Amount:         amount(p.Amount),
		AmountRefunded: amount(money.Amount{Minor: p.Refunded, Currency: p.Amount.Currency}),
		Disputed:       p.Disputed,
		InvoiceId:      invoice,
		PaidAt:         timeOrNull(p.PaidAt),
		ReversedAt:     timeOrNull(p.ReversedAt),
		CreatedAt:      p.CreatedAt.UTC(),
	}
}
