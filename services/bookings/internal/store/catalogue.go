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

// Catalogue is what an operator offers. Units are linked to services by their ServiceIDs.
type Catalogue struct {
	Services []domain.Service
	Units    []domain.Unit
	Packages []domain.Package
	Rules    []domain.HolidayRule
}

// InsertCatalogue writes rows that do not exist yet and leaves the others unchanged. It returns the new rows as they would be read,
// with the services linked to the units of this catalogue.
func InsertCatalogue(ctx context.Context, tx pg.Tx, c Catalogue) (inserted Catalogue, err error) {
	const fresh = ` on conflict do nothing returning created_at, updated_at`
	b := &pgx.Batch{}
	for _, s := range c.Services {
		b.Queue(services.Insert()+fresh, services.Args(s)).Query(stampedBy(&inserted.Services, s, func(s *domain.Service, at stamp) {
			s.Version, s.CreatedAt, s.UpdatedAt, s.UnitIDs = 1, at.CreatedAt, at.UpdatedAt, c.unitsOf(s.ID)
		}))
	}
	for _, u := range c.Units {
		b.Queue(units.Insert()+fresh, units.Args(u)).Query(stampedBy(&inserted.Units, u, func(u *domain.Unit, at stamp) {
			u.Version, u.CreatedAt, u.UpdatedAt, u.ServiceIDs = 1, at.CreatedAt, at.UpdatedAt, inOrder(u.ServiceIDs)
		}))
		b.Queue(linkUnit, unitLinks(u))
	}
	for _, p := range c.Packages {
		b.Queue(packages.Insert()+fresh, packages.Args(p)).Query(stampedBy(&inserted.Packages, p, func(p *domain.Package, at stamp) {
			p.Version, p.CreatedAt, p.UpdatedAt, p.UnitIDs = 1, at.CreatedAt, at.UpdatedAt, inOrder(p.UnitIDs)
		}))
		b.Queue(linkPackage, packageLinks(p))
	}
	for _, r := range c.Rules {
		b.Queue(rules.Insert()+fresh, rules.Args(r)).Query(stampedBy(&inserted.Rules, r, func(r *domain.HolidayRule, at stamp) {
			r.Version, r.CreatedAt, r.UpdatedAt = 1, at.CreatedAt, at.UpdatedAt
		}))
	}
	return pg.SendFor(ctx, tx, b, "insert catalogue", &inserted)
}

// stamp contains the times at which a row was written.
type stamp struct{ CreatedAt, UpdatedAt time.Time }

// stampedBy adds v to the list if its insert returned a row.
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

// unitsOf returns the units that are linked to the service.
func (c Catalogue) unitsOf(id domain.ServiceID) (list []domain.UnitID) {
	for _, u := range c.Units {
		if slices.Contains(u.ServiceIDs, id) {
			list = append(list, u.ID)
		}
	}
	return inOrder(list)
}

// inOrder returns the list in the order in which it is read.
func inOrder[P ids.Prefix](list []ids.ID[P]) []ids.ID[P] {
	return slices.SortedFunc(slices.Values(list), domain.CompareIDs[P])
}

// LockCatalogue makes the transaction the only writer of the caller's catalogue. Links are visible from both ends, so two writers
// that lock them in different orders would deadlock.
func LockCatalogue(ctx context.Context, tx pg.Tx) error {
	return pg.Exec(ctx, tx, "lock catalogue", `select pg_advisory_xact_lock(hashtext('catalogue'),
		hashtext(current_setting('app.tenant_id') || current_setting('app.livemode')))`)
}

// CountServices counts the caller's active and inactive services.
func CountServices(ctx context.Context, tx pg.Tx) (limit.Count, error) {
	return count(ctx, tx, `services`, `active`)
}

// CountUnits counts the caller's active and inactive units. Only retired units are inactive.
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

// collectInto reads the ids that a statement of a batch returns.
func collectInto[P ids.Prefix](list *[]ids.ID[P]) func(rows pgx.Rows) error {
	return pg.ListInto(list, pgx.RowTo[ids.ID[P]])
}

// KnownServices returns those ids that the caller has.
func KnownServices(ctx context.Context, q pg.Q, list []domain.ServiceID) ([]domain.ServiceID, error) {
	return known(ctx, q, `select s.id from services s where s.tenant_id = @tenant and s.livemode = @live and s.id = any(@ids::uuid[])`, list)
}

// KnownUnits returns those ids that the caller has.
func KnownUnits(ctx context.Context, q pg.Q, list []domain.UnitID) ([]domain.UnitID, error) {
	return known(ctx, q, `select u.id from units u where u.tenant_id = @tenant and u.livemode = @live and u.id = any(@ids::uuid[])`, list)
}

// KnownPackages returns those ids that the caller has.
func KnownPackages(ctx context.Context, q pg.Q, list []domain.PackageID) ([]domain.PackageID, error) {
	return known(ctx, q, `select p.id from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = any(@ids::uuid[])`, list)
}

func known[P ids.Prefix](ctx context.Context, q pg.Q, sql string, list []ids.ID[P]) ([]ids.ID[P], error) {
	if len(list) == 0 {
		return nil, nil
	}
	return pg.Many(ctx, q, pgx.RowTo[ids.ID[P]], sql, pg.Args{"ids": list})
}

// Names returns the names of those customers and units that the caller has, by id. An erased customer has none.
func Names(ctx context.Context, q pg.Q, customers []domain.CustomerID, units []domain.UnitID) (map[[16]byte]string, error) {
	if len(customers)+len(units) == 0 {
		return nil, nil
	}
	type row struct {
		ID   [16]byte
		Name string
	}
	rows, err := pg.Many(ctx, q, pgx.RowToStructByName[row], `
		select c.id, c.name from customers c where c.tenant_id = @tenant and c.livemode = @live and c.id = any(@customers::uuid[]) and not c.erased
		union all
		select u.id, u.name from units u where u.tenant_id = @tenant and u.livemode = @live and u.id = any(@units::uuid[])`,
		pg.Args{"customers": customers, "units": units})
	names := make(map[[16]byte]string, len(rows))
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	return names, err
}
