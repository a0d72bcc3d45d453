package peers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/domain"
)

// BookingsOf returns a page of the bookings of a customer. It implements app.CustomerBookings.
func (p *Bookings) BookingsOf(ctx context.Context, customer domain.CustomerID, cursor string) ([]json.RawMessage, string, error) {
	got, err := p.ofCustomer(ctx, url.Values{"customer_id": {customer.String()}, "cursor": {cursor}})
	return got.Data, got.Next, err
}

// BookingIDsOf returns a page of the ids of the bookings of a customer.
func (p *Bookings) BookingIDsOf(ctx context.Context, customer domain.CustomerID, cursor string) ([]string, string, error) {
	got, err := p.ofCustomer(ctx, url.Values{"customer_id": {customer.String()}, "cursor": {cursor}, "ids_only": {"true"}})
	return got.IDs, got.Next, err
}

func (p *Bookings) ofCustomer(ctx context.Context, query url.Values) (got internalapi.BookingsOfCustomer, err error) {
	err = p.Client.Do(ctx, http.MethodGet, "/internal/v1/bookings?"+query.Encode(), nil, &got)
	return got, own(err)
}

// Events asks the webhooks service for events. It implements app.ObjectEvents.
type Events struct{ Client *peer.Client }

// EventsOf returns a page of the events about some objects.
func (p *Events) EventsOf(ctx context.Context, objects []string, cursor string) ([]json.RawMessage, string, error) {
	query := url.Values{"object_ids": {strings.Join(objects, ",")}, "cursor": {cursor}}
	var got internalapi.EventsOfObjects
	err := p.Client.Do(ctx, http.MethodGet, "/internal/v1/events?"+query.Encode(), nil, &got)
	return got.Data, got.Next, own(err)
}

// own replaces a refusal of a request that this service has made by itself, such as the 404 of an older version that does not
// know the call: it is no refusal of the client's request.
func own(err error) error {
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind != apperr.Timeout && e.Kind != apperr.Unavailable && e.Kind != apperr.Internal {
		return apperr.ErrUnavailable.WithCause(err)
	}
	return err
}
