package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// consumer is this service's name in the inbox.
const consumer = "customers"

// Catalogue checks whether services, units and packages exist. It uses a projection of bookings' events, and calls bookings on a
// miss.
type Catalogue struct {
	DB       *pg.DB
	Bookings BookingService
}

// Reference is a field of a body (service_id, unit_id or package_id) and the id in it, as sent.
type Reference struct{ Field, ID string }

// wellFormed reports whether the id has the form of an id of the field's kind.
func (r Reference) wellFormed() bool {
	var err error
	switch r.Field {
	case "service_id":
		_, err = ids.Parse[ids.ServicePrefix](r.ID)
	case "unit_id":
		_, err = ids.Parse[ids.UnitPrefix](r.ID)
	case "package_id":
		_, err = ids.Parse[ids.PackagePrefix](r.ID)
	}
	return err == nil
}

// Check returns a 422 on each field whose id is not in the catalogue. It requests ids that the projection lacks from bookings, so
// it must be called outside a transaction.
func (a *Catalogue) Check(ctx context.Context, refs []Reference) error {
	if len(refs) == 0 {
		return nil
	}
	requested := make([]string, len(refs))
	for i, r := range refs {
		requested[i] = r.ID
	}
	known, err := store.CatalogueKnows(ctx, a.DB.Read(ctx), requested)
	if err != nil {
		return err
	}
	var failed []error
	for _, r := range refs {
		if slices.Contains(known, r.ID) {
			continue
		}
		var err error = domain.ErrNotInCatalogue
		if r.wellFormed() {
			err = a.fetch(ctx, r.ID)
		}
		switch {
		case errors.Is(err, domain.ErrNotInCatalogue):
			failed = append(failed, domain.UnknownReference(r.Field))
		case err != nil:
			return err
		default:
			known = append(known, r.ID)
		}
	}
	return apperr.Join(failed...)
}

// fetch requests an item from bookings and writes it into the projection.
func (a *Catalogue) fetch(ctx context.Context, id string) error {
	item, err := a.Bookings.Catalogue(ctx, id)
	if err != nil {
		return err
	}
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.PutCatalogueItem(ctx, tx, item) })
}

// ApplyEvent applies an event about a service, a unit or a package once, however often it arrives. The context carries the event's
// tenant and mode.
func (a *Catalogue) ApplyEvent(ctx context.Context, event ids.Event, item domain.CatalogueItem) error {
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		return store.PutCatalogueItem(ctx, tx, item)
	})
	if err != nil {
		return fmt.Errorf("apply event of catalogue item: %w", err)
	}
	return nil
}
