// Package inbox lets a consumer take each event once: its row is written in the transaction of the effect.
package inbox

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

// Lifetime outlives Kafka's retention (7 days at most) and a redrive after it.
const Lifetime = 30 * 24 * time.Hour

// Once records the event for the consumer and reports whether it is the first time. The context carries
// the tenant and mode of the event.
func Once(ctx context.Context, tx pg.Tx, consumer string, id ids.Event) (bool, error) {
	c, err := caller.From(ctx)
	if err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `
		insert into inbox (tenant_id, livemode, consumer, event_id, expires_at) values ($1, $2, $3, $4, $5)
		on conflict do nothing`, c.Tenant, c.Live(), consumer, id, time.Now().Add(Lifetime))
	if err != nil {
		return false, fmt.Errorf("inbox: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Sweep deletes rows past their life. db has the worker role.
func Sweep(ctx context.Context, db *pg.DB) error {
	return pg.SweepExpired(ctx, db, "inbox")
}
