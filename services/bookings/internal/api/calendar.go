package api

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/domain/report"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// listCalendar returns the bookings of a range of days, and the closures of all units.
func (a *API) listCalendar(c *gin.Context) error {
	ctx := c.Request.Context()
	days, err := reportDays(c, availability.MaxDays)
	if err != nil {
		return err
	}
	f, err := calendarFilter(c)
	if err != nil {
		return err
	}
	f.Days, f.Now = days, a.now(ctx)
	rows, err := store.BookingsDuring(ctx, a.DB.Read(ctx), f)
	if err != nil {
		return err
	}
	closed, err := store.ClosuresDuring(ctx, a.DB.Read(ctx), days.Time, nil, report.MaxClosures)
	if err != nil {
		return err
	}
	closures := make([]internalapi.CalendarClosure, len(closed))
	for i, k := range closed {
		closures[i] = view.CalendarClosure(k)
	}
	data, more, err := page.FitWithin(rows, report.MaxBytes, func(b report.Booking) internalapi.CalendarBooking {
		return view.CalendarBooking(b.At(f.Now))
	})
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.BookingCalendar{Timezone: days.Loc.String(), Data: data, Truncated: more, Closures: closures})
}

// listDueBookings returns the bookings that need attention. It uses two statements.
func (a *API) listDueBookings(c *gin.Context) error {
	ctx := c.Request.Context()
	loc, err := civil.Location(caller.FromContext(ctx).Timezone)
	if err != nil {
		return err
	}
	now := a.now(ctx)
	holds, err := store.HoldsUntil(ctx, a.DB.Read(ctx), now, now.Add(report.SoonOver))
	if err != nil {
		return err
	}
	unpaid, err := store.UnpaidDeposits(ctx, a.DB.Read(ctx), civil.DateOf(now.In(loc)), now)
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.DueBookings{Holds: shown(holds), Unpaid: shown(unpaid)})
}

func shown(list []report.Booking) []internalapi.DueBooking {
	out := make([]internalapi.DueBooking, len(list))
	for i, b := range list {
		out[i] = view.DueBooking(b)
	}
	return out
}

// reportDays reads the range of a report. The range has at most the given number of days in the operator's time zone.
func reportDays(c *gin.Context, most int) (report.Days, error) {
	loc, err := civil.Location(caller.FromContext(c.Request.Context()).Timezone)
	if err != nil {
		return report.Days{}, err
	}
	r, err := availability.ParseRange(httpx.Query(c).String("from"), httpx.Query(c).String("to"), most, loc)
	if err != nil {
		return report.Days{}, err
	}
	return report.NewDays(r, loc), nil
}

func calendarFilter(c *gin.Context) (f store.CalendarFilter, err error) {
	q := httpx.Query(c)
	f.All = q.String("all") == "true"
	if f.Service, err = optionalID[domain.ServicePrefix]("service_id", q.String("service_id")); err != nil {
		return f, err
	}
	for _, text := range q.List("unit_ids") {
		if text == "" {
			continue
		}
		id, err := optionalID[domain.UnitPrefix]("unit_ids", text)
		if err != nil {
			return f, err
		}
		f.Units = append(f.Units, id)
	}
	return f, nil
}
