package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *API) getPackage(c *gin.Context) error {
	ctx := c.Request.Context()
	p, err := a.packaged(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	return httpx.Resource(c, p.Version, view.Package(p, mode(ctx)))
}

func (a *API) createPackage(c *gin.Context) error {
	currency := caller.Must(c.Request.Context()).Currency
	return create(c, &a.Catalogue.Packages, func(b api.PackageCreate) func(*domain.Package) error {
		return editPackage(currency, api.PackageUpdate{
			ServiceId: &b.ServiceId, Name: &b.Name, Description: b.Description, BasePrice: &b.BasePrice, DepositType: b.DepositType,
			DepositValue: b.DepositValue, DurationMinutes: b.DurationMinutes, UnitIds: b.UnitIds, Visible: b.Visible, Active: b.Active,
		})
	})
}

func (a *API) updatePackage(c *gin.Context) error {
	currency := caller.Must(c.Request.Context()).Currency
	return update(c, &a.Catalogue.Packages, domain.ErrPackageNotFound, func(b api.PackageUpdate) func(*domain.Package) error {
		return editPackage(currency, b)
	})
}

func (a *API) listPackages(c *gin.Context) error {
	q := httpx.Query(c)
	service, none := filterID[domain.ServicePrefix](q, "service_id")
	f := store.PackageFilter{Active: filterBool(q, "active"), Service: service}
	return list(a, c, "listPackages", none, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Package], error) {
		return store.Packages(ctx, db, f, r)
	}, func(t domain.Package) page.Place {
		return page.Place{ID: t.ID.UUID(), Created: t.CreatedAt, Updated: t.UpdatedAt}
	}, view.Package)
}

func (a *API) packaged(ctx context.Context, id string) (domain.Package, error) {
	return found(ctx, a.DB, id, domain.ErrPackageNotFound, store.Package)
}

// editPackage makes the changes that a body asks for; a price is in the operator's currency.
func editPackage(currency string, b api.PackageUpdate) func(*domain.Package) error {
	return func(p *domain.Package) error {
		set(&p.Name, b.Name)
		setOrNull(&p.Description, b.Description)
		set(&p.DepositValue, b.DepositValue)
		setOrNull(&p.DurationMinutes, b.DurationMinutes)
		set(&p.Visible, b.Visible)
		set(&p.Active, b.Active)
		if b.DepositType != nil {
			p.DepositType = domain.DepositType(*b.DepositType)
		}
		var service, price error
		if b.ServiceId != nil {
			if p.ServiceID, service = ids.Parse[domain.ServicePrefix](*b.ServiceId); service != nil {
				service = apperr.Field("service_id", "No such service.")
			}
		}
		if b.BasePrice != nil {
			p.BasePrice = money.Amount{Minor: b.BasePrice.Amount, Currency: b.BasePrice.Currency}
			if b.BasePrice.Currency != currency {
				price = apperr.Field("base_price.currency", "Must be %s, the operator's currency.", currency)
			}
		}
		return apperr.Join(service, price, setIDs(&p.UnitIDs, b.UnitIds, "unit_ids", "No such unit."))
	}
}
