package app

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// Deliveries contains the use cases of deliveries.
type Deliveries struct {
	Queue *store.Queue
	Wake  func() // wakes the relay; can be nil
	Now   func() time.Time
}

// MaxReplay is the maximum number of deliveries that one replay creates.
const MaxReplay = 10_000

// Test sends a sample of a type to an endpoint, regardless of whether it subscribes to the type. Without a type, it selects one
// that the endpoint subscribes to.
func (a *Deliveries) Test(
	ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, eventType string, match patch.Precondition,
) (domain.Delivery, error) {
	e, err := lockMatching(ctx, tx, endpoint, match, noTypes)
	if err != nil {
		return domain.Delivery{}, err
	}
	if e.Status != domain.Enabled {
		return domain.Delivery{}, domain.ErrDisabled
	}
	if eventType == "" {
		eventType = e.EventTypes[0]
	}
	if eventType == domain.Every {
		eventType = AllTypes()[0]
	}
	sample, err := insertSample(ctx, tx, eventType)
	if err != nil {
		return domain.Delivery{}, err
	}
	id := ids.New[domain.DeliveryPrefix]()
	if err := a.Queue.AddDelivery(ctx, tx, endpoint, id, sample, a.Now()); err != nil {
		return domain.Delivery{}, err
	}
	return store.Delivery(ctx, tx, endpoint, id)
}

// insertSample writes a sample event of a type.
func insertSample(ctx context.Context, tx pg.Tx, eventType string) (domain.Event, error) {
	objectID, object, err := view.Sample(eventType, mode(ctx))
	if err != nil {
		return domain.Event{}, err
	}
	sample := domain.Event{
		ID: ids.New[ids.EventPrefix](), Livemode: caller.FromContext(ctx).Live(), Type: eventType, ObjectID: objectID, Version: 1,
		Object: object, Previous: []byte(`{}`),
	}
	body, err := view.Event(sample)
	if err != nil {
		return domain.Event{}, err
	}
	return sample, store.InsertSample(ctx, tx, sample, body)
}

// Retry makes a delivery due now, whether it is pending, has failed or has succeeded. It returns domain.ErrTransition when
// an attempt is in flight or the endpoint is disabled.
func (a *Deliveries) Retry(ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, id domain.DeliveryID) (domain.Delivery, error) {
	if err := store.LockQueue(ctx, tx, endpoint); err != nil {
		return domain.Delivery{}, err
	}
	e, err := store.Endpoint(ctx, tx, endpoint)
	if err != nil {
		return domain.Delivery{}, err
	}
	d, err := store.DeliveryForUpdate(ctx, tx, endpoint, id)
	if err != nil {
		return domain.Delivery{}, err
	}
	if err := CheckRead(ctx, []string{d.EventType}); err != nil {
		return domain.Delivery{}, err
	}
	if e.Status != domain.Enabled || d.Status == domain.Delivering {
		return domain.Delivery{}, domain.ErrTransition
	}
	if err := a.Queue.Retry(ctx, tx, d, a.Now()); err != nil {
		return domain.Delivery{}, err
	}
	if err := publishWrite(ctx, tx, a.Wake, deliveryRequested, e); err != nil {
		return domain.Delivery{}, err
	}
	return store.Delivery(ctx, tx, endpoint, id)
}

// Resend adds a delivery of one event to an endpoint, regardless of whether it subscribes to the type.
func (a *Deliveries) Resend(ctx context.Context, tx pg.Tx, event ids.Event, endpoint string) (domain.Delivery, error) {
	stored, err := store.Event(ctx, tx, event, a.Now())
	if err != nil {
		return domain.Delivery{}, err
	}
	if err := CheckRead(ctx, []string{stored.Type}); err != nil {
		return domain.Delivery{}, err
	}
	e, err := enabledEndpoint(ctx, tx, endpoint)
	if err != nil {
		return domain.Delivery{}, err
	}
	pending, err := store.PendingDeliveries(ctx, tx, e.ID, domain.MaxPending)
	if err != nil {
		return domain.Delivery{}, err
	}
	if pending >= domain.MaxPending {
		return domain.Delivery{}, apperr.Field("endpoint_id",
			"The endpoint has the maximum of %d pending deliveries. Wait until some of them are delivered.", domain.MaxPending)
	}
	id := ids.New[domain.DeliveryPrefix]()
	if err := a.Queue.AddDelivery(ctx, tx, e.ID, id, domain.Event{ID: stored.ID, Type: stored.Type}, a.Now()); err != nil {
		return domain.Delivery{}, err
	}
	if err := publishWrite(ctx, tx, a.Wake, eventResent, e); err != nil {
		return domain.Delivery{}, err
	}
	return store.Delivery(ctx, tx, e.ID, id)
}

// Replay specifies which events are redelivered to an endpoint: those of Types from From until before To. Without Types, the types
// that the endpoint subscribes to are used.
type Replay struct {
	Endpoint string
	From, To time.Time
	Types    []string
}

// Replay creates a delivery for each event of r and returns their number.
func (a *Deliveries) Replay(ctx context.Context, tx pg.Tx, r Replay) (int, error) {
	if err := CheckRead(ctx, r.Types); err != nil {
		return 0, err
	}
	if !r.From.Before(r.To) {
		return 0, apperr.Field("to", "Must be after from.")
	}
	e, err := enabledEndpoint(ctx, tx, r.Endpoint)
	if err != nil {
		return 0, err
	}
	types := r.Types
	if len(types) == 0 {
		types = subscription(e)
	}
	if err := CheckRead(ctx, types); err != nil {
		return 0, err
	}
	pending, err := store.PendingDeliveries(ctx, tx, e.ID, domain.MaxPending)
	if err != nil {
		return 0, err
	}
	limit := min(MaxReplay, domain.MaxPending-pending)
	n, err := a.Queue.Replay(ctx, tx, store.Replay{Endpoint: e.ID, Types: types, From: r.From, To: r.To}, a.Now(), limit)
	if err != nil {
		return 0, err
	}
	if n > limit && limit < MaxReplay {
		return 0, apperr.Field("endpoint_id",
			"The endpoint has %d pending deliveries, and the maximum is %d. Wait until they are delivered, or replay fewer events.", pending, domain.MaxPending)
	}
	if n > MaxReplay {
		return 0, apperr.Field("to", "There are more than %d events before this time. Replay them in several parts.", MaxReplay)
	}
	return n, publishWrite(ctx, tx, a.Wake, eventsReplayed, e)
}

// enabledEndpoint reads and locks the enabled endpoint that a body specifies. It does not find an endpoint of the other mode.
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
		err = apperr.Field("endpoint_id", "Webhook endpoint not found. Send the ID of an endpoint in this mode.")
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
