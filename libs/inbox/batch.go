package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// Event is an event of any tenant and mode.
type Event struct {
	Tenant   ids.Tenant
	Livemode bool
	ID       ids.Event
}

// Of returns the id, tenant and mode of e. An event without them is poison.
func Of(e *eventsv1.Event) (Event, error) {
	id, err := ids.Parse[ids.EventPrefix](e.GetId())
	if err != nil {
		return Event{}, kafkax.Poison(fmt.Errorf("event id %q: %w", e.GetId(), err))
	}
	tenant, err := ids.Parse[ids.TenantPrefix](e.GetTenantId())
	if err != nil {
		return Event{}, kafkax.Poison(fmt.Errorf("tenant id %q: %w", e.GetTenantId(), err))
	}
	return Event{Tenant: tenant, Livemode: e.GetLivemode(), ID: id}, nil
}

// OnceEach is Once for the events of a batch in one statement. It returns the events that are new; those of an
// erased tenant are not. tx has the worker role, which
// needs the grant to insert into inbox. Transactions that can contain the same event must first acquire another lock in a fixed
// order. Otherwise they could lock the same rows in different orders and deadlock.
func OnceEach(ctx context.Context, tx pg.Tx, consumer string, events []Event) (map[Event]bool, error) {
	tenants, modes, list := make([][16]byte, len(events)), make([]bool, len(events)), make([][16]byte, len(events))
	for i, e := range events {
		tenants[i], modes[i], list[i] = e.Tenant.UUID(), e.Livemode, e.ID.UUID()
	}
	added, err := pg.Many(ctx, tx, pgx.RowToStructByPos[Event], `
		insert into inbox (tenant_id, livemode, consumer, event_id, expires_at)
		select tenant_id, livemode, $4, event_id, $5 from unnest($1::uuid[], $2::boolean[], $3::uuid[]) e (tenant_id, livemode, event_id)
		where not exists (select from tenant_erasures erased where erased.tenant_id = e.tenant_id)
		on conflict do nothing returning tenant_id, livemode, event_id`, tenants, modes, list, consumer, time.Now().Add(Lifetime))
	if err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	fresh := make(map[Event]bool, len(added))
	for _, e := range added {
		fresh[e] = true
	}
	return fresh, nil
}
