package store

import (
	"context"
	"errors"
	"fmt"
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
	b.Queue(`select `+unitColumns+` from units u where u.tenant_id = @tenant and u.livemode = @live and u.id = @unit for no key update of u`, args)
	b.Queue(`select `+packageColumns+` from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = @package`, args)
	b.Queue(`select `+serviceColumns+` from services s where s.tenant_id = @tenant and s.livemode = @live and s.id = coalesce(@service::uuid,
		(select p.service_id from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = @package),
		(select (array_agg(a.id))[1] from unit_services us join services a on a.tenant_id = us.tenant_id and a.livemode = us.livemode and a.id = us.service_id
			where @implied::bool and us.tenant_id = @tenant and us.livemode = @live and us.unit_id = @unit and a.active having count(*) = 1))`, args)
	if !l.Customer.IsZero() { // for a null, PostgreSQL 18 would plan the statement again each time
		b.Queue(`select `+customerColumns+` from customers c where c.tenant_id = @tenant and c.livemode = @live and c.id = @customer`, args)
	}
	b.Queue(`select `+ruleColumns+` from holiday_rules r where r.tenant_id = @tenant and r.livemode = @live and r.active and @package::uuid is not null`, args)
	// Without @now, so that PostgreSQL does not plan the statement again for each value.
	b.Queue(`select clock_timestamp(), (select b.hold_expires_at from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.unit_id = @unit
		and b.status = 'pending' and b.hold_expires_at is not null order by b.hold_expires_at limit 1)`, args)
	res := tx.SendBatch(ctx, b)
	defer func() { err = errors.Join(err, res.Close()) }()
	if refs.Unit, err = pg.NextOne(res, pgx.RowToStructByName[domain.Unit]); err != nil {
		return Linked{}, fmt.Errorf("unit: %w", err)
	}
	if refs.Package, err = pg.NextOne(res, scanPackage); err != nil {
		return Linked{}, fmt.Errorf("package: %w", err)
	}
	if refs.Service, err = pg.NextOne(res, pgx.RowToStructByName[domain.Service]); err != nil {
		return Linked{}, fmt.Errorf("service: %w", err)
	}
	if !l.Customer.IsZero() {
		if refs.Customer, err = pg.NextOne(res, pgx.RowToStructByName[domain.Customer]); err != nil {
			return Linked{}, fmt.Errorf("customer: %w", err)
		}
	}
	if refs.Rules, err = pg.Next(res, pgx.RowToStructByName[domain.HolidayRule]); err != nil {
		return Linked{}, fmt.Errorf("holiday rules: %w", err)
	}
	var hold *time.Time
	if err := res.QueryRow().Scan(&refs.At, &hold); err != nil {
		return Linked{}, fmt.Errorf("holds: %w", err)
	}
	refs.Lapsed = hold != nil && !hold.After(now)
	return refs, nil
}
