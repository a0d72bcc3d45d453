// Package consume handles the messages from Kafka: it decodes the events that the platform's services publish and passes them to
// the intake.
package consume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/tenantstate"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
)

// Events handles the events of all topics.
type Events struct {
	Intake  *app.Intake
	Tenants *tenantstate.Events
	Types   []string // the public types
}

// HandleBatch writes the public events of a batch in one transaction. It returns kafkax.ErrSeparate if the batch contains an
// erasure or the state of a tenant. The consumer then calls Handle for each message.
func (h *Events) HandleBatch(ctx context.Context, batch []kafkax.Message) error {
	events := make([]domain.Event, 0, len(batch))
	for _, m := range batch {
		e, internal, err := h.decode(m)
		if err != nil {
			return err
		}
		if internal && (erasures[e.Type] != nil || e.Type == tenantstate.EventType) {
			return kafkax.ErrSeparate
		}
		if !internal {
			events = append(events, e)
		}
	}
	return h.Intake.Ingest(ctx, events)
}

// erasures are the internal event types that request the erasure of a person's data from the events about an object, each with a
// check of the object's id.
var erasures = map[string]func(id string) error{
	"customer.erased": parses[ids.CustomerPrefix],
	"lead.erased":     parses[ids.LeadPrefix],
	"quote.erased":    parses[ids.QuotePrefix],
	"invoice.erased":  parses[ids.InvoicePrefix],

	"payment_intent.erased": func(id string) error {
		if !strings.HasPrefix(id, "pi_") { // the payment gateway's id
			return errors.New("no id of a payment intent")
		}
		return nil
	},
}

func parses[P ids.Prefix](id string) error {
	_, err := ids.Parse[P](id)
	return err
}

// Handle is a kafkax.Handler. A message of a public type that this release does not know goes to the dead-letter topic, from which
// a later release can redrive it.
func (h *Events) Handle(ctx context.Context, m kafkax.Message) error {
	e, internal, err := h.decode(m)
	if err != nil {
		return err
	}
	if !internal {
		return poisonFuture(h.Intake.Ingest(ctx, []domain.Event{e}))
	}
	if e.Type == tenantstate.EventType {
		return h.Tenants.Handle(ctx, m)
	}
	parse := erasures[e.Type]
	if parse == nil {
		return nil
	}
	if err := parse(e.ObjectID); err != nil {
		return kafkax.Poison(fmt.Errorf("%s of %q: %w", e.Type, e.ObjectID, err))
	}
	return h.Intake.EraseObject(app.WithCaller(ctx, e), e.ObjectID)
}

// poisonFuture makes app.ErrFuture poison, so that such an event goes to the dead-letter topic.
func poisonFuture(err error) error {
	if errors.Is(err, app.ErrFuture) {
		return kafkax.Poison(err)
	}
	return err
}

// decode decodes a message and reports whether its event is internal.
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
		return e, false, kafkax.Poison(fmt.Errorf("type %q is not in the catalogue of event types", in.GetType()))
	}
	if !in.GetInternal() && (!json.Valid(in.GetObject()) || !json.Valid(in.GetPreviousAttributes())) {
		return e, false, kafkax.Poison(fmt.Errorf("event %s: its object or its previous attributes are not JSON", id))
	}
	return domain.Event{
		ID: id, Tenant: tenant, Livemode: in.GetLivemode(), Type: in.GetType(), ObjectID: in.GetObjectId(),
		Version: in.GetResourceVersion(), RequestID: in.GetRequestId(), IdempotencyKey: in.GetIdempotencyKey(),
		Object: in.GetObject(), Previous: in.GetPreviousAttributes(),
	}, in.GetInternal(), nil
}
