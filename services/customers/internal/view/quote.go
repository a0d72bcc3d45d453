package view

import (
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/civil"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// Quote returns the public body of a quote in the caller's mode.
func Quote(q domain.Quote, mode api.Mode) api.Quote {
	return api.Quote{
		Id:                  q.ID.String(),
		Object:              api.QuoteObjectQuote,
		Number:              q.Number,
		Status:              api.QuoteStatus(q.Status),
		Mode:                mode,
		Version:             q.Version,
		CustomerId:          q.CustomerID.String(),
		LeadId:              idOrNull(q.LeadID),
		ServiceId:           idOrNull(q.ServiceID),
		UnitId:              idOrNull(q.UnitID),
		PackageId:           idOrNull(q.PackageID),
		EventDate:           timeOrNull(quoteDate(q)),
		EventLocalDate:      dateOrNull(q.Day),
		EventStartTime:      clockOrNull(q.Start),
		EventEndTime:        clockOrNull(q.End),
		GuestCount:          q.Guests,
		LineItems:           lines(q.Lines, q.Total.Currency),
		TaxBehavior:         api.TaxBehavior(q.Behavior),
		SubtotalAmount:      amount(q.Subtotal),
		DiscountAmount:      amount(q.Discount),
		DiscountAmountTotal: amount(q.DiscountTotal),
		TaxAmount:           amount(q.Tax),
		TaxBreakdown:        breakdown(q.Totals),
		RoundingAmount:      amount(q.Rounding),
		TotalAmount:         amount(q.Total),
		DepositAmount:       amount(q.Deposit),
		ExpiresAt:           timeOrNull(q.ExpiresAt),
		SentAt:              timeOrNull(q.SentAt),
		AcceptedAt:          timeOrNull(q.AcceptedAt),
		DeclinedAt:          timeOrNull(q.DeclinedAt),
		CancelledAt:         timeOrNull(q.CancelledAt),
		BookingId:           idOrNull(q.BookingID),
		BookingStatus:       api.OrNull(q.BookingStatus),
		InvoiceIds:          texts(q.InvoiceIDs),
		DeclineReason:       api.OrNull(q.DeclineReason),
		Notes:               api.OrNull(q.Notes),
		Terms:               api.OrNull(q.Terms),
		Metadata:            orEmpty(q.Metadata),
		CreatedAt:           q.CreatedAt.UTC(),
		UpdatedAt:           q.UpdatedAt.UTC(),
	}
}

// quoteDate returns the instant given for the day, or else the first instant of the day.
func quoteDate(q domain.Quote) *time.Time {
	if q.EventAt != nil || q.Day == nil {
		return q.EventAt
	}
	first, _ := q.Day.Start(q.Loc) // a stored day exists in its zone
	return &first
}

func clockOrNull(c *civil.Clock) nullable.Nullable[string] {
	if c == nil {
		return api.Null[string]()
	}
	return nullable.NewNullableWithValue(string(*c))
}

// ErasedQuote returns the object of the event quote.erased.
func ErasedQuote(id string) Erased {
	return Erased{ID: id, Object: string(api.QuoteObjectQuote), Erased: true}
}
