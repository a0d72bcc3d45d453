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
// A session has no booking of its own. Its seats are one array, which costs nothing for other claims: the capacity, the seats taken,
// and of these the ones that pending bookings hold, and the ones whose hold has lapsed.
const claimsDuring = `
	select c.unit_id, c.starts_at, c.ends_at, coalesce(b.status, ''), b.hold_expires_at, c.slot_from, c.slot_to, case when c.capacity is not null then (
		select array[c.capacity, c.taken,
			coalesce(sum(p.seats) filter (where p.hold_expires_at > @now or p.hold_expires_at is null), 0),
			coalesce(sum(p.seats) filter (where p.hold_expires_at <= @now), 0)]
		from bookings p where p.tenant_id = @tenant and p.livemode = @live and p.session_id = c.booking_id and p.status = 'pending') end
	from units u cross join lateral (
		(select k.booking_id, k.unit_id, k.starts_at, k.ends_at, k.slot_from, k.slot_to, k.capacity, k.taken from unit_claims k
		 where k.tenant_id = @tenant and k.livemode = @live and k.unit_id = u.id and k.starts_at >= @from and k.starts_at < @to)
		union all
		(select k.booking_id, k.unit_id, k.starts_at, k.ends_at, k.slot_from, k.slot_to, k.capacity, k.taken from unit_claims k
		 where k.tenant_id = @tenant and k.livemode = @live and k.unit_id = u.id and k.starts_at < @from order by k.starts_at desc limit 1)
	) c left join lateral (
		select b.status, b.hold_expires_at from bookings b
		where c.capacity is null and b.tenant_id = @tenant and b.livemode = @live and b.id = c.booking_id offset 0
	) b on true
	where (b.status is not null or c.capacity is not null) and u.tenant_id = @tenant and u.livemode = @live and u.id = any(@units::uuid[]) limit @limit`

// Claims reads the claims of the units that overlap the time, at most availability.MaxClaims + 1. now determines which holds of a
// session have lapsed.
func Claims(ctx context.Context, q pg.Q, during domain.Span, units []domain.UnitID, now time.Time) ([]availability.Claim, error) {
	return pg.Many(ctx, q, scanClaim, claimsDuring,
		pg.Args{"from": during.From, "to": during.To, "units": units, "now": now, "limit": availability.MaxClaims + 1})
}

// Offered reads the catalogue and the closures during a time in one round trip. If a unit is named, it reads only that unit. It omits
// descriptions, which no response about a time shows.
func Offered(ctx context.Context, db *pg.DB, unit *domain.UnitID, during domain.Span) (c availability.Catalogue, err error) {
	b := &pgx.Batch{}
	args := pg.Args{"unit": unit, "from": during.From, "to": during.To}
	b.Queue(bare(units.Own)+`((@unit::uuid is null and u.status <> 'retired') or u.id = @unit)`, args).Query(pg.ListInto(&c.Units, units.Scan))
	b.Queue(bare(services.Own)+`s.active`, args).Query(pg.ListInto(&c.Services, services.Scan))
	b.Queue(bare(packages.Own)+`p.active`, args).Query(pg.ListInto(&c.Packages, packages.Scan))
	b.Queue(rules.Own+`r.active`, args).Query(pg.ListInto(&c.Rules, rules.Scan))
	b.Queue(`select c.starts_at, c.ends_at, c.unit_ids from closures c where c.tenant_id = @tenant and c.livemode = @live and `+closedDuring, args).
		Query(pg.ListInto(&c.Closures, pgx.RowToStructByPos[availability.Closure]))
	err = db.ReadBatch(ctx, b)
	return c, err
}

// bare returns the columns with a null in place of the description.
func bare(columns string) string {
	return describedBy.ReplaceAllString(columns, "null::text as description")
}

var describedBy = regexp.MustCompile(`[a-z]\.description`)

// seatCounts is the length of the array of a session.
const seatCounts = 4

func scanClaim(row pgx.CollectableRow) (availability.Claim, error) {
	var c availability.Claim
	var from, to *time.Time
	var seats []int
	err := row.Scan(&c.Unit, &c.From, &c.To, &c.Status, &c.HoldExpiresAt, &from, &to, &seats)
	if from != nil && to != nil && len(seats) == seatCounts {
		c.Session = &availability.Session{Slot: domain.Span{From: *from, To: *to}, Capacity: seats[0], Taken: seats[1], Held: seats[2], Lapsed: seats[3]}
	}
	return c, err
}
