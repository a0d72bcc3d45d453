package consume

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/money"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/customers/internal/domain"
)

// catalogue applies an event about a service, a unit or a package.
func (h *Bookings) catalogue(ctx context.Context, id ids.Event, e *eventsv1.Event) error {
	object := e.GetObjectId()
	if !inCatalogue(object) {
		return kafkax.Poison(fmt.Errorf("id %q is not of the catalogue", object))
	}
	item := domain.CatalogueItem{ID: object, Version: e.GetResourceVersion()}
	var err error
	if item.Details, err = details(e); err != nil {
		return kafkax.Poison(fmt.Errorf("body of %s: %w", object, err))
	}
	return h.Catalogue.ApplyEvent(ctx, id, item)
}

// details reads the details from an event, whose object is the GET body.
func details(e *eventsv1.Event) (domain.CatalogueDetails, error) {
	var body struct {
		ServiceID domain.ServiceID `json:"service_id"`
		Taxes     *[]money.Tax     `json:"default_taxes"` // only of a service
	}
	err := json.Unmarshal(e.GetObject(), &body)
	return domain.CatalogueDetails{Service: body.ServiceID, Taxes: body.Taxes}, err
}

// inCatalogue reports whether s has the form of an id of a service, a unit or a package.
func inCatalogue(s string) bool {
	_, service := ids.Parse[ids.ServicePrefix](s)
	_, unit := ids.Parse[ids.UnitPrefix](s)
	_, pkg := ids.Parse[ids.PackagePrefix](s)
	return service == nil || unit == nil || pkg == nil
}
