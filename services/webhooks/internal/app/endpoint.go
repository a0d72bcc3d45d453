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
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// Guard decides where the platform may connect to.
type Guard interface {
	// CheckURL returns nil, or a sentence that says what is allowed.
	CheckURL(ctx context.Context, url string, live bool) error
}

// Endpoints are the verbs of an operator's endpoints. Guard asks the network, so it is asked before a transaction.
type Endpoints struct {
	DB    *pg.DB
	Idem  *idem.Store
	Box   *crypt.Box
	Guard Guard
	Queue *store.Queue
	Now   func() time.Time
}

// atOnce is how many deliveries a disabling fails in its own transaction; the dispatcher fails the rest.
const atOnce = 1000

// EndpointChange is what an operator says of an endpoint; nil is nothing.
type EndpointChange struct {
	URL          *string
	EventTypes   []string
	Description  **string // a pointer to nil clears it
	Status       *domain.Status
	MaxInFlight  *int
	MaxPerSecond *int
}

// check is the verdict on what can be judged without the endpoint.
func (a *Endpoints) check(ctx context.Context, ch EndpointChange) error {
	if err := MayRead(ctx, ch.EventTypes); err != nil {
		return err
	}
	var refused error
	if ch.URL != nil {
		if err := a.Guard.CheckURL(ctx, *ch.URL, caller.Must(ctx).Live()); err != nil {
			refused = apperr.Field("url", "%s", err)
		}
	}
	return apperr.Join(refused, domain.CheckTypes(ch.EventTypes))
}

