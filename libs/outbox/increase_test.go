package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

const objects = 40

// ordered checks that the first arrivals of each object are in order. It holds all messages while pause is locked.
type ordered struct {
	mu     sync.Mutex
	newest map[string]int64
	faults []string
	pause  sync.RWMutex
}

func (o *ordered) handle(_ context.Context, m kafkax.Message) error {
	o.pause.RLock()
	defer o.pause.RUnlock()
	time.Sleep(500 * time.Microsecond) // a partition with many messages takes longer than one with few
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.ResourceVersion > o.newest[e.ObjectId]+1 {
		o.faults = append(o.faults, fmt.Sprintf("%s: %d after %d", e.ObjectId, e.ResourceVersion, o.newest[e.ObjectId]))
	}
	o.newest[e.ObjectId] = max(o.newest[e.ObjectId], e.ResourceVersion)
	return nil
}

// sum returns the number of versions that arrived.
func (o *ordered) sum() (n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range o.newest {
		n += v
	}
	return n
}

// load writes numbered events of all objects until stop, which returns how many it wrote.
func load(t *testing.T, db *pgtest.DB) (stop func() int64) {
	t.Helper()
	var writers sync.WaitGroup
	var mu sync.Mutex
	var total int64
	end := make(chan struct{})
	for w := range 4 {
		ctx := pgtest.Ctx(t, caller.Live)
		writers.Go(func() {
			for v := int64(1); ; v++ {
				for i := w; i < objects; i += 4 {
					if err := add(ctx, db.App, fmt.Sprintf("cu_%d", i), v); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					total++
					mu.Unlock()
				}
				select {
				case <-end:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return func() int64 { close(end); writers.Wait(); return total }
}

// owner opens the database in the role that migrates.
func owner(t *testing.T, db *pgtest.DB) *pg.DB {
	t.Helper()
	own, err := pg.Open(t.Context(), db.OwnerURL, pg.Options{MaxConns: 1, Background: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	return own
}

// run runs work in the background until the test ends.
func run(t *testing.T, work func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// stream is an outbox whose events two relays send to a topic of four partitions, which two members of a group read.
func stream(t *testing.T) (*pgtest.DB, *ordered, outbox.Increase) {
	t.Helper()
	return streamThrough(t, kafkatest.Any(t))
}

func streamThrough(t *testing.T, brokers []string) (*pgtest.DB, *ordered, outbox.Increase) {
	t.Helper()
	db := pgtest.New(t, nil)
	got := &ordered{newest: map[string]int64{}}
	c := kafkax.Cluster{Brokers: brokers, Prefix: kafkatest.Prefix(t)}
	topics := []kafkax.Topic{{Name: "customers", Partitions: 4}, {Name: kafkax.DeadLetterTopic("readers")}}
	if err := kafkax.EnsureTopics(t.Context(), c, topics); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	for range 2 {
		writer := kafkax.NewWriter(c, topics...)
		t.Cleanup(func() { _ = writer.Close() })
		run(t, outbox.NewRelay(db.Worker, writer, log, nil).Run)
		run(t, (&kafkax.Consumer{Cluster: c, Group: "readers", Topics: []string{"customers"}, Handle: got.handle, Log: log}).Run)
	}
	return db, got, outbox.Increase{
		DB: owner(t, db), Cluster: c, Topic: "customers", Groups: []string{"readers"}, Partitions: 16, Wait: 20 * time.Second, Log: log,
	}
}

// Partitions are added to a topic under load, while its readers have messages that they have not handled. Every event arrives, and
// those of each object in order. Without the wait for the readers, a new partition overtakes an old one.
func TestAnIncreasePreservesTheOrderOfObjects(t *testing.T) {
	t.Parallel()
	db, got, increase := stream(t)
	stop := load(t, db)
	await(t, "the first events", func() bool { return got.sum() > 2*objects })
	got.pause.Lock()
	time.Sleep(300 * time.Millisecond) // messages wait in the old partitions
	var result error
	done := make(chan struct{})
	go func() { defer close(done); result = increase.Run(t.Context()) }()
	time.Sleep(6500 * time.Millisecond) // the readers find new partitions within five seconds
	select {
	case <-done:
		t.Error("the increase did not wait for the readers")
	default:
	}
	got.pause.Unlock()
	if <-done; result != nil {
		t.Fatal(result)
	}
	before := got.sum()
	await(t, "events after the increase", func() bool { return got.sum() > before+5*objects })
	total := stop()
	await(t, "all events", func() bool { return got.sum() == total && left(t, db) == 0 })
	if len(got.faults) > 0 {
		t.Errorf("%d events overtook others: %v", len(got.faults), got.faults[:min(3, len(got.faults))])
	}
	if n, err := kafkax.Partitions(t.Context(), increase.Cluster, "customers"); n != 16 || err != nil {
		t.Errorf("%d partitions, %v", n, err)
	}
	if err := increase.Run(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	increase.Partitions = 8
	if err := increase.Run(t.Context()); !errors.Is(err, outbox.ErrFewer) {
		t.Errorf("fewer: %v", err)
	}
}

// If the readers do not handle all messages in time, keys stay where they were, although the topic has more partitions. Events
// continue to arrive, and the increase can be repeated.
func TestAnIncreaseGivesUpOnBlockedReaders(t *testing.T) {
	t.Parallel()
	db, got, increase := stream(t)
	stop := load(t, db)
	await(t, "the first events", func() bool { return got.sum() > objects })
	got.pause.Lock()
	time.Sleep(300 * time.Millisecond)
	increase.Wait = 0
	if err := increase.Run(t.Context()); !errors.Is(err, outbox.ErrBacklog) {
		t.Errorf("with blocked readers: %v", err)
	}
	got.pause.Unlock()
	total := stop()
	await(t, "all events", func() bool { return got.sum() == total && left(t, db) == 0 })
	increase.Wait = 20 * time.Second
	if err := increase.Run(t.Context()); err != nil || len(got.faults) > 0 {
		t.Errorf("again: %v, faults %v", err, got.faults)
	}
}

// slow is a broker whose responses take between 0 and 4 ms.
type slow struct{ topic }

func (s *slow) Produce(ctx context.Context, msgs ...kafkax.Message) error {
	time.Sleep(rand.N(4 * time.Millisecond))
	return s.topic.Produce(ctx, msgs...)
}

// The number of relay partitions changes again and again while rows wait, and several relays run at once.
// Each event is sent once, in order: no two relays send the rows of one object.
func TestRelaysOfAllNumbersExcludeEachOther(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	own := owner(t, db)
	broker := &slow{}
	for range 3 {
		run(t, outbox.NewRelay(db.Worker, broker, slog.New(slog.DiscardHandler), nil).Run)
	}
	stop := load(t, db)
	for _, n := range []int{128, 8, 1024, 64, 16, 256, 32, 512, 64} {
		if err := outbox.SetRelays(t.Context(), own, n); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	total := stop()
	await(t, "an empty outbox", func() bool { return left(t, db) == 0 })
	var sent int64
	for id, versions := range broker.versions(t) {
		sent += int64(len(versions))
		if !slices.IsSorted(versions) || versions[len(versions)-1] != int64(len(versions)) {
			t.Errorf("%s: %v", id, versions)
		}
	}
	if sent != total {
		t.Errorf("%d of %d events", sent, total)
	}
}

func TestRelayPartitionsAreMultiplesOfEight(t *testing.T) {
	t.Parallel()
	own := owner(t, pgtest.New(t, nil))
	for _, n := range []int{0, 4, 12, 1032, -8} {
		if err := outbox.SetRelays(t.Context(), own, n); err == nil {
			t.Errorf("%d was accepted", n)
		}
	}
}

// statements counts what a pool sends.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) { s.n.Add(1) }
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// An idle relay polls once a second, with the same few statements for every number of partitions.
func TestIdleRelaysCostTheSameWithMorePartitions(t *testing.T) {
	t.Parallel()
	const relays, seconds, perPoll = 4, 3, 4 // begin, two queries, commit
	db := pgtest.New(t, nil)
	own := owner(t, db)
	count := &statements{}
	worker, err := pg.Open(t.Context(), db.WorkerURL, pg.Options{MaxConns: relays, Background: true, Tracer: count})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Close)
	for range relays {
		run(t, outbox.NewRelay(worker, &topic{}, slog.New(slog.DiscardHandler), nil).Run)
	}
	time.Sleep(2 * time.Second) // until they poll once a second
	for _, n := range []int{8, 64, 1024} {
		if err := outbox.SetRelays(t.Context(), own, n); err != nil {
			t.Fatal(err)
		}
		before := count.n.Load()
		time.Sleep(seconds * time.Second)
		sent := count.n.Load() - before
		t.Logf("%d partitions: %.1f statements a second of %d relays", n, float64(sent)/seconds, relays)
		if sent > relays*(seconds+1)*perPoll || sent == 0 {
			t.Errorf("%d partitions: %d statements in %d s", n, sent, seconds)
		}
	}
}
