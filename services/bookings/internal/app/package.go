package app

import (
	"context"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *Catalogue) packages() kind[domain.PackageID, domain.Package, domain.PackagePatch, api.Package] {
	return kind[domain.PackageID, domain.Package, domain.PackagePatch, api.Package]{
		apply: func(ctx context.Context, p domain.Package, in domain.PackagePatch) (domain.Package, error) {
			return p.Apply(in, caller.FromContext(ctx).Currency)
		},
		validate: validatePackage, load: store.Package, save: a.savePackage, show: view.Package,
		version: func(p domain.Package) int64 { return p.Version },
		active:  func(p domain.Package) bool { return p.Active },
		caps:    limit.Packages, count: store.CountPackages,
	}
}

// CreatePackage creates a package.
func (a *Catalogue) CreatePackage(ctx context.Context, tx pg.Tx, in domain.PackagePatch) (domain.Package, error) {
	return a.packages().create(ctx, tx, domain.NewPackage(), in)
}

// UpdatePackage changes the given fields. A change without a visible effect does not create a new version.
func (a *Catalogue) UpdatePackage(
	ctx context.Context, tx pg.Tx, id domain.PackageID, in domain.PackagePatch, match patch.Precondition,
) (domain.Package, error) {
	return a.packages().update(ctx, tx, id, in, match)
}

// validatePackage returns the 422 for fields that are inconsistent, and for rows that the caller does not have.
func validatePackage(ctx context.Context, q pg.Q, p *domain.Package) error {
	service := []domain.ServiceID{p.ServiceID}
	return apperr.Join(
		checkExist(ctx, q, func(int) string { return "service_id" }, "Service not found.", &service, store.KnownServices),
		p.Check(),
		checkExist(ctx, q, listed("unit_ids"), "Unit not found.", &p.UnitIDs, store.KnownUnits),
	)
}

func (a *Catalogue) savePackage(ctx context.Context, tx pg.Tx, before *domain.Package, p domain.Package) (domain.Package, error) {
	if err := store.PutPackage(ctx, tx, p); err != nil {
		return domain.Package{}, err
	}
	p, err := store.Package(ctx, tx, p.ID)
	if err != nil {
		return domain.Package{}, err
	}
	return p, a.packageUpdated(ctx, tx, before, p)
}
