package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// InsertErasure records that the personal data of an object was erased. It waits for running intakes that cannot see the record
// yet, so that the erasure finds their events in the log.
func InsertErasure(ctx context.Context, tx pg.Tx, objectID string, until time.Time) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('erasures'))`); err != nil {
		return fmt.Errorf("wait for running intakes: %w", err)
	}
	return pg.Exec(ctx, tx, "insert erasure", `insert into erasures (tenant_id, livemode, object_id, expires_at) values (@tenant, @live, @object, @until)
		on conflict (tenant_id, livemode, object_id) do update set expires_at = excluded.expires_at`, pg.Args{"object": objectID, "until": until})
}

// Erased returns the indexes of the events about objects whose personal data was erased. No erasure can be recorded until the
// transaction ends. tx has the worker role.
func Erased(ctx context.Context, tx pg.Tx, events []domain.Event) (map[int]bool, error) {
	var indexes []int
	b := &pgx.Batch{}
	b.Queue(`select pg_advisory_xact_lock_shared(hashtext('erasures'))`)
	b.Queue(`
		select n::int - 1 from unnest($1::uuid[], $2::boolean[], $3::text[]) with ordinality as o(tenant_id, livemode, object_id, n)
		where exists (select from erasures e where (e.tenant_id, e.livemode, e.object_id) = (o.tenant_id, o.livemode, o.object_id))`,
		pg.Column(events, func(e domain.Event) [16]byte { return e.Tenant.UUID() }),
		pg.Column(events, func(e domain.Event) bool { return e.Livemode }),
		pg.Column(events, func(e domain.Event) string { return e.ObjectID }), // its snapshot is taken after the lock
	).Query(pg.ListInto(&indexes, pgx.RowTo[int]))
	if err := pg.Send(ctx, tx, b, "look for erasures"); err != nil {
		return nil, err
	}
	out := map[int]bool{}
	for _, i := range indexes {
		out[i] = true
	}
	return out, nil
}

// AttemptedDeliveries returns the deliveries of events for which an attempt was made.
func AttemptedDeliveries(ctx context.Context, tx pg.Tx, events []domain.StoredEvent) ([]domain.DeliveryID, error) {
	return pg.Many(ctx, tx, pgx.RowTo[domain.DeliveryID], `
		select id from deliveries where tenant_id = @tenant and livemode = @live and event_id = any(@events) and attempts <> '[]'`,
		pg.Args{"events": pg.Column(events, func(e domain.StoredEvent) [16]byte { return e.ID.UUID() })})
}
