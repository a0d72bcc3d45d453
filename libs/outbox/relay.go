package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
)

// Producer writes messages. It returns when the brokers have acknowledged all of them.
type Producer interface {
	Produce(ctx context.Context, msgs ...kafkax.Message) error
}

const (
	batchSize = 500
	// gather is how long a woken relay waits for more commits, so that one produce call sends many events.
	gather  = 40 * time.Millisecond
	pollMin = 20 * time.Millisecond
	pollMax = time.Second // a commit of this process wakes its relay; a poll finds what another process left when it was killed
	backoff = time.Second
)

// Relay sends outbox rows to Kafka. Several relays may run: locks.go gives each partition one leader at a time. A row is deleted in
// the transaction that spans the produce call, so if a relay is killed, the next one sends the row. A message can arrive
// twice, but is never lost.
type Relay struct {
	DB       *pg.DB // worker role
	Producer Producer
	Log      *slog.Logger
	// BatchBytes limits the size of the messages in one batch, which are in memory until they are sent. A larger message is sent
	// alone.
	BatchBytes int

	wake chan struct{}
	age  prometheus.Gauge
	sent prometheus.Counter
}

// NewRelay registers the relay's metrics: the age of the oldest row and the rows sent.
func NewRelay(db *pg.DB, p Producer, log *slog.Logger, reg prometheus.Registerer) *Relay {
	r := &Relay{
		DB: db, Producer: p, Log: log, BatchBytes: kafkax.DefaultBatchBytes, wake: make(chan struct{}, 1),
		age:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "outbox_oldest_seconds", Help: "Age of the oldest event that has not been sent to Kafka."}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: "outbox_sent_total", Help: "Events acknowledged by Kafka."}),
	}
	if reg != nil {
		reg.MustRegister(r.age, r.sent)
	}
	return r
}

// Wake makes the relay read the table now. Call it after a commit. It never blocks.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run relays until ctx ends. It polls less often when there is nothing to do.
func (r *Relay) Run(ctx context.Context) error {
	wait := pollMin
	for {
		n, more, err := r.sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			r.Log.WarnContext(ctx, "events not published; trying again", "error", err)
			wait = backoff
		case n > 0:
			wait = pollMin
		default:
			wait = min(wait*2, pollMax)
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
			sleep(ctx, gather)
			wait = pollMin // another relay may hold the partition at this moment, without having read the row
		case <-time.After(wait):
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

type row struct {
	TenantID    [16]byte
	Livemode    bool
	ID          [16]byte
	Topic       string
	AggregateID string
	Message     []byte
	Traceparent string
	CreatedAt   time.Time
	Partitions  int // of the topic, for the key; 0: all that it has
	Waiting     int // waiting rows, including this one and those of later batches; can exceed batchSize
}

// sweep relays one batch of the partitions that this relay can lock. It returns the batch's size and whether more rows are waiting.
func (r *Relay) sweep(ctx context.Context) (n int, more bool, err error) {
	err = r.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		batch, err := lockBatch(ctx, tx, r.BatchBytes)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		r.age.Set(age(batch))
		if len(batch) == 0 {
			return nil
		}
		if err := r.Producer.Produce(ctx, column(batch, message)...); err != nil {
			return fmt.Errorf("produce: %w", err)
		}
		n = len(batch)
		more = batch[0].Waiting > n || n == batchSize
		// This commit need not wait for the disk: if a crash loses the deletion, the event is only sent again.
		tx.QueueAtCommit(`set local synchronous_commit = off`)
		tx.QueueAtCommit(`delete from outbox o using unnest($1::uuid[], $2::boolean[], $3::uuid[]) as gone(tenant_id, livemode, id)
			where o.tenant_id = gone.tenant_id and o.livemode = gone.livemode and o.id = gone.id`,
			column(batch, func(o row) [16]byte { return o.TenantID }), column(batch, func(o row) bool { return o.Livemode }),
			column(batch, func(o row) [16]byte { return o.ID }))
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	r.sent.Add(float64(n))
	return n, more, nil
}

func message(o row) kafkax.Message {
	return kafkax.Message{
		Topic: o.Topic, Key: o.AggregateID, Value: o.Message, Partitions: o.Partitions,
		Headers: map[string]string{"traceparent": o.Traceparent},
	}
}

// age returns the number of seconds that the oldest event has waited.
func age(batch []row) float64 {
	if len(batch) == 0 {
		return 0
	}
	return max(0, time.Since(batch[0].CreatedAt).Seconds())
}

func column[T any](batch []row, of func(row) T) []T {
	out := make([]T, len(batch))
	for i, o := range batch {
		out[i] = of(o)
	}
	return out
}
