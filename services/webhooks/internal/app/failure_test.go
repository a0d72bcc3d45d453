package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/internal/view"
)

// A process is killed between the receiver's response and its commit. The delivery is attempted again when the claim expires, not
// before, with the same attempt number. A result that is written after that changes nothing.
func TestKilledBetweenResponseAndCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	w.ingest(w.ctx, 3)
	completeLate, n, err := w.dispatcher.Begin(t.Context())
	if err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if on := w.log(w.ctx, e.ID, store.DeliveryFilter{Status: domain.Delivering}); len(on) != 3 {
		t.Errorf("%d are shown as delivering", len(on))
	}
	if on := w.log(w.ctx, e.ID, store.DeliveryFilter{Status: domain.Pending}); len(on) != 0 {
		t.Errorf("%d are shown as pending", len(on))
	}
	w.Move(30*time.Second - time.Millisecond)
	if n := w.drain(); n != 0 {
		t.Fatalf("%d were attempted while they were claimed", n)
	}
	w.Move(time.Millisecond)
	if n := w.drain(); n != 3 {
		t.Fatalf("%d were attempted again", n)
	}
	if err := completeLate(); err != nil {
		t.Fatal(err)
	}
	for _, d := range w.log(w.ctx, e.ID, store.DeliveryFilter{}) {
		if d.Status != domain.Succeeded || len(d.Attempts) != 1 {
			t.Errorf("%s: %d attempts", d.Status, len(d.Attempts))
		}
	}
	for _, came := range w.receivers.got("") {
		if came.Headers["Service-Delivery-Attempt"] != "1" {
			t.Errorf("attempt %s", came.Headers["Service-Delivery-Attempt"])
		}
	}
}

