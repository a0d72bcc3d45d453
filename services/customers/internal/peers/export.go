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

// OfCustomer requests the resources of a customer from another service. It implements app.CustomerResources.
type OfCustomer struct {
	Client *peer.Client
	Path   string // of the call, such as /internal/v1/bookings
}

// pageOfCustomer is one page: BookingsOfCustomer or PaymentIntentsOfCustomer of proto/internal.
type pageOfCustomer struct {
	Data []json.RawMessage `json:"data"`
	IDs  []string          `json:"ids"`
	Next string            `json:"next"`
}

// BodiesOf returns a page of the resources of a customer.
func (p *OfCustomer) BodiesOf(ctx context.Context, customer domain.CustomerID, cursor string) ([]json.RawMessage, string, error) {
	got, err := p.page(ctx, url.Values{"customer_id": {customer.String()}, "cursor": {cursor}})
	return got.Data, got.Next, err
}

// IDsOf returns a page of the ids of these resources.
func (p *OfCustomer) IDsOf(ctx context.Context, customer domain.CustomerID, cursor string) ([]string, string, error) {
	got, err := p.page(ctx, url.Values{"customer_id": {customer.String()}, "cursor": {cursor}, "ids_only": {"true"}})
	return got.IDs, got.Next, err
}

func (p *OfCustomer) page(ctx context.Context, query url.Values) (got pageOfCustomer, err error) {
	err = p.Client.Do(ctx, http.MethodGet, p.Path+"?"+query.Encode(), nil, &got)
	return got, own(err)
}

// Events requests events from the webhooks service. It implements app.ObjectEvents.
type Events struct{ Client *peer.Client }

// EventsOf returns a page of the events about some objects.
func (p *Events) EventsOf(ctx context.Context, objects []string, cursor string) ([]json.RawMessage, string, error) {
	query := url.Values{"object_ids": {strings.Join(objects, ",")}, "cursor": {cursor}}
	var got internalapi.EventsOfObjects
	err := p.Client.Do(ctx, http.MethodGet, "/internal/v1/events?"+query.Encode(), nil, &got)
	return got.Data, got.Next, own(err)
}

// own replaces a refusal of one of this service's own requests, such as a 404 from an older version that does not know the call.
// Such a refusal does not apply to the client's request.
func own(err error) error {
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind != apperr.Timeout && e.Kind != apperr.Unavailable && e.Kind != apperr.Internal {
		return apperr.ErrUnavailable.WithCause(err)
	}
	return err
}
