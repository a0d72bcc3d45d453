package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// topic is a broker that stores what it acknowledged. It can fail after it stored a batch, like a broker that crashes before
// it responds.
type topic struct {
	mu       sync.Mutex
	messages []kafkax.Message
	fail     func() bool
}

func (p *topic) Produce(_ context.Context, msgs ...kafkax.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, msgs...)
	if p.fail != nil && p.fail() {
		return errors.New("the response was lost")
	}
	return nil
}

func (p *topic) versions(t *testing.T) map[string][]int64 {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string][]int64{}
	for _, m := range p.messages {
		e, err := outbox.Decode(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		out[e.ObjectId] = append(out[e.ObjectId], e.ResourceVersion)
	}
	return out
}

func add(ctx context.Context, db *pg.DB, object string, version int64) error {
	return db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return outbox.Add(ctx, tx, outbox.Event{
			Type: "customer.updated", Topic: "customers", AggregateID: object, Version: version,
			Object: json.RawMessage(`{"a":"<&>"}`),
		})
	})
}

func left(t *testing.T, db *pgtest.DB) int {
	t.Helper()
	var n int
	err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, `select count(*) from outbox`)
		if err != nil {
			return err
		}
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestARolledBackEventIsNeverSent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	boom := errors.New("boom")
	err := db.App.Tx(pgtest.Ctx(t, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		if err := outbox.Add(ctx, tx, outbox.Event{Type: "customer.created", Topic: "customers", AggregateID: "cu_1"}); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) || left(t, db) != 0 {
		t.Fatalf("err %v, rows %d", err, left(t, db))
	}
}

// Relays are stopped at random, acknowledgments are lost, and two relays run at the same time. Every event still arrives, and the
// first arrivals of each object are in order.
func TestNoEventIsLostAndObjectsStayInOrder(t *testing.T) {
	t.Parallel()
	const objects, changes = 20, 15
	db := pgtest.New(t, nil)
	calls := 0
	broker := &topic{fail: func() bool { calls++; return calls%5 == 0 }}
	ctx, stop := context.WithCancel(t.Context())
	var relays, writers sync.WaitGroup
	for range 2 {
		relays.Go(func() {
			for ctx.Err() == nil { // a relay runs for 30 ms, then the next one takes over
				life, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
				_ = outbox.NewRelay(db.Worker, broker, slog.New(slog.DiscardHandler), nil).Run(life)
				cancel()
			}
		})
	}
	for i := range objects {
		ctx := pgtest.Ctx(t, caller.Live)
		writers.Go(func() {
			for v := range changes {
				if err := add(ctx, db.App, fmt.Sprintf("cu_%d", i), int64(v+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	await(t, "an empty outbox", func() bool { return left(t, db) == 0 })
	stop()
	relays.Wait()
	got := broker.versions(t)
	for i := range objects {
		id := fmt.Sprintf("cu_%d", i)
		var newest int64
		for _, v := range got[id] {
			if v > newest+1 {
				t.Fatalf("%s: version %d arrived before %d: %v", id, v, newest+1, got[id])
			}
			newest = max(newest, v)
		}
		if newest != changes {
			t.Errorf("%s: %d of %d versions arrived", id, newest, changes)
		}
	}
}

func TestDecodeReturnsWhatWasAdded(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	ctx := pgtest.Ctx(t, caller.Live)
	if err := add(ctx, db.App, "cu_1", 7); err != nil {
		t.Fatal(err)
	}
	broker := &topic{}
	relay := outbox.NewRelay(db.Worker, broker, slog.New(slog.DiscardHandler), nil)
	run, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = relay.Run(run) }()
	await(t, "one message", func() bool { return len(broker.versions(t)) == 1 && left(t, db) == 0 })
	e, err := outbox.Decode(broker.messages[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	c := caller.FromContext(ctx)
	if e.TenantId != c.Tenant.String() || !e.Livemode || e.RequestId != c.RequestID || string(e.Object) != `{"a":"<&>"}` || string(e.PreviousAttributes) != `{}` {
		t.Errorf("got %v", e)
	}
	by, err := outbox.Caller("bookings", e)
	if err != nil || by.Tenant != c.Tenant || by.Mode != caller.Live || by.Credential != "svc:bookings" {
		t.Errorf("caller %+v, %v", by, err)
	}
	if _, err := ids.Parse[ids.EventPrefix](e.Id); err != nil || broker.messages[0].Key != "cu_1" || broker.messages[0].Topic != "customers" {
		t.Errorf("id %q, key %q, topic %q", e.Id, broker.messages[0].Key, broker.messages[0].Topic)
	}
	if _, err := outbox.Decode([]byte("no event")); !errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("nonsense gave %v, want poison", err)
	}
}
