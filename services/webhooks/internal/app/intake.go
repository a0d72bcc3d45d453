package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// Intake is what comes in from Kafka.
type Intake struct {
	DB     *pg.DB // app role
	Worker *pg.DB // worker role: a batch is of many tenants
	Queue  *store.Queue
	Bell   *Bell
	Batch  int // bytes of the bodies that one transaction of an erasure holds
	Now    func() time.Time
	// Contract says which fields are a person's, and Idem holds stored answers about deliveries.
	Contract *contract.Contract
	Idem     *idem.Store
}

// ErrFuture says that an event's time is so far ahead that no partition is for it.
var ErrFuture = errors.New("the event's time is in the future")

// Take writes public events into the log, each once however often it comes, with the deliveries that follow from
// them. Those older than the log reaches are passed over. An event of the future is ErrFuture, of the whole batch.
func (a *Intake) Take(ctx context.Context, events []domain.Event) error {
	now := a.Now()
	list := make([]store.Intake, 0, len(events))
	for _, e := range events {
		if at := e.ID.Time(); at.After(now.Add(domain.MaxAhead)) {
			return ErrFuture
		} else if at.Before(now.Add(-domain.Retention)) {
			continue
		}
		body, err := view.Event(e)
		if err != nil {
			return err
		}
		list = append(list, store.Intake{Event: e, Body: body})
	}
	if len(list) == 0 {
		return nil
	}
	// Two processes that take the same in wait for each other in one order.
	slices.SortFunc(list, func(x, y store.Intake) int { return strings.Compare(x.Event.ID.String(), y.Event.ID.String()) })
	return a.Worker.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := a.withoutErased(ctx, tx, list); err != nil {
			return err
		}
		n, err := a.Queue.TakeIn(ctx, tx, list, now)
		if n > 0 {
			tx.AfterCommit(func() { a.ring(list) })
		}
		return err
	})
}

// ring wakes the streams that show events of list, once each.
func (a *Intake) ring(list []store.Intake) {
	rung := map[Audience]bool{}
	for _, e := range list {
		if of := (Audience{Tenant: e.Event.Tenant, Livemode: e.Event.Livemode}); !rung[of] {
			rung[of] = true
			a.Bell.Ring(of)
		}
	}
}

// withoutErased takes the persons out of list who were erased before their events came in.
func (a *Intake) withoutErased(ctx context.Context, tx pg.Tx, list []store.Intake) error {
	var events []domain.Event
	var places []int
	for i, e := range list {
		if a.Contract.HasPersonal(view.Kind(e.Event.Type)) {
			events, places = append(events, e.Event), append(places, i)
		}
	}
	if len(events) == 0 {
		return nil
	}
	erased, err := store.Erased(ctx, tx, events)
	if err != nil {
		return err
	}
	for n := range erased {
		e := &list[places[n]]
		if e.Body, err = view.Erased(a.Contract, e.Body); err != nil {
			return err
		}
	}
	return nil
}

const eraseBatch = 100

// Forget erases a person from the events of a customer, from those that come in later, and from what receivers
// answered to them. The caller in ctx is of the customer's tenant and mode.
func (a *Intake) Forget(ctx context.Context, customer ids.Customer) error {
	until := a.Now().Add(domain.Retention + domain.MaxAhead) // then the log takes no event in that is older than this
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return store.InsertErasure(ctx, tx, customer.String(), until)
	})
	if err != nil {
		return err
	}
	var after ids.Event
	for {
		var n int
		err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			list, err := store.EventsOf(ctx, tx, customer.String(), after, eraseBatch, a.Batch)
			n = len(list)
			if err != nil || n == 0 {
				return err
			}
			erased := make([]store.ErasedBody, n)
			for i, e := range list {
				body, err := view.Erased(a.Contract, e.Body)
				if err != nil {
					return err
				}
				erased[i] = store.ErasedBody{ID: e.ID, Body: body}
			}
			after = list[n-1].ID
			if err := a.forgetAnswers(ctx, tx, list); err != nil {
				return err
			}
			return store.Erase(ctx, tx, erased)
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// forgetAnswers takes what receivers have answered out of the stored answers about deliveries of events.
func (a *Intake) forgetAnswers(ctx context.Context, tx pg.Tx, list []domain.StoredEvent) error {
	deliveries, err := store.AttemptedDeliveries(ctx, tx, list)
	if err != nil {
		return err
	}
	resources := make([]string, len(deliveries))
	for i, id := range deliveries {
		resources[i] = id.String()
	}
	return a.Idem.Erase(ctx, tx, resources, a.Contract.Erase)
}

// keptAhead is how far ahead partitions are made.
const keptAhead = 14 * 24 * time.Hour

const sweptAtOnce = 10_000

// Tidy makes the log's coming partitions, and deletes what belongs to nobody.
func (a *Intake) Tidy(ctx context.Context) error {
	now := a.Now()
	err := a.Worker.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		return store.KeepPartitions(ctx, tx, now.Add(-domain.Retention), now.Add(keptAhead))
	})
	if err == nil {
		err = pg.SweepExpired(ctx, a.Worker, "erasures")
	}
	for more := true; more && err == nil; {
		err = a.Worker.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
			more, err = store.SweepQueue(ctx, tx, sweptAtOnce)
			return err
		})
	}
	return err
}

// As is ctx for the tenant and mode of an event.
func As(ctx context.Context, e domain.Event) context.Context {
	mode := caller.Test
	if e.Livemode {
		mode = caller.Live
	}
	return caller.With(ctx, caller.Service("webhooks", e.Tenant, mode))
}
