package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/view"
)

// listAvailability returns all days in one response. A malformed id counts as unknown, and then the days are empty.
func (a *API) listAvailability(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	timezone := caller.FromContext(ctx).Timezone
	loc, err := civil.Location(timezone)
	if err != nil {
		return err
	}
	var query availability.Query
	if query.Range, err = availability.ParseRange(q.String("from"), q.String("to"), availability.MaxDays, loc); err != nil {
		return err
	}
	query.Service, _ = rest.FilterID[domain.ServicePrefix](q, "service_id")
	query.Unit, _ = rest.FilterID[domain.UnitPrefix](q, "unit_id")
	query.Package, _ = rest.FilterID[domain.PackagePrefix](q, "package_id")
	days, err := a.Bookings.Days(ctx, query)
	if err != nil {
		return err
	}
	body, err := view.Availability(days, timezone)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", body)
}

func (a *API) explainAvailability(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	loc, err := civil.Location(caller.FromContext(ctx).Timezone)
	if err != nil {
		return err
	}
	start, err := availability.ParseStart(q.String("starts_at"), loc)
	if err != nil {
		return fieldOf("starts_at", err)
	}
	unit, _ := rest.FilterID[domain.UnitPrefix](q, "unit_id") // a malformed id results in the zero id, which no unit has
	reason, seats, err := a.Bookings.Explain(ctx, *unit, start)
	if err != nil {
		return err
	}
	return rest.Object(c, view.Explanation(reason, seats))
}
