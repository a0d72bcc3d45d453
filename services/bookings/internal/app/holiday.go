package app

import (
	"context"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *Catalogue) holidayRules() kind[domain.HolidayID, domain.HolidayRule, domain.HolidayRulePatch, api.HolidayRule] {
	return kind[domain.HolidayID, domain.HolidayRule, domain.HolidayRulePatch, api.HolidayRule]{
		apply: func(_ context.Context, r domain.HolidayRule, in domain.HolidayRulePatch) (domain.HolidayRule, error) {
			return r.Apply(in)
		},
		validate: validateHolidayRule, load: store.Holiday, save: a.saveHolidayRule, show: view.HolidayRule,
		version: func(r domain.HolidayRule) int64 { return r.Version },
		active:  func(r domain.HolidayRule) bool { return r.Active },
		caps:    limit.Holidays, count: store.CountHolidays,
	}
}

// CreateHolidayRule creates a holiday rule.
func (a *Catalogue) CreateHolidayRule(ctx context.Context, tx pg.Tx, in domain.HolidayRulePatch) (domain.HolidayRule, error) {
	return a.holidayRules().create(ctx, tx, domain.NewHolidayRule(), in)
}

// UpdateHolidayRule changes the given fields. A change without a visible effect does not create a new version.
func (a *Catalogue) UpdateHolidayRule(
	ctx context.Context, tx pg.Tx, id domain.HolidayID, in domain.HolidayRulePatch, match patch.Precondition,
) (domain.HolidayRule, error) {
	return a.holidayRules().update(ctx, tx, id, in, match)
}

// validateHolidayRule returns the 422 for fields that are inconsistent, and for rows that the caller does not have.
func validateHolidayRule(ctx context.Context, q pg.Q, r *domain.HolidayRule) error {
	return apperr.Join(
		r.Check(),
		checkExist(ctx, q, listed("applies_to.service_ids"), "Service not found.", &r.ServiceIDs, store.KnownServices),
		checkExist(ctx, q, listed("applies_to.package_ids"), "Package not found.", &r.PackageIDs, store.KnownPackages),
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
