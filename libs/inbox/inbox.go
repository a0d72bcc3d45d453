// Package inbox makes a consumer handle each event once: it writes a row in the transaction of the effect.
package inbox

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

// Lifetime is longer than Kafka's retention (7 days at most) and a redrive after it.
const Lifetime = 30 * 24 * time.Hour

// Once records the event for the consumer and reports whether it is new. The caller in ctx must have the tenant and mode of the
// event.
func Once(ctx context.Context, tx pg.Tx, consumer string, id ids.Event) (bool, error) {
	c, err := caller.Require(ctx)
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

// Sweep deletes expired rows. db has the worker role.
func Sweep(ctx context.Context, db *pg.DB) error {
	return pg.SweepExpired(ctx, db, "inbox")
}
