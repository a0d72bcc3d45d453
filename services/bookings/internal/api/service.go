package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// services defines how the handlers read and show a service.
func (a *API) services() rest.Collection[ids.ID[domain.ServicePrefix], domain.Service] {
	return rest.Collection[ids.ID[domain.ServicePrefix], domain.Service]{
		Parse: ids.Parse[domain.ServicePrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "services", NotFound: domain.ErrServiceNotFound, Load: store.Service,
		Show: func(s domain.Service, mode api.Mode) rest.Response {
			return rest.Response{ID: s.ID.String(), Version: s.Version, Body: view.Service(s, mode)}
		},
	}
}

func (a *API) createService(c *gin.Context) error {
	return rest.Create(c, a.services(), fromService, rest.None, a.Catalogue.CreateService)
}

func (a *API) updateService(c *gin.Context) error {
	return rest.Update(c, a.services(), fromService, rest.None, a.Catalogue.UpdateService)
}

func (a *API) getService(c *gin.Context) error { return rest.Get(c, a.services()) }

func (a *API) listServices(c *gin.Context) error {
	q := httpx.Query(c)
	id, none := rest.FilterID[domain.ServicePrefix](q, "service_id")
	f := store.ServiceFilter{Active: rest.FilterBool(q, "active"), ID: id}
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Service], error) {
		if none {
			return page.Rows[domain.Service]{}, nil
		}
		return store.Services(ctx, db, f, r)
	}, func(s domain.Service) page.SortKey {
		return page.SortKey{ID: s.ID.UUID(), Created: s.CreatedAt, Updated: s.UpdatedAt}
	}, view.Service)
}

// fromService also converts the body of a create, which has the same fields. The contract checks the required ones.
func fromService(b api.ServiceUpdate) domain.ServicePatch {
	return domain.ServicePatch{
		Name: patch.FromPointer(b.Name), Description: patch.FromNullable(b.Description),
		DurationMinutes: patch.FromNullable(b.DurationMinutes), SlotStepMinutes: patch.FromNullable(b.SlotStepMinutes),
		BufferBeforeMinutes: patch.FromPointer(b.BufferBeforeMinutes), BufferAfterMinutes: patch.FromPointer(b.BufferAfterMinutes),
		Active: patch.FromPointer(b.Active), UnitIDs: patch.FromPointer(b.UnitIds),
		DefaultTaxes: fromTaxes(patch.FromNullable(b.DefaultTaxes)),
	}
}

// fromTaxes converts a list of taxes that may be null.
func fromTaxes(f patch.Field[[]api.TaxInput]) patch.Field[[]money.TaxInput] {
	list := f.Pointer()
	switch {
	case !f.Given():
		return patch.Field[[]money.TaxInput]{}
	case list == nil:
		return patch.Null[[]money.TaxInput]()
	}
	out := make([]money.TaxInput, len(*list))
	for i, tax := range *list {
		out[i] = money.TaxInput(tax)
	}
	return patch.Value(out)
}
