package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// Deliveries contains the use cases of deliveries.
type Deliveries struct {
	DB    *pg.DB
	Idem  *idemstore.Store
	Queue *store.Queue
	Now   func() time.Time
}

// MaxReplay is the most deliveries that one replay makes.
const MaxReplay = 10_000

// Retry makes a delivery due now, whether it is pending, has failed or has succeeded. It returns domain.ErrTransition when
// an attempt is in flight or the endpoint is disabled.
func (a *Deliveries) Retry(ctx context.Context, endpoint domain.EndpointID, id domain.DeliveryID) (idem.Reply, error) {
	reply, err := a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		if err := store.LockQueue(ctx, tx, endpoint); err != nil {
			return idem.Reply{}, err
		}
		e, err := store.Endpoint(ctx, tx, endpoint)
		if err != nil {
			return idem.Reply{}, err
		}
		d, err := store.DeliveryForUpdate(ctx, tx, endpoint, id)
		if err != nil {
			return idem.Reply{}, err
		}
		if err := MayRead(ctx, []string{d.EventType}); err != nil {
			return idem.Reply{}, err
		}
		if e.Status != domain.Enabled || d.Status == domain.Delivering {
			return idem.Reply{}, domain.ErrTransition
		}
		if err := a.Queue.Retry(ctx, tx, d, a.Now()); err != nil {
			return idem.Reply{}, err
		}
		if d, err = store.Delivery(ctx, tx, endpoint, id); err != nil {
			return idem.Reply{}, err
		}
		body, err := contract.Encode(view.Delivery(d, mode(ctx)))
		return idem.Reply{Status: http.StatusOK, Resource: id.String(), Body: body}, err
	})
	if errors.Is(err, domain.ErrEndpointNotFound) {
		err = missingEndpoint(ctx, a.DB, endpoint)
	}
	return reply, err
}

// Replay says which events are delivered to an endpoint again: those of Types from From until before To. Without Types, it
// is the types that the endpoint subscribes to.
type Replay struct {
	Endpoint string
	From, To time.Time
	Types    []string
}

// Replay makes a delivery for each event of r.
func (a *Deliveries) Replay(ctx context.Context, r Replay) (idem.Reply, error) {
	if err := MayRead(ctx, r.Types); err != nil {
		return idem.Reply{}, err
	}
	if !r.From.Before(r.To) {
		return idem.Reply{}, apperr.Field("to", "Must be after from.")
	}
	return a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		e, err := enabledEndpoint(ctx, tx, r.Endpoint)
		if err != nil {
			return idem.Reply{}, err
		}
		types := r.Types
		if len(types) == 0 {
			types = subscription(e)
		}
		if err := MayRead(ctx, types); err != nil {
			return idem.Reply{}, err
		}
		pending, err := store.PendingDeliveries(ctx, tx, e.ID, domain.MaxPending)
		if err != nil {
			return idem.Reply{}, err
		}
		limit := min(MaxReplay, domain.MaxPending-pending)
		n, err := a.Queue.Replay(ctx, tx, store.Replay{Endpoint: e.ID, Types: types, From: r.From, To: r.To}, a.Now(), limit)
		if err != nil {
			return idem.Reply{}, err
		}
		if n > limit && limit < MaxReplay {
			return idem.Reply{}, apperr.Field("endpoint_id", "The endpoint has %d pending deliveries, and may have %d; wait until they are delivered, or replay less.", pending, domain.MaxPending)
		}
		if n > MaxReplay {
			return idem.Reply{}, apperr.Field("to", "There are more than %d events until then; replay them in parts.", MaxReplay)
		}
		body, err := contract.Encode(api.EventReplayResult{Queued: n})
		return idem.Reply{Status: http.StatusAccepted, Resource: e.ID.String(), Body: body}, err
	})
}

// enabledEndpoint reads and locks the enabled endpoint that a body names. An endpoint of the other mode is not found.
func enabledEndpoint(ctx context.Context, tx pg.Tx, given string) (domain.Endpoint, error) {
	id, err := domain.ParseEndpointID(given)
	if err == nil {
		var e domain.Endpoint
		if e, err = store.EndpointForUpdate(ctx, tx, id); err == nil {
			if e.Status != domain.Enabled {
				return e, domain.ErrDisabled
			}
			return e, nil
		}
	}
	if errors.Is(err, domain.ErrEndpointNotFound) {
		err = apperr.Field("endpoint_id", "Webhook endpoint not found; it must be the id of an endpoint of this mode.")
	}
	return domain.Endpoint{}, err
}

// subscription returns the types that an endpoint subscribes to.
func subscription(e domain.Endpoint) []string {
	if e.EventTypes[0] == domain.Every {
		return AllTypes()
	}
	return e.EventTypes
}
