package app

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// Guard says which URLs the platform may connect to.
type Guard interface {
	// CheckURL returns nil, or a sentence that says what is allowed.
	CheckURL(ctx context.Context, url string, live bool) error
}

// Endpoints contains the use cases of endpoints. Guard uses the network, so it is called before a transaction begins.
type Endpoints struct {
	DB    *pg.DB
	Idem  *idemstore.Store
	Box   *crypt.Box
	Guard Guard
	Queue *store.Queue
	Now   func() time.Time
}

// failBatch is how many queued deliveries one transaction fails when an endpoint is disabled. The dispatcher fails the rest.
const failBatch = 1000

// EndpointChange says what an operator changes of an endpoint; a nil field changes nothing.
type EndpointChange struct {
	URL          *string
	EventTypes   []string
	Description  **string // a pointer to nil clears it
	Status       *domain.Status
	MaxInFlight  *int
	MaxPerSecond *int
}

// check returns what is wrong with a change, as far as this can be said without the endpoint.
func (a *Endpoints) check(ctx context.Context, ch EndpointChange) error {
	if err := MayRead(ctx, ch.EventTypes); err != nil {
		return err
	}
	var refused error
	if ch.URL != nil {
		if err := a.Guard.CheckURL(ctx, *ch.URL, caller.FromContext(ctx).Live()); err != nil {
			refused = apperr.Field("url", "%s", err)
		}
	}
	return apperr.Join(refused, domain.CheckTypes(ch.EventTypes))
}

// apply returns the endpoint after the change.
func (ch EndpointChange) apply(e domain.Endpoint) domain.Endpoint {
	if ch.URL != nil {
		e.URL = *ch.URL
	}
	if ch.EventTypes != nil {
		e.EventTypes = slices.Clone(ch.EventTypes)
	}
	if ch.Description != nil {
		e.Description = *ch.Description
	}
	if ch.MaxInFlight != nil {
		e.MaxInFlight = *ch.MaxInFlight
	}
	if ch.MaxPerSecond != nil {
		e.MaxPerSecond = *ch.MaxPerSecond
	}
	if ch.Status != nil {
		e = e.SwitchedTo(*ch.Status)
	}
	return e
}

// discloses returns the types whose events the change can send to another receiver: the types before and after it, when it
// changes the URL, the types or the status.
func (ch EndpointChange) discloses(before domain.Endpoint) []string {
	after := ch.apply(before)
	if after.URL == before.URL && after.Status == before.Status && slices.Equal(after.EventTypes, before.EventTypes) {
		return nil
	}
	return slices.Concat(before.EventTypes, after.EventTypes)
}

// noTypes says that a use case discloses no events: a sample is not a real event, and a deletion sends nothing.
func noTypes(domain.Endpoint) []string { return nil }

// subscribedTypes says that a use case discloses the events that the endpoint subscribes to.
func subscribedTypes(e domain.Endpoint) []string { return e.EventTypes }

// Create makes an endpoint with a secret. Only this answer shows the secret.
func (a *Endpoints) Create(ctx context.Context, ch EndpointChange) (idem.Reply, error) {
	if err := a.check(ctx, ch); err != nil {
		return idem.Reply{}, err
	}
	return a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		n, err := store.CountEndpoints(ctx, tx)
		if err != nil {
			return idem.Reply{}, err
		}
		if err := domain.EndpointCap.Room(n); err != nil {
			return idem.Reply{}, err
		}
		e := ch.apply(domain.Endpoint{
			ID: ids.New[domain.EndpointPrefix](), Status: domain.Enabled,
			MaxInFlight: domain.DefaultInFlight, MaxPerSecond: domain.DefaultPerSecond,
		})
		if e, err = store.InsertEndpoint(ctx, tx, e); err != nil {
			return idem.Reply{}, err
		}
		reply, err := a.newSecret(ctx, tx, e)
		reply.Status, reply.Location = http.StatusCreated, "/api/v1/webhook-endpoints/"+e.ID.String()
		return reply, err
	})
}

