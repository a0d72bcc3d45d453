// Package domain holds the nouns of webhooks and their rules: endpoints and their health, who may be served
// next, when to try again, signatures. It is pure: no I/O and no clock.
package domain

import "holdfast.dev/libs/ids"

// The prefixes, for functions that are generic in the kind of id.
type (
	EndpointPrefix struct{}
	DeliveryPrefix struct{}
)

// Prefix is "we".
func (EndpointPrefix) Prefix() string { return "we" }

// Prefix is "whd".
func (DeliveryPrefix) Prefix() string { return "whd" }

// The ids of webhooks.
type (
	EndpointID = ids.ID[EndpointPrefix]
	DeliveryID = ids.ID[DeliveryPrefix]
)

// ParseEndpointID reads we_…; what is no such id belongs to no endpoint.
func ParseEndpointID(s string) (EndpointID, error) {
	id, err := ids.Parse[EndpointPrefix](s)
	if err != nil {
		return EndpointID{}, ErrEndpointNotFound
	}
	return id, nil
}

// ParseDeliveryID reads whd_…; what is no such id belongs to no delivery.
func ParseDeliveryID(s string) (DeliveryID, error) {
	id, err := ids.Parse[DeliveryPrefix](s)
	if err != nil {
		return DeliveryID{}, ErrDeliveryNotFound
	}
	return id, nil
}

// ParseEventID reads evt_…; what is no such id belongs to no event.
func ParseEventID(s string) (ids.Event, error) {
	id, err := ids.Parse[ids.EventPrefix](s)
	if err != nil {
		return ids.Event{}, ErrEventNotFound
	}
	return id, nil
}
