package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

// Event is an event of any tenant and mode.
type Event struct {
	Tenant   ids.Tenant
	Livemode bool
	ID       ids.Event
}

// OnceEach is Once for the events of a batch in one statement, and returns those that are new. tx has the worker role, which
// needs the grant to insert into inbox. Transactions that can have an event in common must take another lock first, in an order
// of their own: two of them that lock the same rows in different orders would deadlock.
func OnceEach(ctx context.Context, tx pg.Tx, consumer string, events []Event) (map[Event]bool, error) {
	tenants, modes, list := make([][16]byte, len(events)), make([]bool, len(events)), make([][16]byte, len(events))
	for i, e := range events {
		tenants[i], modes[i], list[i] = e.Tenant.UUID(), e.Livemode, e.ID.UUID()
	}
	added, err := pg.Many(ctx, tx, pgx.RowToStructByPos[Event], `
		insert into inbox (tenant_id, livemode, consumer, event_id, expires_at)
		select tenant_id, livemode, $4, event_id, $5 from unnest($1::uuid[], $2::boolean[], $3::uuid[]) e (tenant_id, livemode, event_id)
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