// newSecret adds a secret and returns the reply that shows it.
func (a *Endpoints) newSecret(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error) {
	secret := domain.NewSecret()
	err := store.InsertSecret(ctx, tx, a.Box, e.ID, domain.Secret{ID: ids.New[domain.SecretPrefixID](), Plain: secret})
	if err != nil {
		return idem.Reply{}, err
	}
	body, err := contract.Encode(view.EndpointWithSecret(e, secret, mode(ctx)))
	return idem.Reply{Status: http.StatusOK, ETag: httpx.ETag(e.Version), Resource: e.ID.String(), Body: body, Secret: true}, err
}

// Update applies a change. A change that changes nothing visible does not raise the version.
func (a *Endpoints) Update(ctx context.Context, id domain.EndpointID, ch EndpointChange, match httpx.Match) (idem.Reply, error) {
	if err := a.check(ctx, ch); err != nil {
		return idem.Reply{}, a.firstError(ctx, id, ch, err)
	}
	return a.change(ctx, id, match, ch.discloses, func(ctx context.Context, tx pg.Tx, before domain.Endpoint) (idem.Reply, error) {
		after := ch.apply(before)
		reply, err := answer(ctx, http.StatusOK, after)
		if err != nil {
			return idem.Reply{}, err
		}
		if unchanged, err := answer(ctx, http.StatusOK, before); err != nil || bytes.Equal(unchanged.Body, reply.Body) {
			return unchanged, err
		}
		if err := a.updateQueue(ctx, tx, before, after); err != nil {
			return idem.Reply{}, err
		}
		if after, err = store.UpdateEndpoint(ctx, tx, after); err != nil {
			return idem.Reply{}, err
		}
		return answer(ctx, http.StatusOK, after)
	})
}

// updateQueue changes the endpoint's queue as the change of the endpoint needs. Disabling fails queued deliveries, up to
// failBatch. Enabling fails all that are left from before, so that the endpoint starts with an empty queue.
func (a *Endpoints) updateQueue(ctx context.Context, tx pg.Tx, before, after domain.Endpoint) error {
	if err := store.LockQueue(ctx, tx, after.ID); err != nil {
		return err
	}
	tx.AfterCommit(a.Queue.Wake)
	if before.Status == after.Status {
		return nil
	}
	for {
		n, err := store.FailTenantQueued(ctx, tx, after.ID, a.Now(), failBatch)
		if err != nil {
			return err
		}
		if n < failBatch || after.Status == domain.Disabled {
			return store.ResetQueue(ctx, tx, after.ID, a.Now())
		}
	}
}

// Delete deletes an endpoint with its secrets and its queue.
func (a *Endpoints) Delete(ctx context.Context, id domain.EndpointID, match httpx.Match) error {
	_, err := a.change(ctx, id, match, noTypes, func(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error) {
		if err := store.LockQueue(ctx, tx, e.ID); err != nil {
			return idem.Reply{}, err
		}
		return idem.Reply{}, store.DeleteEndpoint(ctx, tx, e.ID)
	})
	return err
}

// Rotate gives an endpoint a new secret. The earlier secrets sign until overlap is over.
func (a *Endpoints) Rotate(ctx context.Context, id domain.EndpointID, overlap time.Duration, match httpx.Match) (idem.Reply, error) {
	return a.change(ctx, id, match, subscribedTypes, func(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error) {
		if err := store.RetireSecrets(ctx, tx, id, a.Now().Add(overlap)); err != nil {
			return idem.Reply{}, err
		}
		e, err := store.UpdateEndpoint(ctx, tx, e)
		if err != nil {
			return idem.Reply{}, err
		}
		return a.newSecret(ctx, tx, e)
	})
}

