package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			e := explainWrite(t, db, ctx, mode, write)
			if most := 400.0; e.read > most {
				t.Errorf("%s, %s: reads %.0f of %d rows\n%s", name, mode, e.read, stored, e.plan)
			}
		}
	}
}

// explainWrite explains the statements of a write with a plan_cache_mode, and rolls them back.
func explainWrite(t *testing.T, db *pgtest.DB, ctx context.Context, mode string, write func(context.Context, pg.Tx) error) *explained {
	t.Helper()
	e := &explained{}
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('plan_cache_mode', $1, true)`, mode); err != nil {
			return err
		}
		e.tx = tx
		if err := write(ctx, explainedBatches{explainedTx{tx, e}}); !errors.Is(err, errExplained) {
			return fmt.Errorf("not explained: %w", err)
		}
		return errExplained
	})
	if !errors.Is(err, errExplained) {
		t.Fatal(err)
	}
	return e
}

// explainedBatches is a transaction whose reads and batches are explained.
type explainedBatches struct{ explainedTx }

// SendBatch implements pg.Tx.
func (b explainedBatches) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	sum := *b.e
	for _, q := range batch.QueuedQueries {
		one := &explained{tx: b.e.tx}
		if _, err := one.Query(ctx, q.SQL, q.Arguments...); !errors.Is(err, errExplained) { //nolint:sqlclosecheck // no rows come
			return explainedBatch{err: err}
		}
		sum.plan, sum.read = sum.plan+one.plan, sum.read+one.read
	}
	*b.e = sum
	return explainedBatch{err: errExplained}
}

// explainedBatch is the result of an explained batch: an error.
type explainedBatch struct {
	pgx.BatchResults
	err error
}

func (b explainedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }
func (b explainedBatch) Close() error                     { return b.err }
func (b explainedBatch) QueryRow() pgx.Row                { return explainedRow(b) }

// explainedRow is the row of such a batch.
type explainedRow explainedBatch

// Scan implements pgx.Row.
func (r explainedRow) Scan(...any) error { return r.err }
