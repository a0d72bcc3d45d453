// Package domain contains the types of webhooks and their rules: endpoints and their health, the fair division of capacity, the
// schedule of attempts, and signatures. It does no I/O and reads no clock.
package domain

import "holdfast.dev/libs/ids"

// The prefixes of ids, for functions that are generic in the kind of id.
type (
	EndpointPrefix struct{}
	DeliveryPrefix struct{}
)

// Prefix returns "we".
func (EndpointPrefix) Prefix() string { return "we" }

// Prefix returns "whd".
func (DeliveryPrefix) Prefix() string { return "whd" }

// The ids of webhooks.
type (
	EndpointID = ids.ID[EndpointPrefix]
	DeliveryID = ids.ID[DeliveryPrefix]
)

// ParseEndpointID parses an id we_…. It returns ErrEndpointNotFound if the text is not such an id.
func ParseEndpointID(s string) (EndpointID, error) {
	id, err := ids.Parse[EndpointPrefix](s)
	if err != nil {
		return EndpointID{}, ErrEndpointNotFound
	}
	return id, nil
}

// ParseDeliveryID parses an id whd_…. It returns ErrDeliveryNotFound if the text is not such an id.
func ParseDeliveryID(s string) (DeliveryID, error) {
	id, err := ids.Parse[DeliveryPrefix](s)
	if err != nil {
		return DeliveryID{}, ErrDeliveryNotFound
	}
	return id, nil
}
