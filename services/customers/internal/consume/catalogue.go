package consume

import (
	"context"
	"fmt"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/customers/internal/domain"
)

// catalogue applies an event about a service, a unit or a package.
func (h *Bookings) catalogue(ctx context.Context, id ids.Event, e *eventsv1.Event) error {
	object := e.GetObjectId()
	if !inCatalogue(object) {
		return kafkax.Poison(fmt.Errorf("id %q is not of the catalogue", object))
	}
	return h.Catalogue.ApplyEvent(ctx, id, domain.CatalogueItem{ID: object, Version: e.GetResourceVersion()})
}

// inCatalogue reports whether s has the form of an id of a service, a unit or a package.
func inCatalogue(s string) bool {
	_, service := ids.Parse[ids.ServicePrefix](s)
	_, unit := ids.Parse[ids.UnitPrefix](s)
	_, pkg := ids.Parse[ids.PackagePrefix](s)
	return service == nil || unit == nil || pkg == nil
}
