package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// StoredResponses are the responses to repeated requests. *idemstore.Store implements it.
type StoredResponses interface {
	// Erase replaces the responses about resources with the result of erase.
	Erase(ctx context.Context, tx pg.Tx, resources []string, erase func(body []byte) ([]byte, error)) error
}

// Intake stores the events from Kafka, and erases personal data.
type Intake struct {
	DB          *pg.DB // app role
	Worker      *pg.DB // worker role, because a batch contains events of many tenants
	Queue       *store.Queue
	Notifier    *Notifier
	BatchBytes  int // maximum bytes of bodies in one transaction of an erasure
	Now         func() time.Time
	Contract    *contract.Contract // specifies which fields are personal data
	Idempotency StoredResponses    // about deliveries
}

// ErrFuture reports that an event's time is so far in the future that no partition exists for it.
var ErrFuture = errors.New("the event's time is in the future")

// Ingest writes public events into the log with their deliveries. It skips events that are already in the log, and events that are
// older than the log. If the time of an event is too far in the future, Ingest writes nothing and returns ErrFuture.
func (a *Intake) Ingest(ctx context.Context, events []domain.Event) error {
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
	// Processes that write the same events lock them in the same order, so that no deadlock occurs.
	slices.SortFunc(list, func(x, y store.Intake) int { return strings.Compare(x.Event.ID.String(), y.Event.ID.String()) })
	return a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := a.eraseBodies(ctx, tx, list); err != nil {
			return err
		}
		n, err := a.Queue.AddEvents(ctx, tx, list, now)
		if n > 0 {
			tx.AfterCommit(func() { a.broadcast(list) })
		}
		return err
	})
}

// broadcast wakes the streams for the events, once for each audience.
func (a *Intake) broadcast(list []store.Intake) {
	done := map[Audience]bool{}
	for _, e := range list {
		if audience := (Audience{Tenant: e.Event.Tenant, Livemode: e.Event.Livemode}); !done[audience] {
			done[audience] = true
			a.Notifier.Broadcast(audience)
		}
	}
}

// eraseBodies removes personal data from the bodies of events about persons whose data was already erased.
func (a *Intake) eraseBodies(ctx context.Context, tx pg.Tx, list []store.Intake) error {
	var events []domain.Event
	var indexes []int
	for i, e := range list {
		if a.Contract.HasPersonal(contract.KindOf(e.Event.Type)) {
			events, indexes = append(events, e.Event), append(indexes, i)
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
		e := &list[indexes[n]]
		if e.Body, err = view.Erased(a.Contract, e.Body); err != nil {
			return err
		}
	}
	return nil
}

// eraseBatch is the number of events that one transaction of an erasure changes.
const eraseBatch = 100

// EraseObject erases personal data from the events about an object, from later events about it, and from the responses of receivers
// to them. ctx must contain a caller of the object's tenant and mode.
func (a *Intake) EraseObject(ctx context.Context, objectID string) error {
	until := a.Now().Add(domain.Retention + domain.MaxAhead) // after this time the log accepts no event that exists now
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return store.InsertErasure(ctx, tx, objectID, until)
	})
	if err != nil {
		return err
	}
	var after ids.Event
	for {
		var n int
		err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			list, err := store.EventsOf(ctx, tx, objectID, after, eraseBatch, a.BatchBytes)
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
			if err := a.eraseResponses(ctx, tx, list); err != nil {
				return err
			}
			return store.Erase(ctx, tx, erased)
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// eraseResponses removes the responses of receivers from the stored responses about deliveries of the events.
func (a *Intake) eraseResponses(ctx context.Context, tx pg.Tx, list []domain.StoredEvent) error {
	deliveries, err := store.AttemptedDeliveries(ctx, tx, list)
	if err != nil {
		return err
	}
	resources := make([]string, len(deliveries))
	for i, id := range deliveries {
		resources[i] = id.String()
	}
	return a.Idempotency.Erase(ctx, tx, resources, a.Contract.Erase)
}

// partitionsAhead is how far in advance partitions are created.
const partitionsAhead = 14 * 24 * time.Hour

// sweepBatch is the number of queue rows that one transaction sweeps.
const sweepBatch = 10_000

// Maintain creates the log's next partitions, and deletes expired erasures and the queue rows of deleted endpoints.
func (a *Intake) Maintain(ctx context.Context) error {
	now := a.Now()
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return store.EnsurePartitions(ctx, tx, now.Add(-domain.Retention), now.Add(partitionsAhead))
	})
	if err == nil {
		err = pg.SweepExpired(ctx, a.Worker, "erasures")
	}
	for more := true; more && err == nil; {
		err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
			more, err = store.SweepQueue(ctx, tx, sweepBatch)
			return err
		})
	}
	return err
}

// WithCaller returns ctx with this service as the caller, for the tenant and mode of an event.
func WithCaller(ctx context.Context, e domain.Event) context.Context {
	return caller.With(ctx, caller.Service("webhooks", e.Tenant, caller.ModeOf(e.Livemode)))
}
