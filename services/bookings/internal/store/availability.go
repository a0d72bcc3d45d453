package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/offer"
)

// Claims of one unit never overlap, so those that meet a time are the ones that begin in it and the last that
// began before. Both are found by the index, however many are stored; ranges are not leakproof, and so no
// index condition for a tenant's query.
const claimsDuring = `
	select c.unit_id, c.starts_at, c.ends_at, b.status, b.hold_expires_at
	from units u cross join lateral (
		(select k.booking_id, k.unit_id, k.starts_at, k.ends_at from unit_claims k
		 where k.unit_id = u.id and k.starts_at >= $1 and k.starts_at < $2)
		union all
		(select k.booking_id, k.unit_id, k.starts_at, k.ends_at from unit_claims k
		 where k.unit_id = u.id and k.starts_at < $1 order by k.starts_at desc limit 1)
	) c join bookings b on b.id = c.booking_id
	where $3::uuid is null or u.id = $3`

// Offered reads what answers about a time rest on, in one round trip: what is offered, and the claims that
// meet the time; both of one unit only when it is named.
func Offered(ctx context.Context, db *pg.DB, during domain.Span, unit *domain.UnitID) (c offer.Catalogue, claims []offer.Claim, err error) {
	b := &pgx.Batch{}
	b.Queue(`select `+unitColumns+` from units u where ($1::uuid is null and u.status <> 'retired') or u.id = $1`, unit)
	b.Queue(`select ` + serviceColumns + ` from services s where s.active`)
	b.Queue(`select ` + packageColumns + ` from packages p where p.active`)
	b.Queue(`select ` + ruleColumns + ` from holiday_rules r where r.active`)
	b.Queue(claimsDuring, during.From, during.To, unit)
	err = db.ReadBatch(ctx, b, func(res pgx.BatchResults) (err error) {
		if c.Units, err = next(res, pgx.RowToStructByName[domain.Unit]); err != nil {
			return err
		}
		if c.Services, err = next(res, pgx.RowToStructByName[domain.Service]); err != nil {
			return err
		}
		if c.Packages, err = next(res, scanPackage); err != nil {
			return err
		}
		if c.Rules, err = next(res, pgx.RowToStructByName[domain.HolidayRule]); err != nil {
			return err
		}
		claims, err = next(res, scanClaim)
		return err
	})
	return c, claims, err
}

func scanClaim(row pgx.CollectableRow) (offer.Claim, error) {
	var c offer.Claim
	err := row.Scan(&c.Unit, &c.From, &c.To, &c.Status, &c.HoldExpiresAt)
	return c, err //nolint:wrapcheck // by next
}
