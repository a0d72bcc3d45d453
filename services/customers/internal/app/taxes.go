package app

import (
	"context"
	"errors"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// taxDefaults looks up what applies to a document that specifies no taxes.
type taxDefaults struct {
	catalogue *Catalogue
	tenant    domain.Invoicing
	unknown   error           // why the tenant is not known
	requested map[string]bool // items of the catalogue that were requested from bookings
}

// newTaxDefaults requests the tenant's defaults from identity, which are usually cached.
func newTaxDefaults(ctx context.Context, tenants TenantService, catalogue *Catalogue) taxDefaults {
	info, err := tenants.Invoicing(ctx)
	return taxDefaults{catalogue: catalogue, tenant: info, unknown: err, requested: map[string]bool{}}
}

// of returns the defaults for what is sold: a service, or else a package of a service, or neither. The default taxes of the service
// precede those of the tenant.
func (d taxDefaults) of(ctx context.Context, tx pg.Tx, service domain.ServiceID, pkg domain.PackageID) (domain.TaxDefaults, error) {
	out := d.tenant.Defaults
	if d.unknown != nil {
		return out, d.unknown
	}
	if service.IsZero() && !pkg.IsZero() {
		details, err := d.details(ctx, tx, pkg.String())
		if err != nil {
			return out, err
		}
		service = details.Service
	}
	if service.IsZero() {
		return out, nil
	}
	details, err := d.details(ctx, tx, service.String())
	if details.Taxes != nil {
		out.Taxes = *details.Taxes
	}
	return out, err
}

// details reads the details of an item from the projection. It requests those that the projection lacks from bookings once. An item
// that bookings does not know has no details.
func (d taxDefaults) details(ctx context.Context, tx pg.Tx, id string) (domain.CatalogueDetails, error) {
	item, err := store.CatalogueItem(ctx, tx, id)
	switch {
	case err == nil:
		return item.Details, nil
	case !errors.Is(err, domain.ErrNotInCatalogue):
		return domain.CatalogueDetails{}, err
	case d.requested[id]:
		return domain.CatalogueDetails{}, nil
	}
	return domain.CatalogueDetails{}, &operation.Again{Why: id + " is not in the projection", Fetch: func(ctx context.Context) error {
		d.requested[id] = true
		if err := d.catalogue.fetch(ctx, id); !errors.Is(err, domain.ErrNotInCatalogue) {
			return err
		}
		return nil
	}}
}
