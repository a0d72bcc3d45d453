package api

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

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

// units defines how the handlers read and show a unit.
func (a *API) units() rest.Collection[ids.ID[domain.UnitPrefix], domain.Unit] {
	return rest.Collection[ids.ID[domain.UnitPrefix], domain.Unit]{
		Parse: ids.Parse[domain.UnitPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "units", NotFound: domain.ErrUnitNotFound, Load: store.Unit,
		Show: func(u domain.Unit, mode api.Mode) rest.Response {
			return rest.Response{ID: u.ID.String(), Version: u.Version, Body: view.Unit(u, mode)}
		},
	}
}

func (a *API) createUnit(c *gin.Context) error {
	return rest.Create(c, a.units(), fromUnit, rest.None, a.Catalogue.CreateUnit)
}

func (a *API) updateUnit(c *gin.Context) error {
	return rest.Update(c, a.units(), fromUnit, rest.None, a.Catalogue.UpdateUnit)
}

func (a *API) getUnit(c *gin.Context) error { return rest.Get(c, a.units()) }

func (a *API) listUnits(c *gin.Context) error {
	q := httpx.Query(c)
	service, none := rest.FilterID[domain.ServicePrefix](q, "service_id")
	f := store.UnitFilter{Active: rest.FilterBool(q, "active"), Service: service}
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Unit], error) {
		if none {
			return page.Rows[domain.Unit]{}, nil
		}
		return store.Units(ctx, db, f, r)
	}, func(u domain.Unit) page.SortKey {
		return page.SortKey{ID: u.ID.UUID(), Created: u.CreatedAt, Updated: u.UpdatedAt}
	}, view.Unit)
}

// fromUnit also converts the body of a create, which has the same fields. The contract checks the required ones.
func fromUnit(b api.UnitUpdate) domain.UnitPatch {
	return domain.UnitPatch{
		Name: patch.FromPointer(b.Name), Description: patch.FromNullable(b.Description),
		Status: patch.FromPointer((*domain.UnitStatus)(b.Status)), Capacity: patch.FromNullable(b.Capacity),
		BookingMode:  patch.FromPointer((*domain.BookingMode)(b.BookingMode)),
		OpeningHours: fromOpeningHours(b.OpeningHours), ServiceIDs: patch.FromPointer(b.ServiceIds),
	}
}

func fromOpeningHours(n nullable.Nullable[api.OpeningHoursWrite]) patch.Field[map[string][][]string] {
	if table, err := n.Get(); err == nil {
		return patch.Value(map[string][][]string(table))
	}
	if n.IsNull() {
		return patch.Null[map[string][][]string]()
	}
	return patch.Field[map[string][][]string]{}
}
