package store

import (
	"context"
	"regexp"

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
	where u.id = any($3::uuid[]) limit $4`

// Claims reads those of the units that meet the time, and one more than offer.MaxClaims at most.
func Claims(ctx context.Context, q pg.Q, during domain.Span, units []domain.UnitID) ([]offer.Claim, error) {
	return many(ctx, q, scanClaim, claimsDuring, during.From, during.To, units, offer.MaxClaims+1)
}

// Offered reads what is offered, in one round trip; of the units only one when it is named. Descriptions, which no
// answer about a time shows, are left out.
func Offered(ctx context.Context, db *pg.DB, unit *domain.UnitID) (c offer.Catalogue, err error) {
	b := &pgx.Batch{}
	b.Queue(`select `+bare(unitColumns)+` from units u where ($1::uuid is null and u.status <> 'retired') or u.id = $1`, unit)
	b.Queue(`select ` + bare(serviceColumns) + ` from services s where s.active`)
	b.Queue(`select ` + bare(packageColumns) + ` from packages p where p.active`)
	b.Queue(`select ` + ruleColumns + ` from holiday_rules r where r.active`)
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
		c.Rules, err = next(res, pgx.RowToStructByName[domain.HolidayRule])
		return err
	})
	return c, err
}

// bare are the columns with a null in place of the description.
func bare(columns string) string {
	return describedBy.ReplaceAllString(columns, "null::text as description")
}

var describedBy = regexp.MustCompile(`[a-z]\.description`)

func scanClaim(row pgx.CollectableRow) (offer.Claim, error) {
	var c offer.Claim
	err := row.Scan(&c.Unit, &c.From, &c.To, &c.Status, &c.HoldExpiresAt)
	return c, err //nolint:wrapcheck // by next
}
