// Package consume handles the messages from Kafka: events of other services that belong into the audit log.
package consume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// webhooks is the actor: the platform, by itself.
var webhooks = domain.Origin{Actor: "svc:webhooks", Source: "webhooks"}

// Webhooks handles the events of the webhooks service.
type Webhooks struct{ App *app.App }

// Handle is a kafkax.Handler. What cannot be read, or is of an unknown tenant, is poison; types that are not audited pass.
func (h *Webhooks) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("identity", e)
	if err != nil || e.GetType() != domain.EndpointFailing && e.GetType() != domain.EndpointDisabled {
		return err
	}
	r, err := record(e)
	if err != nil {
		return kafkax.Poison(err)
	}
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return kafkax.Poison(err)
	}
	err = h.App.RecordAudit(caller.With(ctx, from), id, r)
	if errors.Is(err, domain.ErrTenantNotFound) || unstorable(err) {
		return kafkax.Poison(err)
	}
	return err
}

// unstorable reports that Postgres will never take what it was given, such as text with a NUL in it.
func unstorable(err error) bool { return strings.HasPrefix(pg.Code(err), "22") }

// record is the event as the log holds it. The object is encoded anew: a number that jsonb would write in another way
// would break the chain.
func record(e *eventsv1.Event) (domain.Record, error) {
	var object internalapi.EndpointHealth
	if err := json.Unmarshal(e.GetObject(), &object); err != nil {
		return domain.Record{}, fmt.Errorf("endpoint health: %w", err)
	}
	if object.ID == "" || object.ID != e.GetObjectId() {
		return domain.Record{}, fmt.Errorf("an event of endpoint %q holds endpoint %q", e.GetObjectId(), object.ID)
	}
	if err := e.GetCreatedAt().CheckValid(); err != nil {
		return domain.Record{}, fmt.Errorf("created_at: %w", err)
	}
	after, err := json.Marshal(object)
	if err != nil {
		return domain.Record{}, fmt.Errorf("endpoint health: %w", err)
	}
	return domain.Record{
		At: e.GetCreatedAt().AsTime(), Actor: webhooks.Actor, Source: webhooks.Source,
		Action: e.GetType(), Object: object.ID, After: after,
	}, nil
}
