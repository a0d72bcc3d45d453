package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// Linked is what the transaction of a booking reads first.
type Linked struct {
	domain.Refs

	Lapsed bool      // the unit has holds that have lapsed
	At     time.Time // the time after the unit was locked
}

// Refs reads the rows that a booking refers to in one round trip. It locks the unit as LockUnits does. now determines which holds have
// lapsed.
func Refs(ctx context.Context, tx pg.Tx, l domain.Links, now time.Time) (refs Linked, err error) {
	args := pg.Args{"unit": l.Unit, "package": l.Package, "service": l.Service, "customer": l.Customer, "implied": l.Implied}
	b := &pgx.Batch{}
	b.Queue(units.Own+`u.id = @unit for no key update of u`, args).Query(pg.FirstInto(&refs.Unit, units.Scan))
	b.Queue(packages.Own+`p.id = @package`, args).Query(pg.FirstInto(&refs.Package, packages.Scan))
	b.Queue(services.Own+`s.id = coalesce(@service::uuid,
		(select p.service_id from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = @package),
		(select (array_agg(a.id))[1] from unit_services us join services a on a.tenant_id = us.tenant_id and a.livemode = us.livemode and a.id = us.service_id
			where @implied::bool and us.tenant_id = @tenant and us.livemode = @live and us.unit_id = @unit and a.active having count(*) = 1))`, args).
		Query(pg.FirstInto(&refs.Service, services.Scan))
	if !l.Customer.IsZero() { // for a null, PostgreSQL 18 would plan the statement again each time
		b.Queue(customers.Own+`c.id = @customer`, args).Query(pg.FirstInto(&refs.Customer, customers.Scan))
	}
	b.Queue(rules.Own+`r.active and @package::uuid is not null`, args).Query(pg.ListInto(&refs.Rules, rules.Scan))
	// Without @now, so that PostgreSQL does not plan the statement again for each value.
	var hold *time.Time
	b.Queue(`select clock_timestamp(), (select b.hold_expires_at from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.unit_id = @unit
		and b.status = 'pending' and b.hold_expires_at is not null order by b.hold_expires_at limit 1)`, args).QueryRow(pg.Into(&refs.At, &hold))
	if err := pg.Send(ctx, tx, b, "read what a booking refers to"); err != nil {
		return Linked{}, err
	}
	refs.Lapsed = hold != nil && !hold.After(now)
	return refs, nil
}
