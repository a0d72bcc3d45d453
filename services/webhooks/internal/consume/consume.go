// Package consume is the door for Kafka: it decodes what the platform's services publish and hands it to the log.
package consume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
)

// Events handles the events of all topics.
type Events struct {
	Intake *app.Intake
	Types  []string // the public ones
}

var errApart = errors.New("a message of the batch needs a transaction of its own")

// Together takes a batch in at once; one that holds more than public events is left to Handle.
func (h *Events) Together(ctx context.Context, batch []kafkax.Message) error {
	events := make([]domain.Event, 0, len(batch))
	for _, m := range batch {
		e, internal, err := h.decode(m)
		if err != nil {
			return err
		}
		if internal && e.Type == customerErased {
			return errApart
		}
		if !internal {
			events = append(events, e)
		}
	}
	return h.Intake.Take(ctx, events)
}

const customerErased = "customer.erased"

// Handle is a kafkax.Handler. A public type that is not known yet is poison: it can be brought back when it is.
func (h *Events) Handle(ctx context.Context, m kafkax.Message) error {
	e, internal, err := h.decode(m)
	if err != nil {
		return err
	}
	if !internal {
		return future(h.Intake.Take(ctx, []domain.Event{e}))
	}
	if e.Type != customerErased {
		return nil
	}
	customer, err := ids.Parse[ids.CustomerPrefix](e.ObjectID)
	if err != nil {
		return kafkax.Poison(fmt.Errorf("customer id %q: %w", e.ObjectID, err))
	}
	return h.Intake.Forget(app.As(ctx, e), customer)
}

func future(err error) error {
	if errors.Is(err, app.ErrFuture) {
		return kafkax.Poison(err)
	}
	return err
}

func (h *Events) decode(m kafkax.Message) (e domain.Event, internal bool, err error) {
	in, err := outbox.Decode(m.Value)
	if err != nil {
		return e, false, err
	}
	id, err := ids.Parse[ids.EventPrefix](in.GetId())
	if err != nil {
		return e, false, kafkax.Poison(fmt.Errorf("event id %q: %w", in.GetId(), err))
	}
	tenant, err := ids.Parse[ids.TenantPrefix](in.GetTenantId())
	if err != nil {
		return e, false, kafkax.Poison(fmt.Errorf("tenant id %q: %w", in.GetTenantId(), err))
	}
	if !in.GetInternal() && !slices.Contains(h.Types, in.GetType()) {
		return e, false, kafkax.Poison(fmt.Errorf("type %q is not in the catalogue", in.GetType()))
	}
	if !in.GetInternal() && (!json.Valid(in.GetObject()) || !json.Valid(in.GetPreviousAttributes())) {
		return e, false, kafkax.Poison(fmt.Errorf("event %s: its object is no JSON", id))
	}
	return domain.Event{
		ID: id, Tenant: tenant, Livemode: in.GetLivemode(), Type: in.GetType(), ObjectID: in.GetObjectId(),
		Version: in.GetResourceVersion(), RequestID: in.GetRequestId(), IdempotencyKey: in.GetIdempotencyKey(),
		Object: in.GetObject(), Previous: in.GetPreviousAttributes(),
	}, in.GetInternal(), nil
}
