package api

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/report"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// listStatistics returns the totals of each day in a range. It uses two statements.
func (a *API) listStatistics(c *gin.Context) error {
	ctx := c.Request.Context()
	days, err := reportDays(c, report.MaxStatisticsDays)
	if err != nil {
		return err
	}
	booked, err := store.BookedDuring(ctx, a.DB.Read(ctx), days, a.now(ctx))
	if err != nil {
		return err
	}
	if len(booked) > report.MaxBooked {
		return apperr.Field("to", "These days have more than %d bookings. Request fewer days.", report.MaxBooked)
	}
	units, err := store.UnitHours(ctx, a.DB.Read(ctx), unitsOf(booked))
	if err != nil {
		return err
	}
	currency := caller.FromContext(ctx).Currency
	list, err := report.Statistics(ctx, days, currency, units, booked)
	if err != nil {
		return err
	}
	out := internalapi.BookingStatistics{Timezone: days.Loc.String(), Currency: currency, Data: make([]internalapi.BookingDay, len(list))}
	for i, d := range list {
		out.Data[i] = view.BookingDay(d)
	}
	return rest.Object(c, out)
}

// unitsOf returns the units of bookings, each once.
func unitsOf(booked []report.Booked) (list []domain.UnitID) {
	seen := map[domain.UnitID]bool{}
	for _, b := range booked {
		if !b.Unit.IsZero() && !seen[b.Unit] {
			seen[b.Unit] = true
			list = append(list, b.Unit)
		}
	}
	return list
}
