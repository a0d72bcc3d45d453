package store

import (
	"context"
	"fmt"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

const customerColumns = `c.id, c.name, c.version, c.erased`

// PutCustomer writes a customer unless a state at least as new is stored already. Messages and lookups can arrive in any order. An
// erased customer stays erased.
func PutCustomer(ctx context.Context, tx pg.Tx, c domain.Customer) error {
	_, err := tx.Exec(ctx, `
		insert into customers as c (tenant_id, livemode, id, name, version, erased) values (@tenant, @live, @id, @name, @version, @erased)
		on conflict (tenant_id, livemode, id) do update
		set name = excluded.name, version = excluded.version, erased = excluded.erased
		where c.version < excluded.version and not c.erased`,
		pg.Args{"id": c.ID, "name": c.Name, "version": c.Version, "erased": c.Erased})
	if err != nil {
		return fmt.Errorf("put customer: %w", err)
	}
	return nil
}
