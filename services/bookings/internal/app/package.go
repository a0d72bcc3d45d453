package app

import (
	"context"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// CreatePackage makes a package.
func (a *Catalogue) CreatePackage(ctx context.Context, tx pg.Tx, in domain.PackagePatch) (domain.Package, error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return domain.Package{}, err
	}
	p, err := domain.NewPackage().Apply(in, caller.FromContext(ctx).Currency)
	if err != nil {
		return domain.Package{}, err
	}
	if err := validatePackage(ctx, tx, &p); err != nil {
		return domain.Package{}, err
	}
	if err := checkRoom(ctx, tx, limit.Packages, store.CountPackages, p.Active); err != nil {
		return domain.Package{}, err
	}
	return a.savePackage(ctx, tx, nil, p)
}

// UpdatePackage changes the given fields. A change that shows nowhere makes no new version.
func (a *Catalogue) UpdatePackage(ctx context.Context, tx pg.Tx, id domain.PackageID, in domain.PackagePatch, match patch.Precondition) (domain.Package, error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return domain.Package{}, err
	}
	current, err := store.Package(ctx, tx, id)
	if err != nil {
		return domain.Package{}, err
	}
	wanted, err := current.Apply(in, caller.FromContext(ctx).Currency)
	if err != nil {
		return domain.Package{}, err
	}
	if err := validatePackage(ctx, tx, &wanted); err != nil {
		return domain.Package{}, err
	}
	if err := match.Check(current.Version); err != nil {
		return domain.Package{}, err
	}
	same, err := contract.SameBody(view.Package(current, mode(ctx)), view.Package(wanted, mode(ctx)))
	if err != nil || same {
		return current, err
	}
	if wanted.Active != current.Active {
		if err := checkRoom(ctx, tx, limit.Packages, store.CountPackages, wanted.Active); err != nil {
			return domain.Package{}, err
		}
	}
	return a.savePackage(ctx, tx, &current, wanted)
}

// validatePackage returns the 422 of fields that do not go together, and of rows that the caller does not have.
func validatePackage(ctx context.Context, q pg.Q, p *domain.Package) error {
	service := []domain.ServiceID{p.ServiceID}
	return apperr.Join(
		checkExist(ctx, q, func(int) string { return "service_id" }, "No such service.", &service, store.KnownServices),
		p.Check(),
		checkExist(ctx, q, listed("unit_ids"), "No such unit.", &p.UnitIDs, store.KnownUnits),
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
