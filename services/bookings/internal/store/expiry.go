package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/bookings/internal/domain"
)

// Due is a hold that has lapsed by its tenant's time.
type Due struct {
	TenantID      ids.Tenant
	Livemode      bool
	ID            domain.BookingID
	HoldExpiresAt time.Time
}

// Each branch reads its own index from the start of the page: holds by real time, and holds of each frozen clock.
const allDue = `
	(select b.tenant_id, b.livemode, b.id, b.hold_expires_at from bookings b
	 where b.status = 'pending' and b.hold_expires_at is not null and b.hold_expires_at <= $1
	   and (b.hold_expires_at, b.id) > ($2, $3::uuid)
	   and (b.livemode or not exists (select from test_clocks c
	        where c.tenant_id = b.tenant_id and c.livemode = b.livemode and c.frozen_at is not null))
	 order by b.hold_expires_at, b.id limit $4)
	union all
	(select c.tenant_id, c.livemode, d.id, d.hold_expires_at from test_clocks c cross join lateral (
	    select b.id, b.hold_expires_at from bookings b
	    where b.tenant_id = c.tenant_id and b.livemode = c.livemode
	      and b.status = 'pending' and b.hold_expires_at is not null and b.hold_expires_at <= c.frozen_at
	      and (b.hold_expires_at, b.id) > ($2, $3::uuid)
	    order by b.hold_expires_at, b.id limit $4) d
	 where c.frozen_at is not null)
	order by hold_expires_at, id limit $4`

// AllDue returns up to limit lapsed holds of all tenants and modes after the given one, oldest first. tx has the worker role.
func AllDue(ctx context.Context, tx pg.Tx, real time.Time, after Due, limit int) ([]Due, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[Due], allDue, real, after.HoldExpiresAt, after.ID.UUID(), limit)
}

// TenantDue returns up to limit lapsed holds of the caller's tenant and mode after the given one, oldest first.
func TenantDue(ctx context.Context, q pg.Q, real time.Time, after Due, limit int) ([]Due, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[Due], tenantDue,
		pg.Args{"real": real, "at": after.HoldExpiresAt, "id": after.ID.UUID(), "limit": limit})
}

// The clock is a separate value: coalesce is not leakproof, so it cannot be an index condition in a tenant's query. The mode is a
// separate value too. With a plain boolean in addition to the policy's own condition, the planner selects an index in another
// order.
const tenantDue = `
	select b.tenant_id, b.livemode, b.id, b.hold_expires_at from bookings b
	where b.tenant_id = @tenant and b.livemode = (select @live::boolean) and b.status = 'pending' and b.hold_expires_at is not null
	  and b.hold_expires_at <= (select coalesce(min(c.frozen_at), @real) from test_clocks c where c.tenant_id = @tenant and c.livemode = @live)
	  and (b.hold_expires_at, b.id) > (@at, @id::uuid)
	order by b.hold_expires_at, b.id limit @limit`

// LockDue locks a booking for its expiry, after its unit, and reads the clock that determines the expiry. It returns false if the
// booking has moved to another unit. It returns the zero booking and false if there is none, or if wait is false and another
// transaction has locked it. It reads the clock last, so that the clock is at least as new as the one by which the booking was
// created.
func LockDue(ctx context.Context, tx pg.Tx, id domain.BookingID, wait bool) (k domain.Booking, clock testclock.Clock, ok bool, err error) {
	skip := ` skip locked`
	if wait {
		skip = ``
	}
	args := pg.Args{"id": id}
	var unit *domain.UnitID
	var found *domain.Booking
	var known *testclock.Clock
	b := &pgx.Batch{}
	b.Queue(`select u.id from units u where u.tenant_id = @tenant and u.livemode = @live
		and u.id = (select b.unit_id from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id) for no key update`+skip, args).Query(pg.FirstInto(&unit, pgx.RowTo[domain.UnitID]))
	b.Queue(`select from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id for update`+skip, args) // as in pg.Table.Get
	b.Queue(bookings.Own+`b.id = @id for update`+skip, args).Query(pg.FirstInto(&found, bookings.Scan))
	b.Queue(testclock.Known, args).Query(pg.FirstInto(&known, pgx.RowToStructByName[testclock.Clock]))
	if err := pg.Send(ctx, tx, b, "lock booking"); err != nil {
		return domain.Booking{}, clock, false, err
	}
	if known != nil {
		clock = *known
	}
	if found == nil {
		return domain.Booking{}, clock, false, nil
	}
	return *found, clock, found.UnitID.IsZero() || unit != nil && *unit == found.UnitID, nil
}
