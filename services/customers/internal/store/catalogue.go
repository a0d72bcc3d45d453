package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// CatalogueKnows returns those ids that are in the projection.
func CatalogueKnows(ctx context.Context, q pg.Q, ids []string) ([]string, error) {
	return pg.Many(ctx, q, pgx.RowTo[string], `
		select c.id from catalogue_items c where c.tenant_id = @tenant and c.livemode = @live and c.id = any(@ids)`, pg.Args{"ids": ids})
}

// CatalogueItem reads one item of the projection, or returns domain.ErrNotInCatalogue.
func CatalogueItem(ctx context.Context, q pg.Q, id string) (domain.CatalogueItem, error) {
	return pg.One(ctx, q, func(row pgx.CollectableRow) (item domain.CatalogueItem, err error) {
		err = row.Scan(&item.ID, &item.Version, &item.Details.Service, &item.Details.Taxes)
		return item, err
	}, domain.ErrNotInCatalogue, `
		select c.id, c.version, c.service_id, c.default_taxes from catalogue_items c
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`, pg.Args{"id": id})
}

// PutCatalogueItem writes the state of a service, a unit or a package, unless a state at least as new is stored already. Messages
// and lookups can arrive in any order.
func PutCatalogueItem(ctx context.Context, tx pg.Tx, item domain.CatalogueItem) error {
	_, err := tx.Exec(ctx, `
		insert into catalogue_items as c (tenant_id, livemode, id, version, service_id, default_taxes)
		values (@tenant, @live, @id, @version, @service, @taxes)
		on conflict (tenant_id, livemode, id) do update set version = excluded.version, service_id = excluded.service_id,
			default_taxes = excluded.default_taxes
		where c.version < excluded.version`,
		pg.Args{"id": item.ID, "version": item.Version, "service": item.Details.Service, "taxes": item.Details.Taxes})
	if err != nil {
		return fmt.Errorf("put catalogue item: %w", err)
	}
	return nil
}
