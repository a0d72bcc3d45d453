package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
)

// Producer writes messages and returns when the brokers have acknowledged all of them.
type Producer interface {
	Produce(ctx context.Context, msgs ...kafkax.Message) error
}

const (
	batchSize = 500
	pollMin   = 20 * time.Millisecond
	pollMax   = 250 * time.Millisecond
	backoff   = time.Second
)

// Relay moves outbox rows to Kafka. Several may run: an advisory lock gives each partition one leader.
// A row is deleted in the transaction that spans the produce call, so a relay killed at any point leaves
// the row to the next one: a message may come twice and is never lost.
type Relay struct {
	DB       *pg.DB // worker role
	Producer Producer
	Log      *slog.Logger

	wake chan struct{}
	age  prometheus.Gauge
	sent prometheus.Counter
}

// NewRelay registers the relay's metrics: the age of the oldest row and the rows sent.
func NewRelay(db *pg.DB, p Producer, log *slog.Logger, reg prometheus.Registerer) *Relay {
	r := &Relay{
		DB: db, Producer: p, Log: log, wake: make(chan struct{}, 1),
		age:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "outbox_oldest_seconds", Help: "Age of the oldest event that is not yet in Kafka."}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: "outbox_sent_total", Help: "Events acknowledged by Kafka."}),
	}
	if reg != nil {
		reg.MustRegister(r.age, r.sent)
	}
	return r
}

// Wake asks for a look at the table now; call it after a commit. It never blocks.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run relays until ctx ends. It polls more slowly while there is nothing to do.
func (r *Relay) Run(ctx context.Context) error {
	wait := pollMin
	for {
		n, err := r.sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			r.Log.WarnContext(ctx, "outbox relay", "error", err)
			wait = backoff
		case n > 0:
			wait = pollMin
		default:
			wait = min(wait*2, pollMax)
		}
		if n == batchSize {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-time.After(wait):
		}
	}
}

// sweep relays one batch of each partition that has rows and returns the largest batch.
func (r *Relay) sweep(ctx context.Context) (int, error) {
	type waiting struct {
		Hash int32
		Age  float64
	}
	var parts []waiting
	err := r.DB.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, `
			select g.hash, extract(epoch from clock_timestamp() - o.created_at)::float8 as age
			from generate_series(0, $1) as g(hash),
			     lateral (select created_at from outbox where hash = g.hash order by seq limit 1) o`, partitions-1)
		if err != nil {
			return err
		}
		parts, err = pgx.CollectRows(rows, pgx.RowToStructByName[waiting])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for events: %w", err)
	}
	most, oldest := 0, 0.0
	var failed error
	for _, p := range parts {
		oldest = max(oldest, p.Age)
		n, err := r.relay(ctx, p.Hash)
		most, failed = max(most, n), errors.Join(failed, err)
	}
	r.age.Set(oldest)
	return most, failed
}

type row struct {
	TenantID    [16]byte
	Livemode    bool
	ID          [16]byte
	Topic       string
	AggregateID string
	Message     []byte
	Traceparent string
}

func (r *Relay) relay(ctx context.Context, part int32) (int, error) {
	var n int
	err := r.DB.Worker(ctx, func(ctx context.Context, tx pg.Tx) error {
		batch, err := lockBatch(ctx, tx, part)
		if err != nil || len(batch) == 0 {
			return err
		}
		msgs := make([]kafkax.Message, len(batch))
		gone := &pgx.Batch{}
		for i, o := range batch {
			msgs[i] = kafkax.Message{
				Topic: o.Topic, Key: o.AggregateID, Value: o.Message,
				Headers: map[string]string{"traceparent": o.Traceparent},
			}
			gone.Queue(`delete from outbox where tenant_id = $1 and livemode = $2 and id = $3`, o.TenantID, o.Livemode, o.ID)
		}
		if err := r.Producer.Produce(ctx, msgs...); err != nil {
			return fmt.Errorf("produce: %w", err)
		}
		n = len(batch)
		return tx.SendBatch(ctx, gone).Close()
	})
	if err != nil {
		return 0, err
	}
	r.sent.Add(float64(n))
	return n, nil
}

// lockBatch takes the partition's lead for the transaction and reads its next rows; none when another leads.
func lockBatch(ctx context.Context, tx pg.Tx, part int32) ([]row, error) {
	rows, err := tx.Query(ctx, `select pg_try_advisory_xact_lock(hashtext('outbox'), $1)`, part)
	if err != nil {
		return nil, err
	}
	leads, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err != nil || !leads {
		return nil, err
	}
	rows, err = tx.Query(ctx, `
		select tenant_id, livemode, id, topic, aggregate_id, message, traceparent
		from outbox where hash = $1 order by seq limit $2`, part, batchSize)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[row])
}