// The same message arrives several times, in concurrent batches. It creates one event with one delivery.
func TestTheSameEventTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.endpoint(w.ctx, hook)
	var list []domain.Event
	for range 50 {
		list = append(list, w.event(w.ctx))
	}
	var all sync.WaitGroup
	for range 4 {
		mine := slices.Clone(list)
		rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		all.Go(func() {
			for batch := range slices.Chunk(mine, 10) {
				if err := w.intake.Ingest(context.Background(), batch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := w.drain(); n != 50 {
		t.Errorf("%d deliveries of 50 events", n)
	}
}

// Several processes deliver at the same time. Each delivery is made once, and the limits of no endpoint are exceeded.
func TestConcurrentProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Now()
	w.clock = &clock{at: start}
	w.dispatcher.Now = time.Now
	const events, flight, rate = 300, 4, 200
	var mu sync.Mutex
	now, most := map[string]int{}, map[string]int{}
	started := map[string][]time.Time{}
	for i := range 3 {
		url := fmt.Sprintf("http://receiver.test/%d", i)
		w.endpoint(w.ctx, url, limits(flight, rate))
		w.receivers.at(url, func(domain.Outgoing) domain.Response {
			mu.Lock()
			now[url]++
			most[url] = max(most[url], now[url])
			started[url] = append(started[url], time.Now())
			mu.Unlock()
			time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) // the response time of a receiver
			mu.Lock()
			now[url]--
			mu.Unlock()
			return domain.Response{Status: 200}
		})
	}
	w.ingest(w.ctx, events)
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		d := w.newDispatcher(box)
		d.Now = time.Now
		all.Go(func() {
			if err := d.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	await(t, "all deliveries", func() bool { return len(w.texts(`select '' from deliveries where status <> 'succeeded'`)) == 0 })
	cancel()
	all.Wait()
	seen := map[string]int{}
	for _, came := range w.receivers.got("") {
		seen[came.Headers["Service-Delivery-Id"]]++
	}
	if len(seen) != 3*events {
		t.Errorf("%d deliveries, want %d", len(seen), 3*events)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was made %d times", id, n)
		}
	}
	for url, n := range most {
		if n > flight {
			t.Errorf("%s had %d in flight", url, n)
		}
		if got := densest(started[url], time.Second); got > rate+rate/10 { // an attempt starts a little after its claim
			t.Errorf("%s got %d within a second", url, got)
		}
	}
}

// densest returns the maximum number of times within any window.
func densest(times []time.Time, window time.Duration) (most int) {
	slices.SortFunc(times, time.Time.Compare)
	first := 0
	for i, at := range times {
		for at.Sub(times[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A tenant with one event does not wait for a tenant with many endpoints and long queues. Neither does an endpoint wait for the
// long queues of other endpoints of its tenant.
func TestFairness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dispatcher.MaxConcurrency = 128
	other := w.caller(ids.New[ids.TenantPrefix](), caller.Test)
	for i := range 20 {
		w.endpoint(w.ctx, fmt.Sprintf("http://many.test/%d", i), limits(domain.DefaultInFlight, 5000))
	}
	w.endpoint(other, "http://few.test/")
	w.markFast()
	w.ingest(w.ctx, 60)
	w.Move(time.Second)
	w.ingest(other, 1)
	w.step()
	if n := len(w.receivers.got("http://few.test/")); n != 1 {
		t.Error("the event of the small tenant waits for those of the large one")
	}
	for i := range 20 {
		if n := len(w.receivers.got(fmt.Sprintf("http://many.test/%d", i))); n < 1 || n > 2 {
			t.Errorf("endpoint %d had %d of the first 32 attempts", i, n)
		}
	}
	more := 0
	for range 100 {
		w.Move(100 * time.Millisecond) // refused queues are ready again
		more += w.drain()
	}
	if more != 20*60-32 {
		t.Errorf("%d more", more)
	}
}

// While results cannot be written, no delivery is claimed, so none is sent twice afterwards.
func TestNothingIsSentTwiceWhileItCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.endpoint(w.ctx, hook)
	withLockTimeout, err := pg.Open(t.Context(), w.db.WorkerURL, pg.Options{LockTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer withLockTimeout.Close()
	w.dispatcher.Worker = withLockTimeout
	locked := make(chan struct{})
	w.receivers.at(hook, func(domain.Outgoing) domain.Response {
		<-locked // until the log is locked
		return domain.Response{Status: 200}
	})
	w.ingest(w.ctx, 5)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.dispatcher.Run(ctx) }()
	await(t, "five attempts", func() bool { return len(w.receivers.got("")) == 5 })
	err = w.db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `select from deliveries for update`); err != nil {
			return err
		}
		close(locked)
		time.Sleep(300 * time.Millisecond) // the first refused write
		w.Move(time.Hour)                  // all claims would have expired
		time.Sleep(500 * time.Millisecond) // a few more
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the log", func() bool { return len(w.texts(`select '' from deliveries where status = 'succeeded'`)) == 5 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(w.receivers.got("")); n != 5 {
		t.Errorf("%d attempts", n)
	}
}

// Erasing a customer removes the personal data from the events, from pending deliveries, and from the responses of receivers. Other
// customers do not change.
func TestErasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	w.receivers.at(hook, func(d domain.Outgoing) domain.Response { return domain.Response{Status: 500, Body: d.Body} }) // an echo
	list := w.ingest(w.ctx, 2)
	w.drain()
	customer, err := ids.Parse[ids.CustomerPrefix](list[0].ObjectID)
	if err != nil {
		t.Fatal(err)
	}
	again := func() idem.Response {
		t.Helper()
		for _, d := range w.log(w.ctx, e.ID, store.DeliveryFilter{}) {
			if d.EventID == list[0].ID {
				return w.retryOnce(e.ID, d.ID)
			}
		}
		t.Fatal("no delivery")
		return idem.Response{}
	}
	if retried := string(again().Body); !strings.Contains(retried, "Ada") {
		t.Fatalf("no response to erase: %s", retried)
	}
	if err := w.intake.EraseObject(w.ctx, customer.String()); err != nil {
		t.Fatal(err)
	}
	if r := again(); !r.Replayed || strings.Contains(string(r.Body), "Ada") || !strings.Contains(string(r.Body), `"response_body":null`) {
		t.Errorf("the stored response of a retry: %s", r.Body)
	}
	body := func(i int) string {
		t.Helper()
		stored, err := store.Event(w.ctx, w.db.App.Read(w.ctx), list[i].ID, w.Now())
		if err != nil {
			t.Fatal(err)
		}
		return string(stored.Body)
	}
	if erased := body(0); strings.Contains(erased, "Ada") || strings.Contains(erased, "a@b.c") || !strings.Contains(erased, customer.String()) {
		t.Errorf("erased: %s", erased)
	}
	if !strings.Contains(body(1), "Ada") {
		t.Error("another customer is erased too")
	}
	for _, d := range w.log(w.ctx, e.ID, store.DeliveryFilter{}) {
		if mine := d.EventID == list[0].ID; mine != (d.Attempts[0].ResponseBody == nil) {
			t.Errorf("event of the erased %v: response %v", mine, d.Attempts[0].ResponseBody)
		}
	}
	w.receivers.at(hook, nil)
	w.Move(2 * time.Minute)
	w.drain()
	for _, came := range w.receivers.got("")[2:] {
		if came.Headers["Service-Event-Id"] == list[0].ID.String() && strings.Contains(string(came.Body), "Ada") {
			t.Error("the person is still delivered")
		}
	}
	if err := w.intake.Ingest(w.ctx, list[:1]); err != nil || strings.Contains(body(0), "Ada") {
		t.Errorf("the event came again, and with it the person: %v", err)
	}
}

// retryOnce retries a delivery once, with an idempotency key, and returns the stored response.
func (w *world) retryOnce(endpoint domain.EndpointID, id domain.DeliveryID) idem.Response {
	w.t.Helper()
	ctx := idem.WithRequest(w.ctx, idem.Request{Key: "retry"})
	res, err := idemstore.Run(ctx, w.idempotency, func(ctx context.Context, tx pg.Tx) (domain.Delivery, error) {
		return w.deliveries.Retry(ctx, tx, endpoint, id)
	}, func(_ context.Context, d domain.Delivery) (idem.Response, error) {
		body, err := contract.Encode(view.Delivery(d, api.Test))
		return idem.Response{Status: 200, Resource: d.ID.String(), Body: body}, err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// An erasure reads at most a batch of bytes at a time, and erases all of a customer's events.
func TestErasureByBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.intake.BatchBytes = 2 * largest
	list := []domain.Event{w.large(w.ctx)}
	for range 4 {
		e := w.large(w.ctx)
		e.ObjectID, e.Object = list[0].ObjectID, list[0].Object
		list = append(list, e)
	}
	if err := w.intake.Ingest(w.ctx, list); err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[int]int{1: 1, 2 * largest: 3, 1 << 30: 5} { // the last one can exceed it
		err := w.db.App.Tx(w.ctx, func(ctx context.Context, tx pg.Tx) error {
			got, err := store.EventsOf(ctx, tx, list[0].ObjectID, ids.Event{}, 100, bytes)
			if len(got) != want {
				t.Errorf("%d bytes: %d events, want %d", bytes, len(got), want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	customer, err := ids.Parse[ids.CustomerPrefix](list[0].ObjectID)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.intake.EraseObject(w.ctx, customer.String()); err != nil {
		t.Fatal(err)
	}
	if left := w.texts(`select id::text from events where convert_from(body, 'UTF8') like '%"first_name":"Ada%'`); len(left) != 0 {
		t.Errorf("%d events still name the person", len(left))
	}
}

// The response to an attempt that is in flight while the person is erased is not stored.
func TestErasureWhileInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	w.receivers.at(hook, func(d domain.Outgoing) domain.Response { return domain.Response{Status: 500, Body: d.Body} }) // an echo
	list := w.ingest(w.ctx, 2)
	complete, n, err := w.dispatcher.Begin(t.Context())
	if err != nil || n != 2 {
		t.Fatal(n, err)
	}
	customer, err := ids.Parse[ids.CustomerPrefix](list[0].ObjectID)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.intake.EraseObject(w.ctx, customer.String()); err != nil {
		t.Fatal(err)
	}
	if err := complete(); err != nil {
		t.Fatal(err)
	}
	for _, d := range w.log(w.ctx, e.ID, store.DeliveryFilter{}) {
		if mine := d.EventID == list[0].ID; len(d.Attempts) != 1 || mine != (d.Attempts[0].ResponseBody == nil) {
			t.Errorf("event of the erased %v: %+v", mine, d.Attempts)
		}
	}
}

// Partitions are created and dropped as time passes. Events that are older than 30 days are not returned, even while their
// partition exists.
func TestPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.endpoint(w.ctx, hook)
	old := w.ingest(w.ctx, 1)[0]
	w.drain()
	shown := func() bool {
		_, err := store.Event(w.ctx, w.db.App.Read(w.ctx), old.ID, w.Now())
		return err == nil
	}
	for range 29 {
		w.Move(24 * time.Hour)
		if err := w.intake.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !shown() {
		t.Error("gone before its time")
	}
	w.Move(25 * time.Hour)
	if shown() {
		t.Error("shown after 30 days")
	}
	w.Move(7 * 24 * time.Hour)
	if err := w.intake.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	dropped, err := store.DropPartitions(t.Context(), w.db.OwnerURL, w.Now().Add(-domain.Retention), 0)
	if err != nil || len(dropped) == 0 {
		t.Fatal(dropped, err)
	}
	if left := w.texts(`select id::text from events union all select id::text from deliveries`); len(left) != 0 {
		t.Errorf("its partition is still there: %v", left)
	}
	if n := w.texts(`select count(*)::text from pg_inherits where inhparent = 'events'::regclass`); n[0] > "9" || len(n[0]) > 1 {
		t.Errorf("%s partitions", n)
	}
	if err := w.intake.Ingest(w.ctx, []domain.Event{old}); err != nil {
		t.Errorf("an old event: %v", err)
	}
	late := w.event(w.ctx)
	w.Move(-80 * 24 * time.Hour)
	if err := w.intake.Ingest(w.ctx, []domain.Event{late}); err == nil {
		t.Error("an event of the future was written")
	}
}

// Attempts in flight to a deleted endpoint complete, and the rest of its queue is swept.
func TestDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook, limits(2, domain.DefaultPerSecond))
	w.ingest(w.ctx, 5)
	complete, n, err := w.dispatcher.Begin(t.Context())
	if err != nil || n != 2 {
		t.Fatal(n, err)
	}
	err = w.db.App.Tx(w.ctx, func(ctx context.Context, tx pg.Tx) error { return w.endpoints.Delete(ctx, tx, e.ID, httpx.Match{}) })
	if err != nil {
		t.Fatal(err)
	}
	if err := complete(); err != nil {
		t.Fatal(err)
	}
	w.Move(time.Minute)
	if n := w.drain(); n != 0 {
		t.Errorf("%d attempts", n)
	}
	if err := w.intake.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.texts(`select delivery_id::text from queue union all select endpoint_id::text from endpoint_queues union all select id::text from endpoint_secrets`); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// A pass finds no more deliveries in a queue and makes it idle, while a transaction commits an event that is not in its snapshot.
// The next pass finds the event, and the event's transaction did not wait.
func TestNoDeliveryIsMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.endpoint(w.ctx, hook)
	w.ingest(w.ctx, 1)
	if n := w.drain(); n != 1 {
		t.Fatalf("%d attempts", n)
	}
	err := w.db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		for _, sql := range []string{`update endpoint_queues set ready_at = '-infinity'`, `update endpoint_queues set ready_at = 'infinity'`} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		w.ingest(w.ctx, 1)
		if n := w.drain(); n != 0 {
			t.Errorf("%d attempts while another transaction has locked the queue", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := w.drain(); n != 1 {
		t.Errorf("%d attempts after it", n)
	}
	if left := w.texts(`select id::text from wakeups`); len(left) != 0 {
		t.Errorf("wakeups are left: %v", left)
	}
}
