package consume

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
)

// Tenants handles the events of identity.
type Tenants struct{ App *app.Clocks }

// Handle is a kafkax.Handler. A tenant's events hold for both modes; of its test clock only test mode knows.
func (h *Tenants) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("bookings", e)
	if err != nil || e.GetType() != "tenant.updated" {
		return err
	}
	from.Mode = caller.Test
	var body internalapi.Tenant
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return kafkax.Poison(fmt.Errorf("tenant body: %w", err))
	}
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return kafkax.Poison(err)
	}
	clock := domain.TestClock{FrozenAt: body.Clock, Version: e.GetResourceVersion()}
	return h.App.ApplyEvent(caller.With(ctx, from), id, clock)
}
