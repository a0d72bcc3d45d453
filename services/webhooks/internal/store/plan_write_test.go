package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// Each write of a tenant, planned as the app role under row-level security, reads about as many rows as it changes.
func TestWritesOfATenantReadWhatTheyChange(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx := pgtest.Ctx(t, caller.Live)
	endpoint, object := fill(t, db, caller.FromContext(ctx))
	queued(t, db)
	var events []domain.StoredEvent
	var delivery domain.DeliveryID
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		if events, err = store.EventsOf(ctx, tx, object, ids.Event{}, 10, 1<<20); err != nil {
			return err
		}
		delivery, err = pg.One(ctx, tx, pgx.RowTo[domain.DeliveryID], pgx.ErrNoRows, `
			select id from deliveries where tenant_id = @tenant and livemode = @live and event_id = @event`, pg.Args{"event": events[5].ID})
		return err
	})
	if err != nil || len(events) != 10 {
		t.Fatal(len(events), err)
	}
	erased := make([]store.ErasedBody, len(events))
	for i, e := range events {
		erased[i] = store.ErasedBody{ID: e.ID, Body: e.Body}
	}
	now, queue := time.Now(), &store.Queue{Wake: func() {}}
	for name, write := range map[string]func(ctx context.Context, tx pg.Tx) error{
		"events of an object": func(ctx context.Context, tx pg.Tx) error {
			_, err := store.EventsOf(ctx, tx, object, events[4].ID, 10, 1<<20)
			return err
		},
		"attempted deliveries": func(ctx context.Context, tx pg.Tx) error {
			_, err := store.AttemptedDeliveries(ctx, tx, events)
			return err
		},
		"erase": func(ctx context.Context, tx pg.Tx) error { return store.Erase(ctx, tx, erased) },
		"lock a delivery": func(ctx context.Context, tx pg.Tx) error {
			_, err := store.DeliveryForUpdate(ctx, tx, endpoint, delivery)
			return err
		},
		"test": func(ctx context.Context, tx pg.Tx) error {
			e := domain.Event{ID: events[0].ID, Type: events[0].Type}
			return queue.AddDelivery(ctx, tx, endpoint, ids.New[domain.DeliveryPrefix](), e, now)
		},
		"replay": func(ctx context.Context, tx pg.Tx) error {
			from := events[0].ID.Time()
			_, err := queue.Replay(ctx, tx, store.Replay{Endpoint: endpoint, Types: []string{"booking.updated"}, From: from, To: from.Add(time.Hour)}, now, 100)
			return err
		},
		"retire secrets": func(ctx context.Context, tx pg.Tx) error { return store.RetireSecrets(ctx, tx, endpoint, now) },
	} {
		for _, mode := range pgtest.PlanModes {
			plan := pgtest.Explain(t, ctx, db, mode, write)
			if most := 400.0; plan.Read() > most {
				t.Errorf("%s, %s: reads %.0f of %d rows\n%s", name, mode, plan.Read(), stored, plan)
			}
		}
	}
}
