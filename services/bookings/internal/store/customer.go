package store

import (
	"context"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

var customers = pg.NewTable("customers", "c", domain.ErrCustomerNotFound, func(c *domain.Customer) pg.Fields {
	return pg.Fields{Fixed: pg.F{"id", &c.ID}, Values: pg.F{"name", &c.Name, "version", &c.Version, "erased", &c.Erased}}
})

// PutCustomer writes a customer unless a state at least as new is stored already. Messages and lookups can arrive in any order. An
// erased customer stays erased.
func PutCustomer(ctx context.Context, tx pg.Tx, c domain.Customer) error {
	return pg.Exec(ctx, tx, "put customer", customers.PutNewer()+` and not c.erased`, customers.Args(c))
}
