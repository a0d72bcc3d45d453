package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *API) getHolidayRule(c *gin.Context) error {
	ctx := c.Request.Context()
	r, err := a.holiday(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	return httpx.Resource(c, r.Version, view.HolidayRule(r, mode(ctx)))
}

func (a *API) createHolidayRule(c *gin.Context) error {
	return create(c, &a.Catalogue.Holidays, func(b api.HolidayRuleCreate) func(*domain.HolidayRule) error {
		return editHolidayRule(api.HolidayRuleUpdate{
			Name: &b.Name, DateFrom: &b.DateFrom, DateTo: &b.DateTo, Recurrence: b.Recurrence, MultiplierBps: &b.MultiplierBps,
			AppliesTo: b.AppliesTo, Priority: b.Priority, Stackable: b.Stackable, Active: b.Active,
		})
	})
}

func (a *API) updateHolidayRule(c *gin.Context) error {
	return update(c, &a.Catalogue.Holidays, domain.ErrHolidayNotFound, editHolidayRule)
}

func (a *API) listHolidayRules(c *gin.Context) error {
	q := httpx.Query(c)
	f := store.HolidayFilter{Active: filterBool(q, "active")}
	return list(a, c, "listHolidayRules", false, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.HolidayRule], error) {
		return store.Holidays(ctx, db, f, r)
	}, func(t domain.HolidayRule) page.Place {
		return page.Place{ID: t.ID.UUID(), Created: t.CreatedAt, Updated: t.UpdatedAt}
	}, view.HolidayRule)
}

func (a *API) holiday(ctx context.Context, id string) (domain.HolidayRule, error) {
	return found(ctx, a.DB, id, domain.ErrHolidayNotFound, store.Holiday)
}

// editHolidayRule makes the changes that a body asks for.
func editHolidayRule(b api.HolidayRuleUpdate) func(*domain.HolidayRule) error {
	return func(r *domain.HolidayRule) error {
		set(&r.Name, b.Name)
		set(&r.MultiplierBps, b.MultiplierBps)
		set(&r.Priority, b.Priority)
		set(&r.Stackable, b.Stackable)
		set(&r.Active, b.Active)
		if b.Recurrence != nil {
			r.Recurrence = domain.Recurrence(*b.Recurrence)
		}
		var target error
		if b.AppliesTo != nil {
			var t domain.Target
			t, target = domain.ParseTarget(*b.AppliesTo)
			r.ServiceIDs, r.PackageIDs = t.ServiceIDs, t.PackageIDs
		}
		return apperr.Join(setDate(&r.From, b.DateFrom, "date_from"), setDate(&r.To, b.DateTo, "date_to"), target)
	}
}

func setDate(to *domain.Date, given *string, name string) error {
	if given == nil {
		return nil
	}
	d, err := domain.ParseDate(*given)
	if err != nil {
		return fieldOf(name, err)
	}
	*to = d
	return nil
}
