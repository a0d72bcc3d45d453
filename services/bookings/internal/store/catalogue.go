package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
)

// Catalogue is what an operator offers; units are linked to services by their ServiceIDs.
type Catalogue struct {
	Services []domain.Service
	Units    []domain.Unit
	Packages []domain.Package
	Rules    []domain.HolidayRule
}

// InsertCatalogue writes rows that are not there yet and leaves the others as they are. It returns the new rows as
// they are read back, the services with the units of this catalogue.
func InsertCatalogue(ctx context.Context, tx pg.Tx, c Catalogue) (made Catalogue, err error) {
	const fresh = ` on conflict do nothing returning created_at, updated_at`
	b := &pgx.Batch{}
	for _, s := range c.Services {
		b.Queue(insertService+fresh, serviceArgs(s)).Query(stampedBy(&made.Services, s, func(s *domain.Service, at stamp) {
			s.Version, s.CreatedAt, s.UpdatedAt, s.UnitIDs = 1, at.CreatedAt, at.UpdatedAt, c.unitsOf(s.ID)
		}))
	}
	for _, u := range c.Units {
		b.Queue(insertUnit+fresh, unitArgs(u)).Query(stampedBy(&made.Units, u, func(u *domain.Unit, at stamp) {
			u.Version, u.CreatedAt, u.UpdatedAt, u.ServiceIDs = 1, at.CreatedAt, at.UpdatedAt, inOrder(u.ServiceIDs)
		}))
		b.Queue(linkUnit, unitArgs(u))
	}
	for _, p := range c.Packages {
		b.Queue(insertPackage+fresh, packageArgs(p)).Query(stampedBy(&made.Packages, p, func(p *domain.Package, at stamp) {
			p.Version, p.CreatedAt, p.UpdatedAt, p.UnitIDs = 1, at.CreatedAt, at.UpdatedAt, inOrder(p.UnitIDs)
		}))
		b.Queue(linkPackage, packageArgs(p))
	}
	for _, r := range c.Rules {
		b.Queue(insertHoliday+fresh, holidayArgs(r)).Query(stampedBy(&made.Rules, r, func(r *domain.HolidayRule, at stamp) {
			r.Version, r.CreatedAt, r.UpdatedAt = 1, at.CreatedAt, at.UpdatedAt
		}))
	}
	return made, send(ctx, tx, b, "insert catalogue")
}

// stamp is when a row was written.
type stamp struct{ CreatedAt, UpdatedAt time.Time }

// stampedBy adds v to the list when its insert has returned a row.
func stampedBy[T any](list *[]T, v T, set func(v *T, at stamp)) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[stamp])
		if err != nil || len(found) == 0 {
			return err
		}
		set(&v, found[0])
		*list = append(*list, v)
		return nil
	}
}

// unitsOf are the units that name the service.
func (c Catalogue) unitsOf(id domain.ServiceID) (list []domain.UnitID) {
	for _, u := range c.Units {
		if slices.Contains(u.ServiceIDs, id) {
			list = append(list, u.ID)
		}
	}
	return inOrder(list)
}

// inOrder is the list in the order in which it is read back.
func inOrder[P ids.Prefix](list []ids.ID[P]) []ids.ID[P] {
	return slices.SortedFunc(slices.Values(list), domain.CompareIDs[P])
}

