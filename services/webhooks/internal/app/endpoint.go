package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// Guard specifies which URLs the platform may connect to.
type Guard interface {
	// CheckURL returns nil, or a sentence that describes what is allowed.
	CheckURL(ctx context.Context, url string, live bool) error
}

// Endpoints contains the use cases of endpoints. Guard uses the network, so it is called before a transaction begins.
type Endpoints struct {
	DB    *pg.DB
	Box   *crypt.Box
	Guard Guard
	Queue *store.Queue
	Wake  func() // wakes the relay; can be nil
	Now   func() time.Time
}

// failBatch is the number of queued deliveries that one transaction fails when an endpoint is disabled. The dispatcher fails the
// rest.
const failBatch = 1000

// check returns the error of a patch, as far as it can be checked without the endpoint.
func (a *Endpoints) check(ctx context.Context, in domain.EndpointPatch) error {
	var types []string
	in.EventTypes.Set(&types)
	if err := CheckRead(ctx, types); err != nil {
		return err
	}
	var refused error
	if url := in.URL.Pointer(); url != nil {
		if err := a.Guard.CheckURL(ctx, *url, caller.FromContext(ctx).Live()); err != nil {
			refused = apperr.Field("url", "%s", err)
		}
	}
	return apperr.Join(refused, in.Check())
}

// EndpointWrite is a patch of an endpoint, with its error as far as it can be checked without the endpoint.
type EndpointWrite struct {
	domain.EndpointPatch

	refused error
}

// Prepare checks a patch. It may look up the address of its URL.
func (a *Endpoints) Prepare(ctx context.Context, in domain.EndpointPatch) (EndpointWrite, error) {
	return EndpointWrite{EndpointPatch: in, refused: a.check(ctx, in)}, nil
}

// Create creates an endpoint with a secret. Only this response shows the secret.
func (a *Endpoints) Create(ctx context.Context, tx pg.Tx, w EndpointWrite) (domain.EndpointWithSecret, error) {
	if w.refused != nil {
		return domain.EndpointWithSecret{}, w.refused
	}
	n, err := store.CountEndpoints(ctx, tx)
	if err != nil {
		return domain.EndpointWithSecret{}, err
	}
	if err := domain.EndpointCap.For(caller.FromContext(ctx).Caps).Room(n); err != nil {
		return domain.EndpointWithSecret{}, err
	}
	e, err := domain.NewEndpoint().Apply(w.EndpointPatch)
	if err != nil {
		return domain.EndpointWithSecret{}, err
	}
	e.CreatedBy = caller.FromContext(ctx).Actor()
	e.Holder = e.CreatedBy
	if e, err = store.InsertEndpoint(ctx, tx, e); err != nil {
		return domain.EndpointWithSecret{}, err
	}
	if err := publishWrite(ctx, tx, a.Wake, endpointCreated, e); err != nil {
		return domain.EndpointWithSecret{}, err
	}
	if headers := w.Headers.Pointer(); headers != nil {
		if err := store.PutHeaders(ctx, tx, a.Box, e.ID, *headers); err != nil {
			return domain.EndpointWithSecret{}, err
		}
	}
	return a.addSecret(ctx, tx, e)
}

// addSecret adds a new secret to an endpoint.
func (a *Endpoints) addSecret(ctx context.Context, tx pg.Tx, e domain.Endpoint) (domain.EndpointWithSecret, error) {
	secret := domain.NewSecret()
	err := store.InsertSecret(ctx, tx, a.Box, e.ID, domain.Secret{ID: ids.New[domain.SecretPrefixID](), Plain: secret})
	return domain.EndpointWithSecret{Endpoint: e, Secret: secret}, err
}

// Update changes the given fields. A change of nothing creates no new version. New values of headers create one, although no response
// shows them.
func (a *Endpoints) Update(
	ctx context.Context, tx pg.Tx, id domain.EndpointID, w EndpointWrite, match patch.Precondition,
) (domain.Endpoint, error) {
	before, err := lock(ctx, tx, id, w.Discloses)
	if err != nil {
		return domain.Endpoint{}, err
	}
	if w.refused != nil {
		return domain.Endpoint{}, w.refused
	}
	if err := match.Check(before.Version); err != nil {
		return domain.Endpoint{}, err
	}
	after, err := before.Apply(w.EndpointPatch)
	if err != nil {
		return domain.Endpoint{}, err
	}
	same, err := contract.SameBody(view.Endpoint(before, mode(ctx)), view.Endpoint(after, mode(ctx)))
	if err != nil {
		return domain.Endpoint{}, err
	}
	sameHeaders, err := a.putHeaders(ctx, tx, id, w.Headers.Pointer())
	if err != nil || same && sameHeaders {
		return before, err
	}
	if err := a.updateQueue(ctx, tx, before, after); err != nil {
		return domain.Endpoint{}, err
	}
	fields, err := changedFields(ctx, before, after)
	if err != nil {
		return domain.Endpoint{}, err
	}
	if !sameHeaders && !slices.Contains(fields, "headers") {
		fields = append(fields, "headers")
	}
	after, err = store.UpdateEndpoint(ctx, tx, after.EnabledBy(caller.FromContext(ctx).Actor(), before))
	if err != nil {
		return domain.Endpoint{}, err
	}
	return after, publishWrite(ctx, tx, a.Wake, endpointUpdated, after, fields...)
}

