package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// Catalogue is what an operator offers; units are linked to services by their ServiceIDs.
type Catalogue struct {
	Services []domain.Service
	Units    []domain.Unit
	Packages []domain.Package
	Rules    []domain.HolidayRule
}

// InsertCatalogue writes rows that are not there yet and leaves the others as they are.
func InsertCatalogue(ctx context.Context, tx pg.Tx, c Catalogue) error {
	b := &pgx.Batch{}
	for _, s := range c.Services {
		b.Queue(`insert into services (id, name, description, duration_minutes, slot_step_minutes, buffer_before_minutes,
			buffer_after_minutes, active) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
			s.ID, s.Name, s.Description, s.DurationMinutes, s.SlotStepMinutes, s.BufferBeforeMinutes, s.BufferAfterMinutes, s.Active)
	}
	for _, u := range c.Units {
		b.Queue(`insert into units (id, name, description, status, capacity, opening_hours) values ($1, $2, $3, $4, $5, $6)
			on conflict do nothing`, u.ID, u.Name, u.Description, u.Status, u.Capacity, u.OpeningHours)
		b.Queue(`insert into unit_services (unit_id, service_id) select $1, unnest($2::uuid[]) on conflict do nothing`, u.ID, u.ServiceIDs)
	}
	for _, p := range c.Packages {
		b.Queue(`insert into packages (id, service_id, name, description, currency, base_price, deposit_type, deposit_value,
			duration_minutes, visible, active) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict do nothing`,
			p.ID, p.ServiceID, p.Name, p.Description, p.BasePrice.Currency, p.BasePrice.Minor, p.DepositType, p.DepositValue,
			p.DurationMinutes, p.Visible, p.Active)
		b.Queue(`insert into package_units (package_id, unit_id) select $1, unnest($2::uuid[]) on conflict do nothing`, p.ID, p.UnitIDs)
	}
	for _, r := range c.Rules {
		b.Queue(`insert into holiday_rules (id, name, date_from, date_to, recurrence, multiplier_bps, service_ids, package_ids,
			priority, stackable, active) values ($1, $2, $3, $4, $5, $6, coalesce($7, '{}'::uuid[]), coalesce($8, '{}'::uuid[]), $9, $10, $11) on conflict do nothing`,
			r.ID, r.Name, r.From.UTC(), r.To.UTC(), r.Recurrence, r.MultiplierBps, r.ServiceIDs, r.PackageIDs,
			r.Priority, r.Stackable, r.Active)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("insert catalogue: %w", err)
	}
	return nil
}
