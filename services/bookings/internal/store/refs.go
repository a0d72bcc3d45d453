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

// Refs reads the rows that a booking refers to in one round trip. It locks the unit as LockUnits does. lapsed reports whether the
// unit has holds that have lapsed by now.
func Refs(ctx context.Context, tx pg.Tx, l domain.Links, now time.Time) (refs domain.Refs, lapsed bool, err error) {
	args := pg.Args{"unit": l.Unit, "package": l.Package, "service": l.Service, "customer": l.Customer, "now": now}
	b := &pgx.Batch{}
	b.Queue(`select `+unitColumns+` from units u where u.tenant_id = @tenant and u.livemode = @live and u.id = @unit for no key update of u`, args)
	b.Queue(`select `+packageColumns+` from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = @package`, args)
	b.Queue(`select `+serviceColumns+` from services s where s.tenant_id = @tenant and s.livemode = @live and s.id = coalesce(@service::uuid,
		(select p.service_id from packages p where p.tenant_id = @tenant and p.livemode = @live and p.id = @package))`, args)
	b.Queue(`select `+customerColumns+` from customers c where c.tenant_id = @tenant and c.livemode = @live and c.id = @customer`, args)
	b.Queue(`select `+ruleColumns+` from holiday_rules r where r.tenant_id = @tenant and r.livemode = @live and r.active and @package::uuid is not null`, args)
	b.Queue(`select exists (select from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.unit_id = @unit and b.status = 'pending'
		and b.hold_expires_at is not null and b.hold_expires_at <= @now)`, args)
	res := tx.SendBatch(ctx, b)
	defer func() { err = errors.Join(err, res.Close()) }()
	if refs.Unit, err = pg.NextOne(res, pgx.RowToStructByName[domain.Unit]); err != nil {
		return domain.Refs{}, false, fmt.Errorf("unit: %w", err)
	}
	if refs.Package, err = pg.NextOne(res, scanPackage); err != nil {
		return domain.Refs{}, false, fmt.Errorf("package: %w", err)
	}
	if refs.Service, err = pg.NextOne(res, pgx.RowToStructByName[domain.Service]); err != nil {
		return domain.Refs{}, false, fmt.Errorf("service: %w", err)
	}
	if refs.Customer, err = pg.NextOne(res, pgx.RowToStructByName[domain.Customer]); err != nil {
		return domain.Refs{}, false, fmt.Errorf("customer: %w", err)
	}
	if refs.Rules, err = pg.Next(res, pgx.RowToStructByName[domain.HolidayRule]); err != nil {
		return domain.Refs{}, false, fmt.Errorf("holiday rules: %w", err)
	}
	exists, err := pg.NextOne(res, pgx.RowTo[bool])
	if err != nil {
		return domain.Refs{}, false, fmt.Errorf("holds: %w", err)
	}
	return refs, *exists, nil
}
