// Package consume handles the messages from Kafka and records the actions of other services in the audit log.
package consume

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// Audit handles the events of the other services.
type Audit struct {
	App *app.App
	// Topics contains a function for each topic that converts an event into a record: action, object, and the displayed change. It
	// returns nil for an event that is not audited.
	Topics map[string]func(e *eventsv1.Event) (*domain.Record, error)
}

// New creates the handler of the topics that the service reads.
func New(identity *app.App) *Audit {
	return &Audit{App: identity, Topics: map[string]func(e *eventsv1.Event) (*domain.Record, error){
		"webhooks": endpoint, "customers": change, "bookings": change, "payments": payment,
	}}
}

// HandleBatch writes the records of a batch in one transaction, all or none. After an error, the consumer calls Handle for each
// message. It holds one decoded event at a time, because a record is small.
func (h *Audit) HandleBatch(ctx context.Context, batch []kafkax.Message) error {
	list := make([]app.Reported, 0, len(batch))
	for _, m := range batch {
		r, err := h.report(m)
		if err != nil {
			return err
		}
		if r != nil {
			list = append(list, *r)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return h.App.RecordAudit(ctx, list)
}

// Handle is a kafkax.Handler. A message that cannot be decoded, or belongs to an unknown tenant, is poison. Types that are not
// audited are skipped.
func (h *Audit) Handle(ctx context.Context, m kafkax.Message) error {
	err := h.HandleBatch(ctx, []kafkax.Message{m})
	if errors.Is(err, domain.ErrTenantNotFound) || unstorable(err) {
		return kafkax.Poison(err)
	}
	return err
}

// unstorable reports that Postgres will never accept a value, such as text that contains a NUL.
func unstorable(err error) bool { return strings.HasPrefix(pg.Code(err), "22") }

// report decodes a message. It returns nil for an event that is not audited.
func (h *Audit) report(m kafkax.Message) (*app.Reported, error) {
	record := h.Topics[m.Topic]
	if record == nil {
		return nil, kafkax.Poison(fmt.Errorf("topic %q has no handler", m.Topic))
	}
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return nil, err
	}
	id, err := inbox.Of(e)
	if err != nil {
		return nil, err
	}
	r, err := record(e)
	if err != nil {
		return nil, kafkax.Poison(err)
	}
	if r == nil {
		return nil, nil
	}
	if err := e.GetCreatedAt().CheckValid(); err != nil {
		return nil, kafkax.Poison(fmt.Errorf("created_at: %w", err))
	}
	r.TenantID, r.Livemode, r.At = id.Tenant, id.Livemode, e.GetCreatedAt().AsTime()
	r.Actor, r.Action, r.Source = e.GetActor(), e.GetType(), m.Topic
	if r.Actor == "" { // from a release that did not send it
		r.Actor = "svc:" + m.Topic
	}
	gateway, err := gateway(e)
	if err != nil {
		return nil, kafkax.Poison(err)
	}
	return &app.Reported{Event: id.ID, Record: *r, Gateway: gateway}, nil
}

// gateway returns the payment gateway account in an event, or nil if there is none.
func gateway(e *eventsv1.Event) (*domain.Gateway, error) {
	if e.GetType() != domain.GatewayAccountUpdated {
		return nil, nil
	}
	var object internalapi.GatewayAccount
	if err := json.Unmarshal(e.GetObject(), &object); err != nil {
		return nil, fmt.Errorf("gateway account: %w", err)
	}
	if object.ID == "" || object.ID != e.GetObjectId() || object.Provider == "" {
		return nil, fmt.Errorf("an event of gateway account %q holds account %q of provider %q", e.GetObjectId(), object.ID, object.Provider)
	}
	return &domain.Gateway{
		ID: object.ID, Provider: object.Provider, Connected: object.Connected, Version: e.GetResourceVersion(),
		Events: cmp.Or(object.Events, "ok"), // events of an earlier release do not contain it
	}, nil
}

// changed is the content of a change in a record: the names of fields, but never a value.
type changed struct {
	Fields    []string `json:"fields"` // sorted; none for a new object
	RequestID string   `json:"request_id,omitempty"`
	Version   int64    `json:"version"` // of the object after the change
}

// change creates the record of a write of customers or bookings.
func change(e *eventsv1.Event) (*domain.Record, error) {
	var before map[string]json.RawMessage
	if raw := e.GetPreviousAttributes(); len(raw) > 0 {
		if err := json.Unmarshal(raw, &before); err != nil {
			return nil, fmt.Errorf("previous attributes: %w", err)
		}
	}
	if e.GetType() == "" || e.GetObjectId() == "" {
		return nil, fmt.Errorf("an event of type %q about %q", e.GetType(), e.GetObjectId())
	}
	fields := slices.AppendSeq(make([]string, 0, len(before)), maps.Keys(before))
	slices.Sort(fields)
	after, err := json.Marshal(changed{Fields: fields, RequestID: e.GetRequestId(), Version: e.GetResourceVersion()})
	if err != nil {
		return nil, fmt.Errorf("changed fields: %w", err)
	}
	return &domain.Record{Object: e.GetObjectId(), After: after}, nil
}
