package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// InsertErasure notes that the person an object is about was erased. It waits until each intake that may not see this
// has ended: what they took in is there for the erasure to find.
func InsertErasure(ctx context.Context, tx pg.Tx, objectID string, until time.Time) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('erasures'))`); err != nil {
		return fmt.Errorf("wait for intakes: %w", err)
	}
	_, err := tx.Exec(ctx, `insert into erasures (object_id, expires_at) values ($1, $2)
		on conflict (tenant_id, livemode, object_id) do update set expires_at = excluded.expires_at`, objectID, until)
	if err != nil {
		return fmt.Errorf("insert erasure: %w", err)
	}
	return nil
}

// Erased tells which of the events are about an object whose person was erased, by their place. No erasure is noted
// until the transaction ends, which has the worker role.
func Erased(ctx context.Context, tx pg.Tx, events []domain.Event) (map[int]bool, error) {
	var (
		tenants [][16]byte
		live    []bool
		objects []string
	)
	for _, e := range events {
		tenants, live, objects = append(tenants, e.Tenant.UUID()), append(live, e.Livemode), append(objects, e.ObjectID)
	}
	b := &pgx.Batch{}
	b.Queue(`select pg_advisory_xact_lock_shared(hashtext('erasures'))`)
	b.Queue(`
		select n::int - 1 from unnest($1::uuid[], $2::boolean[], $3::text[]) with ordinality as o(tenant_id, livemode, object_id, n)
		where exists (select from erasures e where e.tenant_id = o.tenant_id and e.livemode = o.livemode and e.object_id = o.object_id)`,
		tenants, live, objects) // a snapshot of its own, taken once the lock is held
	res := tx.SendBatch(ctx, b)
	_, err := res.Exec()
	var places []int
	if err == nil {
		places, err = collect(res, pgx.RowTo[int])
	}
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("look for erasures: %w", err)
	}
	out := map[int]bool{}
	for _, place := range places {
		out[place] = true
	}
	return out, nil
}

// AttemptedDeliveries are the deliveries of events for which an attempt was made.
func AttemptedDeliveries(ctx context.Context, tx pg.Tx, events []domain.StoredEvent) ([]domain.DeliveryID, error) {
	id := make([][16]byte, len(events))
	for i, e := range events {
		id[i] = e.ID.UUID()
	}
	type found struct{ ID domain.DeliveryID }
	list, err := many[found](ctx, tx, `select id from deliveries where event_id = any($1) and attempts <> '[]'`, id)
	if err != nil {
		return nil, err
	}
	out := make([]domain.DeliveryID, len(list))
	for i, f := range list {
		out[i] = f.ID
	}
	return out, nil
}
