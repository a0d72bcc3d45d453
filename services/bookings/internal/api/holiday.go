package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// holidayRules defines how the handlers read and show a holiday rule.
func (a *API) holidayRules() rest.Collection[ids.ID[domain.HolidayPrefix], domain.HolidayRule] {
	return rest.Collection[ids.ID[domain.HolidayPrefix], domain.HolidayRule]{
		Parse: ids.Parse[domain.HolidayPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "holiday-rules", NotFound: domain.ErrHolidayNotFound, Load: store.Holiday,
		Show: func(r domain.HolidayRule, mode api.Mode) rest.Response {
			return rest.Response{ID: r.ID.String(), Version: r.Version, Body: view.HolidayRule(r, mode)}
		},
	}
}

func (a *API) createHolidayRule(c *gin.Context) error {
	return rest.Create(c, a.holidayRules(), fromHolidayRule, rest.None, a.Catalogue.CreateHolidayRule)
}

func (a *API) updateHolidayRule(c *gin.Context) error {
	return rest.Update(c, a.holidayRules(), fromHolidayRule, rest.None, a.Catalogue.UpdateHolidayRule)
}

func (a *API) getHolidayRule(c *gin.Context) error { return rest.Get(c, a.holidayRules()) }

func (a *API) listHolidayRules(c *gin.Context) error {
	q := httpx.Query(c)
	f := store.HolidayFilter{Active: rest.FilterBool(q, "active")}
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.HolidayRule], error) {
		return store.Holidays(ctx, db, f, r)
	}, func(r domain.HolidayRule) page.SortKey {
		return page.SortKey{ID: r.ID.UUID(), Created: r.CreatedAt, Updated: r.UpdatedAt}
	}, view.HolidayRule)
}

// fromHolidayRule also converts the body of a create, which has the same fields. The contract checks the required ones.
func fromHolidayRule(b api.HolidayRuleUpdate) domain.HolidayRulePatch {
	return domain.HolidayRulePatch{
		Name: patch.FromPointer(b.Name), From: patch.FromPointer(b.DateFrom), To: patch.FromPointer(b.DateTo),
		Recurrence:    patch.FromPointer((*domain.Recurrence)(b.Recurrence)),
		MultiplierBps: patch.FromPointer(b.MultiplierBps), AppliesTo: patch.FromPointer(b.AppliesTo),
		Priority: patch.FromPointer(b.Priority), Stackable: patch.FromPointer(b.Stackable), Active: patch.FromPointer(b.Active),
	}
}
