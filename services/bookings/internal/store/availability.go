package store

import (
	"context"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

// Claims of one unit never overlap, so those that overlap a time are the ones that begin in it and the last one that began before.
// The index finds both, regardless of the number of rows. Range operators are not leakproof, so they cannot be an index condition
// in a tenant's query. offset 0 makes the planner read each booking by its key. With a join, it may read all bookings of the
// tenant.
//
// A session has no booking of its own. Of the seats taken, those of pending bookings are held, unless the hold has lapsed.
const claimsDuring = `
	select c.unit_id, c.starts_at, c.ends_at, coalesce(b.status, ''), b.hold_expires_at,
		c.slot_from, c.slot_to, coalesce(c.capacity, 0), coalesce(c.taken, 0), coalesce(s.held, 0), coalesce(s.lapsed, 0)
	from units u cross join lateral (
		(select k.booking_id, k.unit_id, k.starts_at, k.ends_at, k.slot_from, k.slot_to, k.capacity, k.taken from unit_claims k
		 where k.tenant_id = @tenant and k.livemode = @live and k.unit_id = u.id and k.starts_at >= @from and k.starts_at < @to)
		union all
		(select k.booking_id, k.unit_id, k.starts_at, k.ends_at, k.slot_from, k.slot_to, k.capacity, k.taken from unit_claims k
		 where k.tenant_id = @tenant and k.livemode = @live and k.unit_id = u.id and k.starts_at < @from order by k.starts_at desc limit 1)
	) c left join lateral (
		select b.status, b.hold_expires_at from bookings b
		where c.capacity is null and b.tenant_id = @tenant and b.livemode = @live and b.id = c.booking_id offset 0
	) b on true left join lateral (
		select sum(p.seats) filter (where p.hold_expires_at > @now or p.hold_expires_at is null) as held,
			sum(p.seats) filter (where p.hold_expires_at <= @now) as lapsed
		from bookings p
		where c.capacity is not null and p.tenant_id = @tenant and p.livemode = @live and p.session_id = c.booking_id and p.status = 'pending' offset 0
	) s on true
	where (b.status is not null or c.capacity is not null) and u.tenant_id = @tenant and u.livemode = @live and u.id = any(@units::uuid[]) limit @limit`

// Claims reads the claims of the units that overlap the time, at most availability.MaxClaims + 1. now determines which holds of a
// session have lapsed.
func Claims(ctx context.Context, q pg.Q, during domain.Span, units []domain.UnitID, now time.Time) ([]availability.Claim, error) {
	return pg.Many(ctx, q, scanClaim, claimsDuring,
		pg.Args{"from": during.From, "to": during.To, "units": units, "now": now, "limit": availability.MaxClaims + 1})
}

// Offered reads the catalogue and the closures during a time in one round trip. If a unit is named, it reads only that unit. It omits descriptions, which no
// response about a time shows.
func Offered(ctx context.Context, db *pg.DB, unit *domain.UnitID, during domain.Span) (c availability.Catalogue, err error) {
	b := &pgx.Batch{}
	args := pg.Args{"unit": unit, "from": during.From, "to": during.To}
	b.Queue(`select `+bare(unitColumns)+` from units u
		where u.tenant_id = @tenant and u.livemode = @live and ((@unit::uuid is null and u.status <> 'retired') or u.id = @unit)`, args)
	b.Queue(`select `+bare(serviceColumns)+` from services s where s.tenant_id = @tenant and s.livemode = @live and s.active`, args)
	b.Queue(`select `+bare(packageColumns)+` from packages p where p.tenant_id = @tenant and p.livemode = @live and p.active`, args)
	b.Queue(`select `+ruleColumns+` from holiday_rules r where r.tenant_id = @tenant and r.livemode = @live and r.active`, args)
	b.Queue(`select c.starts_at, c.ends_at, c.unit_ids`+closuresDuring, args)
	err = db.ReadBatch(ctx, b, func(res pgx.BatchResults) (err error) {
		if c.Units, err = pg.Next(res, pgx.RowToStructByName[domain.Unit]); err != nil {
			return err
		}
		if c.Services, err = pg.Next(res, pgx.RowToStructByName[domain.Service]); err != nil {
			return err
		}
		if c.Packages, err = pg.Next(res, scanPackage); err != nil {
			return err
		}
		if c.Rules, err = pg.Next(res, pgx.RowToStructByName[domain.HolidayRule]); err != nil {
			return err
		}
		c.Closures, err = pg.Next(res, scanClosed)
		return err
	})
	return c, err
}

// bare returns the columns with a null in place of the description.
func bare(columns string) string {
	return describedBy.ReplaceAllString(columns, "null::text as description")
}

var describedBy = regexp.MustCompile(`[a-z]\.description`)

func scanClaim(row pgx.CollectableRow) (availability.Claim, error) {
	var c availability.Claim
	var from, to *time.Time
	var s availability.Session
	err := row.Scan(&c.Unit, &c.From, &c.To, &c.Status, &c.HoldExpiresAt, &from, &to, &s.Capacity, &s.Taken, &s.Held, &s.Lapsed)
	if from != nil && to != nil {
		s.Slot = domain.Span{From: *from, To: *to}
		c.Session = &s
	}
	return c, err
}
