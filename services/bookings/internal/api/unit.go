package api

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *API) getUnit(c *gin.Context) error {
	ctx := c.Request.Context()
	u, err := a.unit(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	return httpx.Resource(c, u.Version, view.Unit(u, mode(ctx)))
}

func (a *API) createUnit(c *gin.Context) error {
	return create(c, &a.Catalogue.Units, func(b api.UnitCreate) func(*domain.Unit) error {
		return editUnit(api.UnitUpdate{
			Name: &b.Name, Description: b.Description, ServiceIds: b.ServiceIds, Status: b.Status, Capacity: b.Capacity,
			OpeningHours: b.OpeningHours,
		})
	})
}

func (a *API) updateUnit(c *gin.Context) error {
	return update(c, &a.Catalogue.Units, domain.ErrUnitNotFound, editUnit)
}

func (a *API) listUnits(c *gin.Context) error {
	q := httpx.Query(c)
	service, none := filterID[domain.ServicePrefix](q, "service_id")
	f := store.UnitFilter{Active: filterBool(q, "active"), Service: service}
	return list(a, c, "listUnits", none, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Unit], error) {
		return store.Units(ctx, db, f, r)
	}, func(t domain.Unit) page.Place {
		return page.Place{ID: t.ID.UUID(), Created: t.CreatedAt, Updated: t.UpdatedAt}
	}, view.Unit)
}

func (a *API) unit(ctx context.Context, id string) (domain.Unit, error) {
	return found(ctx, a.DB, id, domain.ErrUnitNotFound, store.Unit)
}

// editUnit makes the changes that a body asks for.
func editUnit(b api.UnitUpdate) func(*domain.Unit) error {
	return func(u *domain.Unit) error {
		set(&u.Name, b.Name)
		setOrNull(&u.Description, b.Description)
		setOrNull(&u.Capacity, b.Capacity)
		if b.Status != nil {
			u.Status = domain.UnitStatus(*b.Status)
		}
		failed := setIDs(&u.ServiceIDs, b.ServiceIds, "service_ids", "No such service.")
		if b.OpeningHours.IsSpecified() {
			var err error
			if u.OpeningHours, err = domain.ParseOpeningHours(openings(b.OpeningHours)); err != nil {
				return apperr.Join(failed, err)
			}
		}
		return failed
	}
}

// openings is nil for null.
func openings(n nullable.Nullable[api.OpeningHoursWrite]) map[string][][]string {
	table, err := n.Get()
	if err != nil {
		return nil
	}
	return table
}
