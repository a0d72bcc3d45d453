package outbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/memtest"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// sizes is a slow broker that records the sizes of batches of messages.
type sizes struct {
	mu      sync.Mutex
	batches [][]int
	keys    []string
}

func (p *sizes) Produce(_ context.Context, msgs ...kafkax.Message) error {
	time.Sleep(10 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	var batch []int
	for _, m := range msgs {
		batch = append(batch, len(m.Value))
		p.keys = append(p.keys, m.Key)
	}
	p.batches = append(p.batches, batch)
	return nil
}

// put writes an event of each length, in their order.
func put(t *testing.T, db *pgtest.DB, lengths ...int) {
	t.Helper()
	for i, n := range lengths {
		object := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), n-2)...), '"')
		err := db.App.Tx(pgtest.Ctx(t, caller.Live), func(ctx context.Context, tx pg.Tx) error {
			return outbox.Add(ctx, tx, outbox.Event{Type: "customer.updated", Topic: "customers", AggregateID: fmt.Sprintf("cu_%03d", i), Object: object})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// relayAll runs one relay until no event waits.
func relayAll(t *testing.T, db *pgtest.DB, p outbox.Producer, batchBytes int) {
	t.Helper()
	relay := outbox.NewRelay(db.Worker, p, slog.New(slog.DiscardHandler), nil)
	if batchBytes > 0 {
		relay.BatchBytes = batchBytes
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	await(t, "an empty outbox", func() bool { return left(t, db) == 0 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A full batch of the largest events that the contract allows fits into a small pod. The test is not parallel, because it measures
// the memory of the whole process.
func TestLargestEventsFitIntoThePod(t *testing.T) {
	const largest, events, limit = 631 << 10, 500, 48 << 20
	db := pgtest.New(t, nil)
	put(t, db, slices.Repeat([]int{largest}, events)...)
	var broker sizes
	memtest.Under(t, limit, func() { relayAll(t, db, &broker, 0) })
	if len(broker.keys) != events {
		t.Errorf("%d events came", len(broker.keys))
	}
}

// A batch does not exceed its bytes. A larger event is sent alone. No event is lost and none is overtaken.
func TestABatchIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	db := pgtest.New(t, nil)
	lengths := []int{50_000, 3000, 3000, 3000, 3000, 20_000, 100, 100, 9000, 30_000}
	put(t, db, lengths...)
	var broker sizes
	relayAll(t, db, &broker, limit)
	if len(broker.keys) != len(lengths) || !slices.IsSorted(broker.keys) {
		t.Errorf("events came as %v", broker.keys)
	}
	if len(broker.batches) > 7 {
		t.Errorf("batches are smaller than they may be: %v", broker.batches)
	}
	for _, batch := range broker.batches {
		sum := 0
		for _, n := range batch {
			sum += n
		}
		if sum > limit && len(batch) > 1 {
			t.Errorf("a batch of %v bytes", batch)
		}
	}
}
