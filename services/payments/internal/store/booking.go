package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

const putBooking = `insert into bookings as b (tenant_id, livemode, id, customer_id, status, version) `

// Messages and lookups can arrive in any order. A stored state that is at least as new as the incoming one remains.
const unlessKnown = `
	on conflict (tenant_id, livemode, id) do update
	set customer_id = excluded.customer_id, status = excluded.status, version = excluded.version
	where b.version < excluded.version`

// HoldBooking writes a state of a booking, unless a state at least as new is stored, and returns the newest state and the version of the
// booking's account. Until the transaction ends, no other transaction can write a newer state or change the account, but others can hold
// them too.
func HoldBooking(ctx context.Context, tx pg.Tx, b domain.Booking, account domain.MoneyKey) (status string, version int64, err error) {
	args := moneyArgs(account, nil)
	args["id"], args["customer"], args["status"], args["version"] = b.ID, b.CustomerID, b.Status, b.Version
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
	if _, err := tx.Exec(ctx, putBooking+`values (@tenant, @live, @id, @customer, @status, @version)`+unlessKnown, args); err != nil {
		return "", 0, fmt.Errorf("put booking: %w", err)
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
	n := len(list)
	tenants, modes, keys := make([][16]byte, 0, n), make([]bool, 0, n), make([][16]byte, 0, n)
	customers, status, versions := make([]domain.CustomerID, 0, n), make([]string, 0, n), make([]int64, 0, n)
	for key, b := range list {
		tenants, modes, keys = append(tenants, key.Tenant.UUID()), append(modes, key.Livemode), append(keys, key.ID.UUID())
		customers, status, versions = append(customers, b.CustomerID), append(status, b.Status), append(versions, b.Version)
	}
	_, err := tx.Exec(ctx, putBooking+`
		select * from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::uuid[], $5::text[], $6::bigint[])
		     l (tenant_id, livemode, id, customer_id, status, version)
		order by tenant_id, livemode, id`+unlessKnown, tenants, modes, keys, customers, status, versions)
	if err != nil {
		return fmt.Errorf("put %d bookings: %w", n, err)
	}
	return nil
}
