package consume

import (
	"context"
	"encoding/json"
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
	item := domain.CatalogueItem{ID: object, Version: e.GetResourceVersion()}
	var err error
	if item.Details, err = details(e); err != nil {
		return kafkax.Poison(fmt.Errorf("body of %s: %w", object, err))
	}
	return h.Catalogue.ApplyEvent(ctx, id, item)
}

// details reads the details from an event, whose object is the GET body. They are nil if the previous version wrote the event about a
// service.
func details(e *eventsv1.Event) (*domain.CatalogueDetails, error) {
	var body struct {
		ServiceID domain.ServiceID `json:"service_id"`
		Taxes     json.RawMessage  `json:"default_taxes"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return nil, err
	}
	out := &domain.CatalogueDetails{Service: body.ServiceID}
	if e.GetType() != "service.updated" {
		return out, nil
	}
	if len(body.Taxes) == 0 {
		return nil, nil
	}
	return out, json.Unmarshal(body.Taxes, &out.Taxes)
}

// inCatalogue reports whether s has the form of an id of a service, a unit or a package.
func inCatalogue(s string) bool {
	_, service := ids.Parse[ids.ServicePrefix](s)
	_, unit := ids.Parse[ids.UnitPrefix](s)
	_, pkg := ids.Parse[ids.PackagePrefix](s)
	return service == nil || unit == nil || pkg == nil
}
