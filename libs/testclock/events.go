package testclock

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"
)

// Events records the clocks from identity's events about tenants.
type Events struct {
	DB      *pg.DB
	Service string // the consumer's name in the inbox
}

// Handle is a kafkax.Handler. Events about a tenant belong to both modes, but its test clock exists only in test mode. Each event
// takes effect once, regardless of how often it arrives, and never restores an older state. The service's worker processes the rows
// that become due.
func (h *Events) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller(h.Service, e)
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
	return h.record(caller.With(ctx, from), id, Clock{FrozenAt: body.Clock, Version: e.GetResourceVersion()})
}

func (h *Events) record(ctx context.Context, event ids.Event, clock Clock) error {
	err := h.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, h.Service, event)
		if err != nil || !first {
			return err
		}
		return Put(ctx, tx, clock)
	})
	if err != nil {
		return fmt.Errorf("record test clock: %w", err)
	}
	return nil
}
