package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
)

// LockCatalogue makes the transaction the only one that writes the caller's catalogue: links are seen from
// both of their ends, and two writers that met there in different orders would deadlock.
func LockCatalogue(ctx context.Context, tx pg.Tx) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('catalogue'),
		hashtext(current_setting('app.tenant_id') || current_setting('app.livemode')))`)
	if err != nil {
		return fmt.Errorf("lock catalogue: %w", err)
	}
	return nil
}

// CountServices counts the caller's services; those that are active are in use.
func CountServices(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `services`, `active`)
}

// CountUnits counts the caller's units; those that are not retired are in use.
func CountUnits(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `units`, `status <> 'retired'`)
}

// CountPackages counts the caller's packages; those that are active are in use.
func CountPackages(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `packages`, `active`)
}

// CountHolidays counts the caller's holiday rules; those that are active are in use.
func CountHolidays(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `holiday_rules`, `active`)
}

func count(ctx context.Context, tx pg.Tx, table, used string) (limit.Count, error) {
	rows, err := tx.Query(ctx, `select count(*) filter (where `+used+`) as in_use, count(*) filter (where not (`+used+`)) as aside from `+table)
	if err != nil {
		return limit.Count{}, fmt.Errorf("count %s: %w", table, err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[limit.Count])
	if err != nil {
		return limit.Count{}, fmt.Errorf("count %s: %w", table, err)
	}
	return n, nil
}

// PutService writes a service and its links. One that is there already gets the next version, as does each
// unit whose links change.
func PutService(ctx context.Context, tx pg.Tx, s domain.Service) error {
	b := &pgx.Batch{}
	b.Queue(`
		insert into services as s (id, name, description, duration_minutes, slot_step_minutes, buffer_before_minutes,
			buffer_after_minutes, active) values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (tenant_id, livemode, id) do update set name = $2, description = $3, duration_minutes = $4,
			slot_step_minutes = $5, buffer_before_minutes = $6, buffer_after_minutes = $7, active = $8,
			version = s.version + 1, updated_at = clock_timestamp()`,
		s.ID, s.Name, s.Description, s.DurationMinutes, s.SlotStepMinutes, s.BufferBeforeMinutes, s.BufferAfterMinutes, s.Active)
	// Bookings lock units by ascending id too.
	b.Queue(`select from units u where u.id = any($2::uuid[])
			or u.id in (select us.unit_id from unit_services us where us.service_id = $1)
		order by u.id for no key update`, s.ID, s.UnitIDs)
	b.Queue(`
		with gone as (delete from unit_services where service_id = $1 and unit_id <> all($2::uuid[]) returning unit_id),
		fresh as (insert into unit_services (service_id, unit_id) select $1, unnest($2::uuid[]) on conflict do nothing returning unit_id)
		update units u set version = u.version + 1, updated_at = clock_timestamp()
		where u.id in (select unit_id from gone union all select unit_id from fresh)`, s.ID, s.UnitIDs)
	return send(ctx, tx, b, "put service")
}

// PutUnit writes a unit and its links. One that is there already gets the next version, as does each service
// whose links change.
func PutUnit(ctx context.Context, tx pg.Tx, u domain.Unit) error {
	b := &pgx.Batch{}
	b.Queue(`
		insert into units as u (id, name, description, status, capacity, opening_hours) values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant_id, livemode, id) do update set name = $2, description = $3, status = $4, capacity = $5,
			opening_hours = $6, version = u.version + 1, updated_at = clock_timestamp()`,
		u.ID, u.Name, u.Description, u.Status, u.Capacity, u.OpeningHours)
	b.Queue(`
		with gone as (delete from unit_services where unit_id = $1 and service_id <> all($2::uuid[]) returning service_id),
		fresh as (insert into unit_services (unit_id, service_id) select $1, unnest($2::uuid[]) on conflict do nothing returning service_id)
		update services s set version = s.version + 1, updated_at = clock_timestamp()
		where s.id in (select service_id from gone union all select service_id from fresh)`, u.ID, u.ServiceIDs)
	return send(ctx, tx, b, "put unit")
}

// PutPackage writes a package and its units; one that is there already gets the next version.
func PutPackage(ctx context.Context, tx pg.Tx, p domain.Package) error {
	b := &pgx.Batch{}
	b.Queue(`
		insert into packages as p (id, service_id, name, description, currency, base_price, deposit_type, deposit_value,
			duration_minutes, visible, active) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		on conflict (tenant_id, livemode, id) do update set service_id = $2, name = $3, description = $4, currency = $5,
			base_price = $6, deposit_type = $7, deposit_value = $8, duration_minutes = $9, visible = $10, active = $11,
			version = p.version + 1, updated_at = clock_timestamp()`,
		p.ID, p.ServiceID, p.Name, p.Description, p.BasePrice.Currency, p.BasePrice.Minor, p.DepositType, p.DepositValue,
		p.DurationMinutes, p.Visible, p.Active)
	b.Queue(`delete from package_units where package_id = $1 and unit_id <> all($2::uuid[])`, p.ID, p.UnitIDs)
	b.Queue(`insert into package_units (package_id, unit_id) select $1, unnest($2::uuid[]) on conflict do nothing`, p.ID, p.UnitIDs)
	return send(ctx, tx, b, "put package")
}

// PutHoliday writes a holiday rule; one that is there already gets the next version.
func PutHoliday(ctx context.Context, tx pg.Tx, r domain.HolidayRule) error {
	b := &pgx.Batch{}
	b.Queue(`
		insert into holiday_rules as r (id, name, date_from, date_to, recurrence, multiplier_bps, service_ids, package_ids,
			priority, stackable, active)
		values ($1, $2, $3, $4, $5, $6, coalesce($7, '{}'::uuid[]), coalesce($8, '{}'::uuid[]), $9, $10, $11)
		on conflict (tenant_id, livemode, id) do update set name = excluded.name, date_from = excluded.date_from,
			date_to = excluded.date_to, recurrence = excluded.recurrence, multiplier_bps = excluded.multiplier_bps,
			service_ids = excluded.service_ids, package_ids = excluded.package_ids, priority = excluded.priority,
			stackable = excluded.stackable, active = excluded.active, version = r.version + 1, updated_at = clock_timestamp()`,
		r.ID, r.Name, r.From.UTC(), r.To.UTC(), r.Recurrence, r.MultiplierBps, r.ServiceIDs, r.PackageIDs,
		r.Priority, r.Stackable, r.Active)
	return send(ctx, tx, b, "put holiday rule")
}

func send(ctx context.Context, tx pg.Tx, b *pgx.Batch, what string) error {
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// KnownServices returns those of the ids that the caller has.
func KnownServices(ctx context.Context, q pg.Q, list []domain.ServiceID) ([]domain.ServiceID, error) {
	return known(ctx, q, `select s.id from services s where s.id = any($1::uuid[])`, list)
}

// KnownUnits returns those of the ids that the caller has.
func KnownUnits(ctx context.Context, q pg.Q, list []domain.UnitID) ([]domain.UnitID, error) {
	return known(ctx, q, `select u.id from units u where u.id = any($1::uuid[])`, list)
}

// KnownPackages returns those of the ids that the caller has.
func KnownPackages(ctx context.Context, q pg.Q, list []domain.PackageID) ([]domain.PackageID, error) {
	return known(ctx, q, `select p.id from packages p where p.id = any($1::uuid[])`, list)
}

func known[P ids.Prefix](ctx context.Context, q pg.Q, sql string, list []ids.ID[P]) ([]ids.ID[P], error) {
	if len(list) == 0 {
		return nil, nil
	}
	return many(ctx, q, pgx.RowTo[ids.ID[P]], sql, list)
}
