package api

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/report"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// packages defines how the handlers read and show a package.
func (a *API) packages() rest.Collection[ids.ID[domain.PackagePrefix], domain.Package] {
	return rest.Collection[ids.ID[domain.PackagePrefix], domain.Package]{
		Parse: ids.Parse[domain.PackagePrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "packages", NotFound: domain.ErrPackageNotFound, Load: store.Package,
		Show: func(p domain.Package, mode api.Mode) rest.Response {
			return rest.Response{ID: p.ID.String(), Version: p.Version, Body: view.Package(p, mode)}
		},
	}
}

func (a *API) createPackage(c *gin.Context) error {
	return rest.Create(c, a.packages(), fromPackage, rest.None, a.Catalogue.CreatePackage)
}

func (a *API) updatePackage(c *gin.Context) error {
	return rest.Update(c, a.packages(), fromPackage, rest.None, a.Catalogue.UpdatePackage)
}

func (a *API) getPackage(c *gin.Context) error { return rest.Get(c, a.packages()) }

func (a *API) listPackages(c *gin.Context) error {
	q := httpx.Query(c)
	service, none := rest.FilterID[domain.ServicePrefix](q, "service_id")
	f := store.PackageFilter{Active: rest.FilterBool(q, "active"), Service: service}
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Package], error) {
		if none {
			return page.Rows[domain.Package]{}, nil
		}
		return store.Packages(ctx, db, f, r)
	}, func(p domain.Package) page.SortKey {
		return page.SortKey{ID: p.ID.UUID(), Created: p.CreatedAt, Updated: p.UpdatedAt}
	}, view.Package)
}

// listPackagePrices returns the price of a package on each day of a range.
func (a *API) listPackagePrices(c *gin.Context) error {
	id, err := optionalID[domain.PackagePrefix]("package_id", httpx.Query(c).String("package_id"))
	if err != nil {
		return err
	}
	days, err := reportDays(c, report.MaxPriceDays)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	tenant, err := a.Bookings.Tenants.Tenant(ctx)
	if err != nil {
		return err
	}
	refs, err := store.PricedPackage(ctx, a.DB, id)
	if errors.Is(err, domain.ErrPackageNotFound) {
		return apperr.Field("package_id", "Package not found.")
	}
	if err != nil {
		return err
	}
	p := refs.Package
	refs.Taxes = tenant.Taxes
	out := internalapi.PackagePrices{
		PackageID: id.String(), ServiceID: p.ServiceID.String(), Name: p.Name, Currency: p.BasePrice.Currency,
		Data: make([]internalapi.DayPrice, days.Days()),
	}
	for i, d := range report.Prices(days, refs) {
		out.Data[i] = view.DayPrice(d)
	}
	return rest.Object(c, out)
}

// fromPackage also converts the body of a create, which has the same fields. The contract checks the required ones.
func fromPackage(b api.PackageUpdate) domain.PackagePatch {
	p := domain.PackagePatch{
		ServiceID: patch.FromPointer(b.ServiceId), Name: patch.FromPointer(b.Name), Description: patch.FromNullable(b.Description),
		Pricing:     patch.FromPointer((*domain.Pricing)(b.Pricing)),
		DepositType: patch.FromPointer((*domain.DepositType)(b.DepositType)), DepositValue: patch.FromPointer(b.DepositValue),
		DurationMinutes: patch.FromNullable(b.DurationMinutes), UnitIDs: patch.FromPointer(b.UnitIds),
		Visible: patch.FromPointer(b.Visible), Active: patch.FromPointer(b.Active),
	}
	if b.BasePrice != nil {
		p.BasePrice = patch.Value(money.Amount{Minor: b.BasePrice.Amount, Currency: b.BasePrice.Currency})
	}
	return p
}
