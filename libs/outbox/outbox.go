// Package outbox publishes the changes of a transaction. An event is a row that the same transaction writes, and the relay sends
// rows to Kafka. Delivery is at least once and in order per object. A write that is rolled back publishes nothing.
package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// classes is the number of values of the column hash. It never changes: relays of different versions exclude each other by class.
const classes = 8

// Event is one committed change.
type Event struct {
	// Add sets ID if it is zero.
	ID ids.Event
	// Type is the dotted name in the catalogue, such as "customer.created".
	Type string
	// Topic is the topic's short name, such as "customers".
	Topic string
	// AggregateID is the public id of the changed object, and the key of the message.
	AggregateID string
	// Version is the object's version after the change.
	Version int64
	// Object is the GET body after the change. Previous contains the changed public fields with their previous values.
	Object, Previous json.RawMessage
	// Internal marks changes that have no public type.
	Internal bool
}

// Emit adds an event to the transaction like Add, and wakes the relay after the commit. If wake is nil, the relay finds the event
// at its next poll.
func Emit(ctx context.Context, tx pg.Tx, wake func(), e Event) error {
	if wake != nil {
		tx.AfterCommit(wake)
	}
	if err := Add(ctx, tx, e); err != nil {
		return fmt.Errorf("%s: %w", e.Type, err)
	}
	return nil
}

// Add writes the event when the caller's transaction commits. The transaction must hold the lock of the object's row, which orders
// the events of one object.
func Add(ctx context.Context, tx pg.Tx, e Event) error {
	c, err := caller.Require(ctx)
	if err != nil {
		return err
	}
	if e.ID.IsZero() {
		e.ID = ids.New[ids.EventPrefix]()
	}
	if e.Previous == nil {
		e.Previous = json.RawMessage(`{}`)
	}
	req, _ := idem.RequestFrom(ctx)
	message, err := proto.Marshal(&eventsv1.Event{
		Id: e.ID.String(), Type: e.Type, TenantId: c.Tenant.String(), Livemode: c.Live(),
		ObjectId: e.AggregateID, ResourceVersion: e.Version, CreatedAt: timestamppb.New(time.Now()),
		RequestId: c.RequestID, IdempotencyKey: req.Key,
		Object: e.Object, PreviousAttributes: e.Previous, Internal: e.Internal, Actor: c.Actor(),
	})
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	tx.QueueAtCommit(`
		insert into outbox (tenant_id, livemode, id, topic, aggregate_id, hash, message, traceparent)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		c.Tenant, c.Live(), e.ID, e.Topic, e.AggregateID, class(e.AggregateID), message, obs.Traceparent(ctx))
	return nil
}

// Body returns the representation of a resource in an event: the body of a GET in the caller's mode. show is the resource's
// function in view.
func Body[T, V any](ctx context.Context, show func(T, api.Mode) V, v T) (json.RawMessage, error) {
	return contract.Encode(show(v, api.Mode(caller.FromContext(ctx).Mode)))
}

// Previous returns the previous attributes of a resource in an event: the fields that differ, with their previous values, or {} if
// none does.
func Previous[T, V any](ctx context.Context, show func(T, api.Mode) V, before, after T) (json.RawMessage, error) {
	was, err := Body(ctx, show, before)
	if err != nil {
		return nil, err
	}
	is, err := Body(ctx, show, after)
	if err != nil {
		return nil, err
	}
	return Diff(was, is), nil
}

// Decode decodes a message that a relay produced. A message that cannot be decoded is poison.
func Decode(value []byte) (*eventsv1.Event, error) {
	var e eventsv1.Event
	if err := proto.Unmarshal(value, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", kafkax.ErrPoison, err)
	}
	if _, err := ids.Parse[ids.EventPrefix](e.Id); err != nil {
		return nil, fmt.Errorf("%w: event id %q", kafkax.ErrPoison, e.Id)
	}
	return &e, nil
}

// Caller returns the service as the caller for the event's tenant and mode, for a consumer's transaction.
func Caller(service string, e *eventsv1.Event) (caller.Caller, error) {
	tenant, err := ids.Parse[ids.TenantPrefix](e.TenantId)
	if err != nil {
		return caller.Caller{}, fmt.Errorf("%w: tenant id %q", kafkax.ErrPoison, e.TenantId)
	}
	mode := caller.ModeOf(e.Livemode)
	c := caller.Service(service, tenant, mode)
	c.RequestID = e.RequestId
	return c, nil
}

func class(aggregate string) int32 {
	return int32(crc32.ChecksumIEEE([]byte(aggregate)) % classes)
}
