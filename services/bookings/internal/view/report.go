package view

import (
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/report"
)

// CalendarBooking returns a booking as the console's calendar shows it. It is not public.
func CalendarBooking(b report.Booking) internalapi.CalendarBooking {
	return internalapi.CalendarBooking{
		ID:             b.ID.String(),
		Number:         b.Number,
		Status:         string(b.Status),
		CustomerName:   b.CustomerName,
		UnitID:         idPointer(b.UnitID),
		EventLocalDate: b.Day.String(),
		StartsAt:       inUTC(b.StartsAt),
		EndsAt:         inUTC(b.EndsAt),
		EventStartTime: pointer(clock(b.Booking, b.Start, b.StartsAt)),
		EventEndTime:   pointer(clock(b.Booking, b.End, b.EndsAt)),
		HoldExpiresAt:  inUTC(b.HoldExpiresAt),
		Version:        b.Version,
	}
}

// CalendarClosure returns a closure as the console's calendar shows it. It is not public.
func CalendarClosure(c domain.Closure) internalapi.CalendarClosure {
	out := internalapi.CalendarClosure{ID: c.ID.String(), Name: c.Name, StartsAt: c.StartsAt.UTC(), EndsAt: c.EndsAt.UTC()}
	if c.UnitIDs != nil {
		out.UnitIDs = texts(c.UnitIDs)
	}
	return out
}

// DueBooking returns the console's form of a booking that needs attention. It is not public.
func DueBooking(b report.Booking) internalapi.DueBooking {
	return internalapi.DueBooking{
		ID:             b.ID.String(),
		Number:         b.Number,
		Status:         string(b.Status),
		CustomerID:     idPointer(b.CustomerID),
		CustomerName:   b.CustomerName,
		EventLocalDate: b.Day.String(),
		HoldExpiresAt:  inUTC(b.HoldExpiresAt),
		Currency:       b.Deposit.Currency,
		DepositAmount:  b.Deposit.Minor,
	}
}

// BookingDay returns the console's form of the totals of a day. It is not public.
func BookingDay(d report.Day) internalapi.BookingDay {
	return internalapi.BookingDay{
		Date: d.Date.String(), Bookings: d.Bookings, Revenue: d.Revenue, Paid: d.Paid,
		BookedMinutes: int64(d.Booked / time.Minute), OpenMinutes: int64(d.Open / time.Minute),
	}
}

// DayPrice returns the console's form of a package's price on a day. It is not public.
func DayPrice(d report.DayPrice) internalapi.DayPrice {
	out := internalapi.DayPrice{Date: d.Date.String()}
	if d.Price == nil {
		return out
	}
	out.TotalAmount, out.DepositAmount = &d.Price.Total.Minor, &d.Price.Deposit.Minor
	if h := d.Price.Snapshot.Holiday; h != nil {
		out.Holiday = &internalapi.DayHoliday{ID: h.ID.String(), Name: h.Name, MultiplierBps: h.MultiplierBps}
	}
	return out
}

func idPointer[P ids.Prefix](id ids.ID[P]) *string { return pointer(idOrNull(id)) }

func inUTC(t *time.Time) *time.Time { return pointer(timeOrNull(t)) }

// pointer converts a nullable value; null becomes nil.
func pointer[T any](v nullable.Nullable[T]) *T {
	if v.IsNull() {
		return nil
	}
	return new(v.MustGet())
}
