package app

import (
	"context"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// CreateHolidayRule makes a holiday rule.
func (a *Catalogue) CreateHolidayRule(ctx context.Context, tx pg.Tx, in domain.HolidayRulePatch) (domain.HolidayRule, error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return domain.HolidayRule{}, err
	}
	r, err := domain.NewHolidayRule().Apply(in)
	if err != nil {
		return domain.HolidayRule{}, err
	}
	if err := validateHolidayRule(ctx, tx, &r); err != nil {
		return domain.HolidayRule{}, err
	}
	if err := checkRoom(ctx, tx, limit.Holidays, store.CountHolidays, r.Active); err != nil {
		return domain.HolidayRule{}, err
	}
	return a.saveHolidayRule(ctx, tx, nil, r)
}

// UpdateHolidayRule changes the given fields. A change that shows nowhere makes no new version.
func (a *Catalogue) UpdateHolidayRule(
	ctx context.Context, tx pg.Tx, id domain.HolidayID, in domain.HolidayRulePatch, match patch.Precondition,
) (domain.HolidayRule, error) {
	if err := store.LockCatalogue(ctx, tx); err != nil {
		return domain.HolidayRule{}, err
	}
	current, err := store.Holiday(ctx, tx, id)
	if err != nil {
		return domain.HolidayRule{}, err
	}
	wanted, err := current.Apply(in)
	if err != nil {
		return domain.HolidayRule{}, err
	}
	if err := validateHolidayRule(ctx, tx, &wanted); err != nil {
		return domain.HolidayRule{}, err
	}
	if err := match.Check(current.Version); err != nil {
		return domain.HolidayRule{}, err
	}
	same, err := contract.SameBody(view.HolidayRule(current, mode(ctx)), view.HolidayRule(wanted, mode(ctx)))
	if err != nil || same {
		return current, err
	}
	if wanted.Active != current.Active {
		if err := checkRoom(ctx, tx, limit.Holidays, store.CountHolidays, wanted.Active); err != nil {
			return domain.HolidayRule{}, err
		}
	}
	return a.saveHolidayRule(ctx, tx, &current, wanted)
}

// validateHolidayRule returns the 422 of fields that do not go together, and of rows that the caller does not have.
func validateHolidayRule(ctx context.Context, q pg.Q, r *domain.HolidayRule) error {
	return apperr.Join(
		r.Check(),
		checkExist(ctx, q, listed("applies_to.service_ids"), "No such service.", &r.ServiceIDs, store.KnownServices),
		checkExist(ctx, q, listed("applies_to.package_ids"), "No such package.", &r.PackageIDs, store.KnownPackages),
	)
}

func (a *Catalogue) saveHolidayRule(ctx context.Context, tx pg.Tx, before *domain.HolidayRule, r domain.HolidayRule) (domain.HolidayRule, error) {
	if err := store.PutHoliday(ctx, tx, r); err != nil {
		return domain.HolidayRule{}, err
	}
	r, err := store.Holiday(ctx, tx, r.ID)
	if err != nil {
		return domain.HolidayRule{}, err
	}
	return r, a.holidayRuleUpdated(ctx, tx, before, r)
}
