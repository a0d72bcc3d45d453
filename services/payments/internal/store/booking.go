package store

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

var bookings = pg.NewTable("bookings", "b", domain.ErrBookingNotFound, func(b *domain.Booking) pg.Fields {
	return pg.Fields{Fixed: pg.F{"id", &b.ID}, Values: pg.F{"customer_id", &b.CustomerID, "status", &b.Status, "version", &b.Version}}
})

// HoldBooking writes a state of a booking, unless a state at least as new is stored, and returns the newest state and the version of the
// booking's account. Until the transaction ends, no other transaction can write a newer state or change the account, but others can hold
// them too.
func HoldBooking(ctx context.Context, tx pg.Tx, b domain.Booking, account domain.MoneyKey) (status string, version int64, err error) {
	args := moneyArgs(account, nil)
	maps.Copy(args, bookings.Args(b))
	type held struct {
		Status  string
		Version int64
	}
	const read = `select b.status, coalesce((select a.version from money_accounts a where ` + thatAccount + ` for share), 0) as version
		from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id and b.version >= @version for share`
	found, err := pg.Many(ctx, tx, pgx.RowToStructByName[held], read, args)
	if err != nil {
		return "", 0, err
	}
	if len(found) > 0 {
		return found[0].Status, found[0].Version, nil
	}
	if err := pg.Exec(ctx, tx, "put booking", bookings.PutNewer(), args); err != nil {
		return "", 0, err
	}
	h, err := pg.One(ctx, tx, pgx.RowToStructByName[held], domain.ErrBookingNotFound, read, args)
	return h.Status, h.Version, err
}

// HeldStatus returns the stored state of a booking, or "" if the booking is unknown. Until the transaction ends, no other
// transaction can write a newer state. A transaction that writes it afterwards sees what this one wrote about the booking's
// intents.
func HeldStatus(ctx context.Context, tx pg.Tx, id domain.BookingID) (string, error) {
	return pg.One(ctx, tx, pgx.RowTo[string], pgx.ErrNoRows, `select coalesce((
		select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id for share), '')`, pg.Args{"id": id})
}

// BookingKey is a booking of any tenant and mode.
type BookingKey struct {
	Tenant   ids.Tenant
	Livemode bool
	ID       domain.BookingID
}

// PutBookings writes bookings of any tenants in one statement, which locks the rows in the order of their ids. tx has the worker
// role.
func PutBookings(ctx context.Context, tx pg.Tx, list map[BookingKey]domain.Booking) error {
	keys := slices.Collect(maps.Keys(list))
	tenants, modes, ids := keyColumns(keys)
	return pg.Exec(ctx, tx, "put bookings", `
		insert into bookings as b (tenant_id, livemode, id, customer_id, status, version)
		select * from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::uuid[], $5::text[], $6::bigint[])
		     l (tenant_id, livemode, id, customer_id, status, version)
		order by tenant_id, livemode, id`+bookings.Newer(), tenants, modes, ids,
		pg.Column(keys, func(k BookingKey) domain.CustomerID { return list[k].CustomerID }),
		pg.Column(keys, func(k BookingKey) string { return list[k].Status }), pg.Column(keys, func(k BookingKey) int64 { return list[k].Version }))
}

// keyColumns returns bookings as three arrays for unnest.
func keyColumns(list []BookingKey) (tenants [][16]byte, modes []bool, ids [][16]byte) {
	return pg.Column(list, func(k BookingKey) [16]byte { return k.Tenant.UUID() }), pg.Column(list, func(k BookingKey) bool { return k.Livemode }),
		pg.Column(list, func(k BookingKey) [16]byte { return k.ID.UUID() })
}
