package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

var packages = pg.NewTable("packages", "p", domain.ErrPackageNotFound, func(p *domain.Package) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &p.ID},
		Values: pg.F{
			"service_id", &p.ServiceID, "name", &p.Name, "description", &p.Description, "currency", &p.BasePrice.Currency,
			"base_price", &p.BasePrice.Minor, "pricing", &p.Pricing, "deposit_type", &p.DepositType, "deposit_value", &p.DepositValue,
			"duration_minutes", &p.DurationMinutes, "visible", &p.Visible, "active", &p.Active,
		},
		Read: pg.F{"version", &p.Version, "created_at", &p.CreatedAt, "updated_at", &p.UpdatedAt, `array(select pu.unit_id from package_units pu
			where pu.tenant_id = p.tenant_id and pu.livemode = p.livemode and pu.package_id = p.id order by pu.unit_id) as unit_ids`, &p.UnitIDs},
	}
})

// packageLinks returns the package's links to units.
func packageLinks(p domain.Package) pg.Args { return pg.Args{"id": p.ID, "unit_ids": p.UnitIDs} }

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
	return packages.Get(ctx, q, id, "")
}

// PricedPackage reads a package with its service and the rules that may affect its price in one round trip, or returns
// domain.ErrPackageNotFound.
func PricedPackage(ctx context.Context, db *pg.DB, id domain.PackageID) (refs domain.Refs, err error) {
	b := &pgx.Batch{}
	b.Queue(packages.Own+`p.id = @id`, pg.Args{"id": id}).Query(pg.FirstInto(&refs.Package, packages.Scan))
	b.Queue(`select `+services.Columns+` from packages p join services s on (s.tenant_id, s.livemode, s.id) = (p.tenant_id, p.livemode, p.service_id)
		where p.tenant_id = @tenant and p.livemode = @live and p.id = @id`, pg.Args{"id": id}).Query(pg.FirstInto(&refs.Service, services.Scan))
	b.Queue(rules.Own+`r.active`, pg.Args{}).Query(pg.ListInto(&refs.Rules, rules.Scan))
	if err = db.ReadBatch(ctx, b); err == nil && refs.Package == nil {
		err = domain.ErrPackageNotFound
	}
	return refs, err
}

// Packages reads one page.
func Packages(ctx context.Context, q pg.Q, f PackageFilter, r page.Request) (page.Rows[domain.Package], error) {
	w := &page.Where{}
	w.Add(`p.tenant_id = @tenant and p.livemode = @live`)
	page.Equal(w, `p.active = ?`, f.Active)
	page.Equal(w, `p.service_id = ?`, f.Service)
	tail, args := w.Page(r, "p")
	return page.Read(ctx, q, r, packages.Scan, packages.Select+tail, args...)
}

// PutPackage writes a package and its units. An existing package gets the next version.
func PutPackage(ctx context.Context, tx pg.Tx, p domain.Package) error {
	links := packageLinks(p)
	b := &pgx.Batch{}
	b.Queue(packages.Put(), packages.Args(p))
	b.Queue(`delete from package_units where tenant_id = @tenant and livemode = @live and package_id = @id
		and unit_id <> all(@unit_ids::uuid[])`, links)
	b.Queue(linkPackage, links)
	return pg.Send(ctx, tx, b, "put package")
}
