package app

import (
	"time"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// CreateEndpoint creates a webhook endpoint. Only this response contains its secret.
func (u *Unit) CreateEndpoint(e domain.Endpoint) (*domain.Endpoint, error) {
	e.ID, e.Object, e.Created, e.Livemode, e.Status = u.Tx.NewID(store.Endpoints), "webhook_endpoint", u.now(), u.Scope.Live, "enabled"
	secret := "whsec_" + store.Random(32)
	_, err := u.Tx.Put(u.Scope, store.Endpoints, e.ID, domain.StoredEndpoint{Endpoint: e, Secrets: []domain.Secret{{Value: secret}}})
	e.Secret = secret
	return &e, err
}

// Endpoint returns a webhook endpoint without its secret.
func (u *Unit) Endpoint(id string) (*domain.Endpoint, error) {
	return find[domain.Endpoint](u, store.Endpoints, id, "webhook endpoint", "webhook_endpoint")
}

// DeleteEndpoint deletes a webhook endpoint. Its pending deliveries are dropped when they are due.
func (u *Unit) DeleteEndpoint(id string) error {
	if _, err := u.Endpoint(id); err != nil {
		return err
	}
	return u.Tx.Delete(u.Scope, store.Endpoints, id)
}

// RollSecret replaces the secret of an endpoint. During the overlap, payloads are also signed with the old secrets.
func (u *Unit) RollSecret(id string, overlap time.Duration) (*domain.Endpoint, error) {
	e, err := find[domain.StoredEndpoint](u, store.Endpoints, id, "webhook endpoint", "webhook_endpoint")
	if err != nil {
		return nil, err
	}
	end := u.Tx.Now().Add(overlap).Unix()
	for i, s := range e.Secrets {
		if s.Expires == 0 || s.Expires > end {
			e.Secrets[i].Expires = end
		}
	}
	secret := "whsec_" + store.Random(32)
	e.Secrets = append([]domain.Secret{{Value: secret}}, e.Secrets...)
	if _, err := u.Tx.Put(u.Scope, store.Endpoints, id, e); err != nil {
		return nil, err
	}
	e.Secret = secret
	return &e.Endpoint, nil
}

// Event returns an event with the number of endpoints that have not received it.
func (u *Unit) Event(id string) (*domain.Event, error) {
	e, err := find[domain.Event](u, store.Events, id, "event", "id")
	if err != nil {
		return nil, err
	}
	e.PendingWebhooks = u.Tx.Pending(id)
	return e, nil
}
