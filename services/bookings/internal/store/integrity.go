package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
)

// Dangling is a column with values that refer to no row, or with sums that differ from their rows. Example is the id of a booking or of
// a session with such a value.
type Dangling struct {
	Column  string
	Rows    int64
	Example string
}

// FindDangling checks the columns of all tenants that refer to another table without a foreign key, and the seats of sessions. url connects as the owner of the
// database, which sees all rows. One statement reads everything, so a concurrent write is seen with all its
// rows or not at all.
func FindDangling(ctx context.Context, url string) (found []Dangling, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("reach database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := pg.CheckOwner(ctx, conn); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, `
		select "column", count(*) as rows, min(id::text) as example from (
			select 'bookings.customer_id' as "column", b.id from bookings b left join customers r
				on (r.tenant_id, r.livemode, r.id) = (b.tenant_id, b.livemode, b.customer_id) where b.customer_id is not null and r.id is null
			union all
			select 'bookings.service_id', b.id from bookings b left join services r
				on (r.tenant_id, r.livemode, r.id) = (b.tenant_id, b.livemode, b.service_id) where b.service_id is not null and r.id is null
			union all
			select 'bookings.unit_id', b.id from bookings b left join units r
				on (r.tenant_id, r.livemode, r.id) = (b.tenant_id, b.livemode, b.unit_id) where b.unit_id is not null and r.id is null
			union all
			select 'bookings.package_id', b.id from bookings b left join packages r
				on (r.tenant_id, r.livemode, r.id) = (b.tenant_id, b.livemode, b.package_id) where b.package_id is not null and r.id is null
			union all
			select 'unit_claims.unit_id', c.booking_id from unit_claims c left join units r
				on (r.tenant_id, r.livemode, r.id) = (c.tenant_id, c.livemode, c.unit_id) where r.id is null
			union all
			select 'unit_claims.booking_id', c.booking_id from unit_claims c left join bookings r
				on (r.tenant_id, r.livemode, r.id) = (c.tenant_id, c.livemode, c.booking_id) where c.capacity is null and r.id is null
			union all
			select 'bookings.session_id', b.id from bookings b left join unit_claims r
				on (r.tenant_id, r.livemode, r.booking_id) = (b.tenant_id, b.livemode, b.session_id) and r.capacity is not null
				where b.session_id is not null and b.status in ('pending', 'confirmed') and r.booking_id is null
			union all
			select 'unit_claims.taken', c.booking_id from unit_claims c left join (
				select b.tenant_id, b.livemode, b.session_id, sum(b.seats) as seats from bookings b
				where b.session_id is not null and b.status in ('pending', 'confirmed') group by 1, 2, 3) s
				on (s.tenant_id, s.livemode, s.session_id) = (c.tenant_id, c.livemode, c.booking_id)
				where c.capacity is not null and c.taken is distinct from s.seats
		) dangling group by 1 order by 1`)
	if err == nil {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByName[Dangling])
	}
	if err != nil {
		return nil, fmt.Errorf("check references: %w", err)
	}
	return found, nil
}
