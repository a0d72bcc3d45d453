package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// CatalogueKnows returns those ids that are in the projection.
func CatalogueKnows(ctx context.Context, q pg.Q, ids []string) ([]string, error) {
	return pg.Many(ctx, q, pgx.RowTo[string], `
		select c.id from catalogue_items c where c.tenant_id = @tenant and c.livemode = @live and c.id = any(@ids)`, pg.Args{"ids": ids})
}

var catalogueItems = pg.NewTable("catalogue_items", "c", domain.ErrNotInCatalogue, func(c *domain.CatalogueItem) pg.Fields {
	return pg.Fields{Fixed: pg.F{"id", &c.ID}, Values: pg.F{"version", &c.Version, "service_id", &c.Details.Service, "default_taxes", &c.Details.Taxes}}
})

// CatalogueItem reads one item of the projection, or returns domain.ErrNotInCatalogue.
func CatalogueItem(ctx context.Context, q pg.Q, id string) (domain.CatalogueItem, error) {
	return catalogueItems.Get(ctx, q, id, "")
}

// PutCatalogueItem writes the state of a service, a unit or a package, unless a state at least as new is stored already. Messages
// and lookups can arrive in any order.
func PutCatalogueItem(ctx context.Context, tx pg.Tx, item domain.CatalogueItem) error {
	return pg.Exec(ctx, tx, "put catalogue item", catalogueItems.PutNewer(), catalogueItems.Args(item))
}
