package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

const packageColumns = `p.id, p.service_id, p.name, p.description, p.currency, p.base_price, p.pricing, p.deposit_type, p.deposit_value,
	p.duration_minutes, p.visible, p.active, p.version, p.created_at, p.updated_at,
	array(select pu.unit_id from package_units pu where pu.tenant_id = p.tenant_id and pu.livemode = p.livemode and pu.package_id = p.id order by pu.unit_id) as unit_ids`

func scanPackage(row pgx.CollectableRow) (domain.Package, error) {
	var p domain.Package
	err := row.Scan(&p.ID, &p.ServiceID, &p.Name, &p.Description, &p.BasePrice.Currency, &p.BasePrice.Minor, &p.Pricing, &p.DepositType,
		&p.DepositValue, &p.DurationMinutes, &p.Visible, &p.Active, &p.Version, &p.CreatedAt, &p.UpdatedAt, &p.UnitIDs)
	if err != nil {
		return domain.Package{}, fmt.Errorf("scan package: %w", err)
	}
	return p, nil
}

// packageRow returns the columns that are written, by name.
func packageRow(p domain.Package) pg.Args {
	return pg.Args{
		"id": p.ID, "service_id": p.ServiceID, "name": p.Name, "description": p.Description, "currency": p.BasePrice.Currency,
		"base_price": p.BasePrice.Minor, "pricing": p.Pricing, "deposit_type": p.DepositType, "deposit_value": p.DepositValue,
		"duration_minutes": p.DurationMinutes, "visible": p.Visible, "active": p.Active,
	}
}

// packageLinks returns the package's links to units.
func packageLinks(p domain.Package) pg.Args { return pg.Args{"id": p.ID, "unit_ids": p.UnitIDs} }

var (
	packageTable  = packageRow(domain.Package{}).Columns()
	insertPackage = packageTable.Insert("packages", "p")
	putPackage    = insertPackage + replace(packageTable, "p")
)

const linkPackage = `
	insert into package_units (tenant_id, livemode, package_id, unit_id)
	select @tenant, @live, @id, unnest(@unit_ids::uuid[]) on conflict do nothing`

// PackageFilter filters a list. Nil fields do not filter.
type PackageFilter struct {
	Active  *bool
	Service *domain.ServiceID
}

// Package reads one package, or returns domain.ErrPackageNotFound.
func Package(ctx context.Context, q pg.Q, id domain.PackageID) (domain.Package, error) {
	return pg.One(ctx, q, scanPackage, domain.ErrPackageNotFound, `select `+packageColumns+` from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, pg.Args{"id": id})
}

// PricedPackage reads a package with its service and the rules that may affect its price in one round trip, or returns
// domain.ErrPackageNotFound.
func PricedPackage(ctx context.Context, db *pg.DB, id domain.PackageID) (refs domain.Refs, err error) {
	b := &pgx.Batch{}
	b.Queue(`select `+packageColumns+` from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, pg.Args{"id": id})
	b.Queue(`select `+serviceColumns+` from packages p join services s on (s.tenant_id, s.livemode, s.id) = (p.tenant_id, p.livemode, p.service_id)
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, pg.Args{"id": id})
	b.Queue(`select `+ruleColumns+` from holiday_rules r where r.tenant_id = @tenant and r.livemode = @live and r.active`, pg.Args{})
	err = db.ReadBatch(ctx, b, func(res pgx.BatchResults) (err error) {
		if refs.Package, err = pg.NextOne(res, scanPackage); err != nil {
			return err
		}
		if refs.Package == nil {
			return domain.ErrPackageNotFound
		}
		if refs.Service, err = pg.NextOne(res, pgx.RowToStructByName[domain.Service]); err != nil {
			return err
		}
		refs.Rules, err = pg.Next(res, pgx.RowToStructByName[domain.HolidayRule])
		return err
	})
	return refs, err
}

// Packages reads one page.
func Packages(ctx context.Context, q pg.Q, f PackageFilter, r page.Request) (page.Rows[domain.Package], error) {
	w := &page.Where{}
	w.Add(`p.tenant_id = @tenant and p.livemode = @live`)
	if f.Active != nil {
		w.Add(`p.active = ?`, *f.Active)
	}
	if f.Service != nil {
		w.Add(`p.service_id = ?`, *f.Service)
	}
	tail, args := w.Page(r, "p")
	return page.Read(ctx, q, r, scanPackage, `select `+packageColumns+` from packages p `+tail, args...)
}

// PutPackage writes a package and its units. An existing package gets the next version.
func PutPackage(ctx context.Context, tx pg.Tx, p domain.Package) error {
	links := packageLinks(p)
	b := &pgx.Batch{}
	b.Queue(putPackage, packageRow(p))
	b.Queue(`delete from package_units where tenant_id = @tenant and livemode = @live and package_id = @id
		and unit_id <> all(@unit_ids::uuid[])`, links)
	b.Queue(linkPackage, links)
	return send(ctx, tx, b, "put package")
}