// LockCatalogue makes the transaction the only one that writes the caller's catalogue: links are seen from both of their
// ends, and two writers that lock them in different orders would deadlock.
func LockCatalogue(ctx context.Context, tx pg.Tx) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('catalogue'),
		hashtext(current_setting('app.tenant_id') || current_setting('app.livemode')))`)
	if err != nil {
		return fmt.Errorf("lock catalogue: %w", err)
	}
	return nil
}

// CountServices counts the caller's active and inactive services.
func CountServices(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `services`, `active`)
}

// CountUnits counts the caller's units; retired ones are inactive, all others active.
func CountUnits(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `units`, `status <> 'retired'`)
}

// CountPackages counts the caller's active and inactive packages.
func CountPackages(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `packages`, `active`)
}

// CountHolidays counts the caller's active and inactive holiday rules.
func CountHolidays(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `holiday_rules`, `active`)
}

func count(ctx context.Context, tx pg.Tx, table, active string) (limit.Count, error) {
	n, err := pg.One(ctx, tx, pgx.RowToStructByName[limit.Count], pgx.ErrNoRows, `
		select count(*) filter (where `+active+`) as active, count(*) filter (where not (`+active+`)) as inactive
		from `+table+` where tenant_id = @tenant and livemode = @live`, pg.Args{})
	if err != nil {
		return limit.Count{}, fmt.Errorf("count %s: %w", table, err)
	}
	return n, nil
}

// A row of the catalogue is written by one statement: one that is there already gets the next version.
const (
	insertService = `
		insert into services as s (tenant_id, livemode, id, name, description, duration_minutes, slot_step_minutes, buffer_before_minutes,
			buffer_after_minutes, active)
		values (@tenant, @live, @id, @name, @description, @duration_minutes, @slot_step_minutes, @buffer_before_minutes, @buffer_after_minutes, @active)`
	insertUnit = `
		insert into units as u (tenant_id, livemode, id, name, description, status, capacity, opening_hours)
		values (@tenant, @live, @id, @name, @description, @status, @capacity, @opening_hours)`
	insertPackage = `
		insert into packages as p (tenant_id, livemode, id, service_id, name, description, currency, base_price, deposit_type, deposit_value,
			duration_minutes, visible, active)
		values (@tenant, @live, @id, @service_id, @name, @description, @currency, @base_price, @deposit_type, @deposit_value,
			@duration_minutes, @visible, @active)`
	insertHoliday = `
		insert into holiday_rules as r (tenant_id, livemode, id, name, date_from, date_to, recurrence, multiplier_bps, service_ids, package_ids,
			priority, stackable, active)
		values (@tenant, @live, @id, @name, @date_from, @date_to, @recurrence, @multiplier_bps, coalesce(@service_ids, '{}'::uuid[]),
			coalesce(@package_ids, '{}'::uuid[]), @priority, @stackable, @active)`
	linkUnit = `
		insert into unit_services (tenant_id, livemode, unit_id, service_id)
		select @tenant, @live, @id, unnest(@service_ids::uuid[]) on conflict do nothing`
	linkPackage = `
		insert into package_units (tenant_id, livemode, package_id, unit_id)
		select @tenant, @live, @id, unnest(@unit_ids::uuid[]) on conflict do nothing`
)

func serviceArgs(s domain.Service) pg.Args {
	return pg.Args{
		"id": s.ID, "name": s.Name, "description": s.Description, "duration_minutes": s.DurationMinutes,
		"slot_step_minutes": s.SlotStepMinutes, "buffer_before_minutes": s.BufferBeforeMinutes,
		"buffer_after_minutes": s.BufferAfterMinutes, "active": s.Active, "unit_ids": s.UnitIDs,
	}
}

func unitArgs(u domain.Unit) pg.Args {
	return pg.Args{
		"id": u.ID, "name": u.Name, "description": u.Description, "status": u.Status, "capacity": u.Capacity,
		"opening_hours": u.OpeningHours, "service_ids": u.ServiceIDs,
	}
}

func packageArgs(p domain.Package) pg.Args {
	return pg.Args{
		"id": p.ID, "service_id": p.ServiceID, "name": p.Name, "description": p.Description, "currency": p.BasePrice.Currency,
		"base_price": p.BasePrice.Minor, "deposit_type": p.DepositType, "deposit_value": p.DepositValue,
		"duration_minutes": p.DurationMinutes, "visible": p.Visible, "active": p.Active, "unit_ids": p.UnitIDs,
	}
}

func holidayArgs(r domain.HolidayRule) pg.Args {
	return pg.Args{
		"id": r.ID, "name": r.Name, "date_from": r.From.UTC(), "date_to": r.To.UTC(), "recurrence": r.Recurrence,
		"multiplier_bps": r.MultiplierBps, "service_ids": r.ServiceIDs, "package_ids": r.PackageIDs,
		"priority": r.Priority, "stackable": r.Stackable, "active": r.Active,
	}
}

// PutService writes a service and its links. One that is there already gets the next version, as does each
// unit whose links change: these are returned.
func PutService(ctx context.Context, tx pg.Tx, s domain.Service) (linked []domain.UnitID, err error) {
	args := serviceArgs(s)
	b := &pgx.Batch{}
	b.Queue(insertService+`
		on conflict (tenant_id, livemode, id) do update set name = excluded.name, description = excluded.description,
			duration_minutes = excluded.duration_minutes, slot_step_minutes = excluded.slot_step_minutes,
			buffer_before_minutes = excluded.buffer_before_minutes, buffer_after_minutes = excluded.buffer_after_minutes,
			active = excluded.active, version = s.version + 1, updated_at = clock_timestamp()`, args)
	// Bookings lock units by ascending id too.
	b.Queue(`
		select from units u where u.tenant_id = @tenant and u.livemode = @live and (u.id = any(@unit_ids::uuid[])
			or u.id in (select us.unit_id from unit_services us where us.tenant_id = @tenant and us.livemode = @live and us.service_id = @id))
		order by u.id for no key update`, args)
	b.Queue(`
		with gone as (delete from unit_services where tenant_id = @tenant and livemode = @live and service_id = @id
			and unit_id <> all(@unit_ids::uuid[]) returning unit_id),
		fresh as (insert into unit_services (tenant_id, livemode, service_id, unit_id)
			select @tenant, @live, @id, unnest(@unit_ids::uuid[]) on conflict do nothing returning unit_id)
		update units u set version = u.version + 1, updated_at = clock_timestamp()
		where u.tenant_id = @tenant and u.livemode = @live and u.id in (select unit_id from gone union all select unit_id from fresh)
		returning u.id`, args).Query(collectInto(&linked))
	return linked, send(ctx, tx, b, "put service")
}

// PutUnit writes a unit and its links. One that is there already gets the next version, as does each service
// whose links change: these are returned.
func PutUnit(ctx context.Context, tx pg.Tx, u domain.Unit) (linked []domain.ServiceID, err error) {
	args := unitArgs(u)
	b := &pgx.Batch{}
	b.Queue(insertUnit+`
		on conflict (tenant_id, livemode, id) do update set name = excluded.name, description = excluded.description,
			status = excluded.status, capacity = excluded.capacity, opening_hours = excluded.opening_hours,
			version = u.version + 1, updated_at = clock_timestamp()`, args)
	b.Queue(`
		with gone as (delete from unit_services where tenant_id = @tenant and livemode = @live and unit_id = @id
			and service_id <> all(@service_ids::uuid[]) returning service_id),
		fresh as (`+linkUnit+` returning service_id)
		update services s set version = s.version + 1, updated_at = clock_timestamp()
		where s.tenant_id = @tenant and s.livemode = @live and s.id in (select service_id from gone union all select service_id from fresh)
		returning s.id`, args).Query(collectInto(&linked))
	return linked, send(ctx, tx, b, "put unit")
}

// PutPackage writes a package and its units; one that is there already gets the next version.
func PutPackage(ctx context.Context, tx pg.Tx, p domain.Package) error {
	args := packageArgs(p)
	b := &pgx.Batch{}
	b.Queue(insertPackage+`
		on conflict (tenant_id, livemode, id) do update set service_id = excluded.service_id, name = excluded.name,
			description = excluded.description, currency = excluded.currency, base_price = excluded.base_price,
			deposit_type = excluded.deposit_type, deposit_value = excluded.deposit_value,
			duration_minutes = excluded.duration_minutes, visible = excluded.visible, active = excluded.active,
			version = p.version + 1, updated_at = clock_timestamp()`, args)
	b.Queue(`delete from package_units where tenant_id = @tenant and livemode = @live and package_id = @id
		and unit_id <> all(@unit_ids::uuid[])`, args)
	b.Queue(linkPackage, args)
	return send(ctx, tx, b, "put package")
}

// PutHoliday writes a holiday rule; one that is there already gets the next version.
func PutHoliday(ctx context.Context, tx pg.Tx, r domain.HolidayRule) error {
	b := &pgx.Batch{}
	b.Queue(insertHoliday+`
		on conflict (tenant_id, livemode, id) do update set name = excluded.name, date_from = excluded.date_from,
			date_to = excluded.date_to, recurrence = excluded.recurrence, multiplier_bps = excluded.multiplier_bps,
			service_ids = excluded.service_ids, package_ids = excluded.package_ids, priority = excluded.priority,
			stackable = excluded.stackable, active = excluded.active, version = r.version + 1, updated_at = clock_timestamp()`, holidayArgs(r))
	return send(ctx, tx, b, "put holiday rule")
}

// collectInto reads the ids that a statement of a batch returns.
func collectInto[P ids.Prefix](list *[]ids.ID[P]) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*list, err = pgx.CollectRows(rows, pgx.RowTo[ids.ID[P]])
		return err
	}
}

func send(ctx context.Context, tx pg.Tx, b *pgx.Batch, what string) error {
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// KnownServices returns those of the ids that the caller has.
func KnownServices(ctx context.Context, q pg.Q, list []domain.ServiceID) ([]domain.ServiceID, error) {
	return known(ctx, q, `select s.id from services s where s.tenant_id = @tenant and s.livemode = @live and s.id = any(@ids::uuid[])`, list)
}

// KnownUnits returns those of the ids that the caller has.
func KnownUnits(ctx context.Context, q pg.Q, list []domain.UnitID) ([]domain.UnitID, error) {
	return known(ctx, q, `select u.id from units u where u.tenant_id = @tenant and u.livemode = @live and u.id = any(@ids::uuid[])`, list)
}

// KnownPackages returns those of the ids that the caller has.
func KnownPackages(ctx context.Context, q pg.Q, list []domain.PackageID) ([]domain.PackageID, error) {
	return known(ctx, q, `select p.id from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = any(@ids::uuid[])`, list)
}

func known[P ids.Prefix](ctx context.Context, q pg.Q, sql string, list []ids.ID[P]) ([]ids.ID[P], error) {
	if len(list) == 0 {
		return nil, nil
	}
	return pg.Many(ctx, q, pgx.RowTo[ids.ID[P]], sql, pg.Args{"ids": list})
}
