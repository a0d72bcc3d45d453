package view

import (
	"cmp"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Booking returns the public body of a booking in the caller's mode.
func Booking(b domain.Booking, mode api.Mode) api.Booking {
	out := api.Booking{
		Id:                b.ID.String(),
		Object:            api.BookingObjectBooking,
		Number:            b.Number,
		Status:            api.BookingStatus(b.Status),
		PaymentStatus:     api.PaymentStatus(b.Amounts.Status()),
		Mode:              mode,
		Version:           b.Version,
		CustomerId:        idOrNull(b.CustomerID),
		LeadId:            idOrNull(b.LeadID),
		QuoteId:           idOrNull(b.QuoteID),
		ServiceId:         idOrNull(b.ServiceID),
		UnitId:            idOrNull(b.UnitID),
		PackageId:         idOrNull(b.PackageID),
		PackageSnapshot:   snapshot(b.Snapshot),
		EventType:         api.OrNull(b.EventType),
		EventDate:         b.Event(b.Loc),
		EventLocalDate:    b.Day.String(),
		EventLocalEndDate: b.EndDay(b.Loc).String(),
		EventStartTime:    clock(b, b.Start, b.StartsAt),
		EventEndTime:      clock(b, b.End, b.EndsAt),
		StartsAt:          timeOrNull(b.StartsAt),
		EndsAt:            timeOrNull(b.EndsAt),
		Timezone:          b.Loc.String(),
		GuestCount:        api.OrNull(b.GuestCount),
		Exclusive:         b.Exclusive,
		Notes:             api.OrNull(b.Notes),
		TotalAmount:       amount(b.Total),
		GrossAmount:       amount(b.Gross),
		DepositAmount:     amount(b.Deposit),
		AmountPaid:        amount(b.Paid),
		AmountRefunded:    amount(b.Refunded),
		AmountCredited:    amount(money.Amount{Minor: b.Invoices.Credited, Currency: b.Total.Currency}),
		AmountDue:         amount(b.Due()),
		Disputed:          b.Disputed,
		HoldExpiresAt:     timeOrNull(b.HoldExpiresAt),
		Cancellation:      cancellation(b),
		InvoiceIds:        append([]string{}, b.InvoiceIDs...),
		Metadata:          orEmpty(b.Metadata),
		CreatedAt:         b.CreatedAt.UTC(),
		UpdatedAt:         b.UpdatedAt.UTC(),
		ConfirmedAt:       timeOrNull(b.ConfirmedAt),
		CancelledAt:       timeOrNull(b.CancelledAt),
		CompletedAt:       timeOrNull(b.CompletedAt),
	}
	out.TaxBehavior, out.TaxBreakdown, out.TaxAmount = taxesOf(b)
	return out
}

// taxesOf returns the taxes of a booking. One without a price has none.
func taxesOf(b domain.Booking) (nullable.Nullable[api.TaxBehavior], []api.TaxBreakdownRow, api.Money) {
	if b.Taxes == nil {
		return api.Null[api.TaxBehavior](), []api.TaxBreakdownRow{}, amount(money.Amount{Currency: b.Total.Currency})
	}
	tax := money.Amount{Minor: money.SumRows(b.Taxes.Rows), Currency: b.Total.Currency}
	return nullable.NewNullableWithValue(api.TaxBehavior(b.Taxes.Behavior)), breakdown(b.Taxes.Rows, b.Total.Currency), amount(tax)
}

func breakdown(rows []money.TaxRow, currency string) []api.TaxBreakdownRow {
	out := make([]api.TaxBreakdownRow, len(rows))
	for i, r := range rows {
		out[i] = api.TaxBreakdownRow{
			Name: r.Name, Rate: r.Rate.String(),
			TaxableAmount: amount(money.Amount{Minor: r.Taxable, Currency: currency}), TaxAmount: amount(money.Amount{Minor: r.Amount, Currency: currency}),
		}
	}
	return out
}

// clock returns the given time of day, or else the local time at the instant. It returns null for a whole day.
func clock(b domain.Booking, given *civil.Clock, at *time.Time) nullable.Nullable[string] {
	switch {
	case !b.Timed():
		return api.Null[string]()
	case given != nil:
		return nullable.NewNullableWithValue(string(*given))
	default:
		return nullable.NewNullableWithValue(string(civil.ClockOf(at.In(b.Loc))))
	}
}

func cancellation(b domain.Booking) nullable.Nullable[api.Cancellation] {
	if b.CancelledAt == nil {
		return api.Null[api.Cancellation]()
	}
	return nullable.NewNullableWithValue(api.Cancellation{
		Reason: api.OrNull(b.CancelReason), CancelledAt: b.CancelledAt.UTC(), Policy: policy(b.Policy), RefundAmountDue: refundDue(b),
	})
}

func refundDue(b domain.Booking) nullable.Nullable[api.Money] {
	if b.RefundDue == nil {
		return api.Null[api.Money]()
	}
	return nullable.NewNullableWithValue(amount(money.Amount{Minor: *b.RefundDue, Currency: b.Total.Currency}))
}

func policy(p *domain.Policy) nullable.Nullable[api.BookingPolicy] {
	if p == nil {
		return api.Null[api.BookingPolicy]()
	}
	return nullable.NewNullableWithValue(api.BookingPolicy{
		AutoConfirm:        p.AutoConfirm,
		ConfirmOnDeposit:   p.ConfirmOnDeposit,
		HoldTtlMinutes:     api.OrNull(p.HoldTTLMinutes),
		MaxAdvanceDays:     api.OrNull(p.MaxAdvanceDays),
		MinNoticeMinutes:   api.OrNull(p.MinNoticeMinutes),
		RefundRules:        refundRules(p.RefundRules),
		AutoRefund:         p.AutoRefund,
		RefundLatePayments: p.RefundLatePayments,
	})
}

// refundRules returns null if no rules are specified, and an empty list for an empty list.
func refundRules(list []domain.RefundRule) nullable.Nullable[[]api.RefundRule] {
	if list == nil {
		return api.Null[[]api.RefundRule]()
	}
	out := make([]api.RefundRule, len(list))
	for i, r := range list {
		out[i] = api.RefundRule{HoursBefore: r.HoursBefore, Percent: r.Percent}
	}
	return nullable.NewNullableWithValue(out)
}

func snapshot(s *domain.Snapshot) nullable.Nullable[api.PackageSnapshot] {
	if s == nil {
		return api.Null[api.PackageSnapshot]()
	}
	return nullable.NewNullableWithValue(api.PackageSnapshot{
		Id:              s.PackageID.String(),
		Name:            s.Name,
		BasePrice:       amount(s.BasePrice),
		Pricing:         api.Pricing(cmp.Or(s.Pricing, domain.PerBooking)),
		GuestCount:      api.OrNull(s.Guests),
		DepositType:     api.DepositType(s.DepositType),
		DepositValue:    s.DepositValue,
		DurationMinutes: api.OrNull(s.DurationMinutes),
		Holiday:         holiday(s.Holiday),
	})
}

func holiday(h *domain.HolidaySnapshot) nullable.Nullable[api.HolidaySnapshot] {
	if h == nil {
		return api.Null[api.HolidaySnapshot]()
	}
	return nullable.NewNullableWithValue(api.HolidaySnapshot{Id: h.ID.String(), Name: h.Name, MultiplierBps: h.MultiplierBps})
}