// Test sends a sample of a type to an endpoint, whether it subscribes to the type or not. Without a type, it takes one that
// the endpoint subscribes to. The reply is the delivery.
func (a *Endpoints) Test(ctx context.Context, id domain.EndpointID, eventType string, match httpx.Match) (idem.Reply, error) {
	return a.change(ctx, id, match, noTypes, func(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error) {
		if e.Status != domain.Enabled {
			return idem.Reply{}, domain.ErrDisabled
		}
		if eventType == "" {
			eventType = e.EventTypes[0]
		}
		if eventType == domain.Every {
			eventType = AllTypes()[0]
		}
		objectID, object, err := view.Sample(eventType, mode(ctx))
		if err != nil {
			return idem.Reply{}, err
		}
		c := caller.FromContext(ctx)
		sample := domain.Event{
			ID: ids.New[ids.EventPrefix](), Livemode: c.Live(), Type: eventType, ObjectID: objectID, Version: 1,
			Object: object, Previous: []byte(`{}`),
		}
		body, err := view.Event(sample)
		if err != nil {
			return idem.Reply{}, err
		}
		if err := store.InsertSample(ctx, tx, sample, body); err != nil {
			return idem.Reply{}, err
		}
		delivery := ids.New[domain.DeliveryPrefix]()
		if err := a.Queue.AddDelivery(ctx, tx, id, delivery, sample, a.Now()); err != nil {
			return idem.Reply{}, err
		}
		d, err := store.Delivery(ctx, tx, id, delivery)
		if err != nil {
			return idem.Reply{}, err
		}
		body, err = contract.Encode(view.Delivery(d, mode(ctx)))
		return idem.Reply{Status: http.StatusAccepted, Resource: delivery.String(), Body: body}, err
	})
}

// edit is a use case on a locked endpoint.
type edit func(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error)

// change locks an endpoint and runs edit, once per idempotency key. The caller must be allowed to read the types that
// discloses returns.
func (a *Endpoints) change(
	ctx context.Context, id domain.EndpointID, match httpx.Match, discloses func(domain.Endpoint) []string, edit edit,
) (idem.Reply, error) {
	reply, err := a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		e, err := store.EndpointForUpdate(ctx, tx, id)
		if err != nil {
			return idem.Reply{}, err
		}
		if err := MayRead(ctx, discloses(e)); err != nil {
			return idem.Reply{}, err
		}
		if err := match.Check(e.Version); err != nil {
			return idem.Reply{}, err
		}
		return edit(ctx, tx, e)
	})
	if errors.Is(err, domain.ErrEndpointNotFound) {
		err = missingEndpoint(ctx, a.DB, id)
	}
	return reply, err
}

// firstError returns err, unless the endpoint or a scope is missing: these errors come before errors of the body.
func (a *Endpoints) firstError(ctx context.Context, id domain.EndpointID, ch EndpointChange, err error) error {
	e, missing := store.Endpoint(ctx, a.DB.Read(ctx), id)
	if errors.Is(missing, domain.ErrEndpointNotFound) {
		return missingEndpoint(ctx, a.DB, id)
	}
	if missing != nil {
		return missing
	}
	if lacks := MayRead(ctx, ch.discloses(e)); lacks != nil {
		return lacks
	}
	return err
}

// answer returns the reply that shows an endpoint.
func answer(ctx context.Context, status int, e domain.Endpoint) (idem.Reply, error) {
	body, err := contract.Encode(view.Endpoint(e, mode(ctx)))
	return idem.Reply{Status: status, ETag: httpx.ETag(e.Version), Resource: e.ID.String(), Body: body}, err
}

// missingEndpoint returns why an endpoint was not found: domain.ErrEndpointNotFound, or apperr.ErrMode when it is an endpoint
// of the other mode.
func missingEndpoint(ctx context.Context, db *pg.DB, id domain.EndpointID) error {
	return pg.NotFoundOrOtherMode(ctx, db, func(ctx context.Context, q pg.Q) error {
		_, err := store.Endpoint(ctx, q, id)
		return err
	})
}