// putHeaders replaces the headers of an endpoint that the transaction has locked. It reports whether they are the same as before. It
// replaces headers that no key opens, so that an operator can set them again after a key was lost.
func (a *Endpoints) putHeaders(ctx context.Context, tx pg.Tx, id domain.EndpointID, headers *domain.EndpointHeaders) (same bool, err error) {
	if headers == nil {
		return true, nil
	}
	sealed, err := store.SealedHeaders(ctx, tx, id)
	if err != nil {
		return false, err
	}
	c := caller.FromContext(ctx)
	before, err := store.OpenHeaders(a.Box, domain.EndpointKey{Tenant: c.Tenant, Livemode: c.Live(), Endpoint: id}, sealed)
	if err == nil && maps.Equal(before, *headers) {
		return true, nil
	}
	return false, store.PutHeaders(ctx, tx, a.Box, id, *headers)
}

// updateQueue adapts the endpoint's queue to the change of the endpoint. Disabling fails up to failBatch queued deliveries.
// Enabling fails all remaining deliveries, so that the endpoint starts with an empty queue.
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
func (a *Endpoints) Delete(ctx context.Context, tx pg.Tx, id domain.EndpointID, match patch.Precondition) error {
	e, err := lockMatching(ctx, tx, id, match, noTypes)
	if err != nil {
		return err
	}
	if err := store.LockQueue(ctx, tx, id); err != nil {
		return err
	}
	if err := store.DeleteEndpoint(ctx, tx, id); err != nil {
		return err
	}
	e.Version++ // after its last version
	return publishWrite(ctx, tx, a.Wake, endpointDeleted, e)
}

// Rotate adds a new secret to an endpoint. The earlier secrets remain valid until overlap is over.
func (a *Endpoints) Rotate(
	ctx context.Context, tx pg.Tx, id domain.EndpointID, overlap time.Duration, match patch.Precondition,
) (domain.EndpointWithSecret, error) {
	e, err := lockMatching(ctx, tx, id, match, subscribedTypes)
	if err != nil {
		return domain.EndpointWithSecret{}, err
	}
	if err := store.RetireSecrets(ctx, tx, id, a.Now().Add(overlap)); err != nil {
		return domain.EndpointWithSecret{}, err
	}
	if e, err = store.UpdateEndpoint(ctx, tx, e); err != nil {
		return domain.EndpointWithSecret{}, err
	}
	if err := publishWrite(ctx, tx, a.Wake, secretRotated, e); err != nil {
		return domain.EndpointWithSecret{}, err
	}
	return a.addSecret(ctx, tx, e)
}

// lock reads and locks an endpoint for a change. The caller must be allowed to read the types that discloses returns.
func lock(ctx context.Context, tx pg.Tx, id domain.EndpointID, discloses func(domain.Endpoint) []string) (domain.Endpoint, error) {
	e, err := store.EndpointForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Endpoint{}, err
	}
	return e, CheckRead(ctx, discloses(e))
}

// lockMatching locks an endpoint like lock, if it has the version in the request.
func lockMatching(
	ctx context.Context, tx pg.Tx, id domain.EndpointID, match patch.Precondition, discloses func(domain.Endpoint) []string,
) (domain.Endpoint, error) {
	e, err := lock(ctx, tx, id, discloses)
	if err != nil {
		return domain.Endpoint{}, err
	}
	return e, match.Check(e.Version)
}

// noTypes means that a use case discloses no events: a sample is not a real event, and a deletion sends nothing.
func noTypes(domain.Endpoint) []string { return nil }

// subscribedTypes means that a use case discloses the events that the endpoint subscribes to.
func subscribedTypes(e domain.Endpoint) []string { return e.EventTypes }
