package app

import (
	"encoding/json"
	"sync"
	"time"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// EventMode specifies how events of an account are created and sent.
type EventMode struct {
	Stopped bool          // deliveries wait until it is false
	Dropped bool          // new events are stored but not sent
	Repeat  int           // number of additional sends of each delivery
	Shuffle time.Duration // maximum of a random delay of each delivery
	Age     time.Duration // how far created of a new event is in the past
}

// EventModes holds the modes by account. "" is the mode of all other accounts.
type EventModes struct {
	mu    sync.Mutex
	modes map[string]EventMode
}

// Of returns the mode of an account.
func (m *EventModes) Of(account string) EventMode {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mode, ok := m.modes[account]; ok {
		return mode
	}
	return m.modes[""]
}

// Set sets the mode of an account.
func (m *EventModes) Set(account string, mode EventMode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.modes == nil {
		m.modes = map[string]EventMode{}
	}
	m.modes[account] = mode
}

// emit stores an event with the current state of the object, and a delivery to each endpoint that is registered for it. queue is
// the intent's id: events of one intent are sent one after the other.
func (u *Unit) emit(kind, queue string, object any, before map[string]any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	mode := u.Events.Of(u.Scope.Account)
	e := domain.Event{
		ID: u.Tx.NewID(store.Events), Object: "event", APIVersion: domain.APIVersion,
		Created: u.Tx.Now().Add(-mode.Age).Unix(), Data: domain.EventData{Object: text, PreviousAttributes: before},
		Livemode: u.Scope.Live, Request: u.Request, Type: kind,
	}
	for id, text := range u.Tx.Oldest(u.Scope, store.Endpoints, "") {
		var endpoint domain.Endpoint
		if err := json.Unmarshal(text, &endpoint); err != nil {
			return err
		}
		if mode.Dropped || !endpoint.Wants(kind) {
			continue
		}
		d := domain.Delivery{Scope: u.Scope, Event: e.ID, Endpoint: id, Queue: queue}
		if err := u.Tx.PutDelivery(d); err != nil {
			return err
		}
		e.PendingWebhooks++
		u.Tx.After(func() { u.Deliver(d) })
	}
	return u.Tx.Put(u.Scope, store.Events, e.ID, e)
}

// CreateEndpoint creates a webhook endpoint.
func (u *Unit) CreateEndpoint(address string, events []string) (*domain.Endpoint, error) {
	e := &domain.Endpoint{
		ID: u.Tx.NewID(store.Endpoints), Object: "webhook_endpoint", Created: u.now(), EnabledEvents: events, Livemode: u.Scope.Live,
		Metadata: map[string]string{}, Secret: "whsec_" + store.Random(32), Status: "enabled", URL: address,
	}
	return e, u.Tx.Put(u.Scope, store.Endpoints, e.ID, e)
}

func (u *Unit) emitIntent(kind string, pi *domain.Intent) error {
	return u.emit("payment_intent."+kind, pi.ID, pi, nil)
}

func (u *Unit) emitCharge(kind string, c *domain.Charge, before map[string]any) error {
	return u.emit("charge."+kind, c.PaymentIntent, c, before)
}