func (ch EndpointChange) of(e domain.Endpoint) domain.Endpoint {
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

// discloses are the types whose events ch can bring to another receiver: those before and after it, when it changes
// where events go, which, or whether.
func (ch EndpointChange) discloses(before domain.Endpoint) []string {
	after := ch.of(before)
	if after.URL == before.URL && after.Status == before.Status && slices.Equal(after.EventTypes, before.EventTypes) {
		return nil
	}
	return slices.Concat(before.EventTypes, after.EventTypes)
}

// Of the verbs that change no receiver: a sample stands for nothing real, and a deletion sends nothing.
func noTypes(domain.Endpoint) []string { return nil }

func allItsTypes(e domain.Endpoint) []string { return e.EventTypes }

// Create makes an endpoint with a secret, which only this answer shows.
func (a *Endpoints) Create(ctx context.Context, ch EndpointChange) (idem.Reply, error) {
	if err := a.check(ctx, ch); err != nil {
		return idem.Reply{}, err
	}
	return a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		n, err := store.CountEndpoints(ctx, tx)
		if err != nil {
			return idem.Reply{}, err
		}
		if err := domain.Places.Room(n); err != nil {
			return idem.Reply{}, err
		}
		e := ch.of(domain.Endpoint{
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

func (a *Endpoints) newSecret(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error) {
	secret := domain.NewSecret()
	err := store.InsertSecret(ctx, tx, a.Box, e.ID, domain.Secret{ID: ids.New[domain.SecretPrefixID](), Plain: secret})
	if err != nil {
		return idem.Reply{}, err
	}
	body, err := httpx.Encode(view.EndpointWithSecret(e, secret, mode(ctx)))
	return idem.Reply{Status: http.StatusOK, ETag: httpx.ETag(e.Version), Resource: e.ID.String(), Body: body, Secret: true}, err
}

// Update changes what ch says. A change that nobody could see is none: no new version.
func (a *Endpoints) Update(ctx context.Context, id domain.EndpointID, ch EndpointChange, match httpx.Match) (idem.Reply, error) {
	if err := a.check(ctx, ch); err != nil {
		return idem.Reply{}, a.first(ctx, id, ch, err)
	}
	return a.change(ctx, id, match, ch.discloses, func(ctx context.Context, tx pg.Tx, before domain.Endpoint) (idem.Reply, error) {
		after := ch.of(before)
		reply, err := answer(ctx, http.StatusOK, after)
		if err != nil {
			return idem.Reply{}, err
		}
		if unchanged, err := answer(ctx, http.StatusOK, before); err != nil || bytes.Equal(unchanged.Body, reply.Body) {
			return unchanged, err
		}
		if err := a.settle(ctx, tx, before, after); err != nil {
			return idem.Reply{}, err
		}
		if after, err = store.UpdateEndpoint(ctx, tx, after); err != nil {
			return idem.Reply{}, err
		}
		return answer(ctx, http.StatusOK, after)
	})
}

// settle does what a change means for the queue: disabling fails what is pending, and enabling begins afresh, so
// what a disabling has not failed yet is failed before.
func (a *Endpoints) settle(ctx context.Context, tx pg.Tx, before, after domain.Endpoint) error {
	if err := store.LockLane(ctx, tx, after.ID); err != nil {
		return err
	}
	tx.AfterCommit(a.Queue.Wake)
	if before.Status == after.Status {
		return nil
	}
	for {
		n, err := store.Drop(ctx, tx, laneKey(ctx, after.ID), a.Now(), atOnce)
		if err != nil {
			return err
		}
		if n < atOnce || after.Status == domain.Disabled {
			return store.ResetLane(ctx, tx, after.ID, a.Now())
		}
	}
}

// Delete deletes an endpoint with its secrets, and what is queued for it.
func (a *Endpoints) Delete(ctx context.Context, id domain.EndpointID, match httpx.Match) error {
	_, err := a.change(ctx, id, match, noTypes, func(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error) {
		if err := store.LockLane(ctx, tx, e.ID); err != nil {
			return idem.Reply{}, err
		}
		return idem.Reply{}, store.DeleteEndpoint(ctx, tx, e.ID)
	})
	return err
}

// Rotate gives an endpoint a new secret; the earlier ones sign for so long at most.
func (a *Endpoints) Rotate(ctx context.Context, id domain.EndpointID, overlap time.Duration, match httpx.Match) (idem.Reply, error) {
	return a.change(ctx, id, match, allItsTypes, func(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error) {
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

// Test sends a sample of a type to an endpoint, whatever it subscribes to; of "" one that it does. The reply is the
// delivery.
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
		c := caller.Must(ctx)
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
		if err := a.Queue.Event(ctx, tx, id, delivery, sample, a.Now()); err != nil {
			return idem.Reply{}, err
		}
		d, err := store.Delivery(ctx, tx, id, delivery)
		if err != nil {
			return idem.Reply{}, err
		}
		body, err = httpx.Encode(view.Delivery(d, mode(ctx)))
		return idem.Reply{Status: http.StatusAccepted, Resource: delivery.String(), Body: body}, err
	})
}

type edit func(ctx context.Context, tx pg.Tx, e domain.Endpoint) (idem.Reply, error)

// change runs edit on a locked endpoint, once per idempotency key, for a caller who may read the types that it discloses.
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
		err = store.MissingEndpoint(ctx, a.DB, id)
	}
	return reply, err
}

// first is err, unless the endpoint is missing or a scope for ch is: both come before what is wrong with a body.
func (a *Endpoints) first(ctx context.Context, id domain.EndpointID, ch EndpointChange, err error) error {
	e, missing := store.Endpoint(ctx, a.DB.Read(ctx), id)
	if errors.Is(missing, domain.ErrEndpointNotFound) {
		return store.MissingEndpoint(ctx, a.DB, id)
	}
	if missing != nil {
		return missing
	}
	if lacks := MayRead(ctx, ch.discloses(e)); lacks != nil {
		return lacks
	}
	return err
}

func answer(ctx context.Context, status int, e domain.Endpoint) (idem.Reply, error) {
	body, err := httpx.Encode(view.Endpoint(e, mode(ctx)))
	return idem.Reply{Status: status, ETag: httpx.ETag(e.Version), Resource: e.ID.String(), Body: body}, err
}
