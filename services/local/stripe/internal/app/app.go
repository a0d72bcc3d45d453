// Package app implements the stand-in's operations on Stripe's objects. Each method of Unit runs inside a transaction. It
// completes all checks before the first write, so that a refusal has no effect.
package app

import (
	"time"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// App holds the data that all units share.
type App struct {
	DB *store.DB
	// Fees of charges and disputes.
	Fees domain.Fees
	// AsyncDelay is the time until a bank payment settles, a pending refund ends, or a dispute opens.
	AsyncDelay time.Duration
	// Scheduled is called when a task is added.
	Scheduled func()
	// Deliver sends a delivery whose event is stored in the file.
	Deliver func(domain.Delivery)
	// Events configures how events are created.
	Events *EventModes
}

// Unit is the work of one request in one transaction.
type Unit struct {
	*App
	Tx      *store.Tx
	Scope   domain.Scope
	Request domain.EventRequest
	BaseURL string
}

func (u *Unit) now() int64 { return u.Tx.Now().Unix() }

func (u *Unit) schedule(do, object string) error {
	u.Tx.After(u.Scheduled)
	return u.Tx.Schedule(store.Task{Do: do, Scope: u.Scope, Object: object}, u.AsyncDelay)
}

// find returns an object. It returns an error if the object does not exist.
func find[T any](u *Unit, kind store.Kind, id, what, param string) (*T, error) {
	object, err := store.Get[T](u.Tx, u.Scope, kind, id)
	if err == nil && object == nil {
		return nil, domain.Missing(404, what, id, param)
	}
	return object, err
}

// Intent returns an intent.
func (u *Unit) Intent(id string) (*domain.Intent, error) {
	return find[domain.Intent](u, store.Intents, id, "payment_intent", "intent")
}

// Charge returns a charge.
func (u *Unit) Charge(id string) (*domain.Charge, error) {
	return find[domain.Charge](u, store.Charges, id, "charge", "id")
}

// Refund returns a refund.
func (u *Unit) Refund(id string) (*domain.Refund, error) {
	return find[domain.Refund](u, store.Refunds, id, "refund", "id")
}

// Dispute returns a dispute.
func (u *Unit) Dispute(id string) (*domain.Dispute, error) {
	return find[domain.Dispute](u, store.Disputes, id, "dispute", "id")
}

func (u *Unit) putIntent(pi *domain.Intent) error { return u.Tx.Put(u.Scope, store.Intents, pi.ID, pi) }

func (u *Unit) putCharge(c *domain.Charge) error {
	return u.put(store.Charges, c.ID, c.PaymentIntent, c)
}

func (u *Unit) putRefund(r *domain.Refund) error {
	return u.put(store.Refunds, r.ID, r.PaymentIntent, r)
}

func (u *Unit) putDispute(d *domain.Dispute) error {
	return u.put(store.Disputes, d.ID, d.PaymentIntent, d)
}

// put stores an object, and its id under its intent.
func (u *Unit) put(kind store.Kind, id, intent string, object any) error {
	if err := u.Tx.Index(u.Scope, kind, intent, id); err != nil {
		return err
	}
	return u.Tx.Put(u.Scope, kind, id, object)
}

// all runs the steps until one fails.
func all(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns the first error that is not nil. It converts a nil *domain.Error to a nil error.
func refuse(errs ...*domain.Error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// given returns nil for an empty text.
func given(s *string) *string {
	if s == nil || *s == "" {
		return nil
	}
	return s
}
