package consume_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/logs/internal/domain"
	"holdfast.dev/services/logs/internal/store"
)

// day is a number of days before today, in UTC.
func day(before int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -before)
}

func count(ctx context.Context, at time.Time, class string, n int64) *eventsv1.RequestCount {
	c := caller.FromContext(ctx)
	tenant := c.Tenant.UUID()
	return &eventsv1.RequestCount{TenantUuid: tenant[:], Livemode: c.Live(), Day: int32(at.Unix() / 86400), Class: class, Requests: n}
}

// counted is a message of a gateway with counts.
func counted(t *testing.T, list ...*eventsv1.RequestCount) kafkax.Message {
	t.Helper()
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	raw, err := proto.Marshal(&eventsv1.RequestLogs{Counts: []*eventsv1.RequestCounts{{Id: id, Counts: list}}})
	if err != nil {
		t.Fatal(err)
	}
	return kafkax.Message{Topic: "requests", Value: raw}
}

// counts returns what is stored for the caller in ctx, by class.
func (w *world) counts(ctx context.Context, at time.Time) map[string]int64 {
	w.t.Helper()
	list, err := store.RequestCounts(ctx, w.db.App.Read(ctx), at)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]int64{}
	for _, c := range list {
		out[c.Class] = c.Requests
	}
	return out
}

func (w *world) seal(ctx context.Context, at time.Time) {
	w.t.Helper()
	if err := w.db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.SealRequestCounts(ctx, tx, at) }); err != nil {
		w.t.Error(err)
	}
}

// Each message is added once, however often and with whichever others it arrives, and each tenant and mode has its own counts.
func TestCountsAreAddedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Test)
	first := counted(t, count(a, day(0), "read", 5), count(a, day(0), "write", 2), count(b, day(0), "read", 7))
	second := counted(t, count(a, day(0), "read", 100), count(a, day(1), "read", 1000))
	w.handle(first, first)
	w.handle(second, first)
	w.handle(second)
	if got := w.counts(a, day(0)); got["read"] != 105 || got["write"] != 2 || len(got) != 2 {
		t.Errorf("today %v", got)
	}
	if got := w.counts(a, day(1)); got["read"] != 1000 || len(got) != 1 {
		t.Errorf("yesterday %v", got)
	}
	if got := w.counts(b, day(0)); got["read"] != 7 || len(got) != 1 {
		t.Errorf("another tenant %v", got)
	}
	if got := w.counts(pg.OtherMode(a), day(0)); len(got) != 0 {
		t.Errorf("the other mode %v", got)
	}
}

// A day that was measured does not change: requests of it that are counted later belong to the next day. Others are not concerned.
func TestSealedDaysDoNotChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Live)
	w.handle(counted(t, count(a, day(2), "read", 1), count(b, day(2), "read", 1)))
	w.seal(a, day(2))
	w.seal(a, day(3)) // does not unseal
	w.handle(counted(t, count(a, day(2), "read", 10), count(a, day(3), "read", 100), count(a, day(1), "read", 1000), count(b, day(2), "read", 10)))
	if got := w.counts(a, day(2)); got["read"] != 1 {
		t.Errorf("a sealed day %v", got)
	}
	if got := w.counts(a, day(1)); got["read"] != 1110 {
		t.Errorf("the next day %v", got)
	}
	if got := w.counts(b, day(2)); got["read"] != 11 {
		t.Errorf("another tenant %v", got)
	}
}

// While messages arrive, sealed days never change, and no request is lost.
func TestSealingRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Live)
	const writers, messages = 4, 25
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range messages {
				if err := w.HandleBatch(t.Context(), []kafkax.Message{counted(t, count(ctx, day(9), "read", 1))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sealed := map[int]int64{}
	for n := 9; n > 4; n-- {
		w.seal(ctx, day(n))
		sealed[n] = w.counts(ctx, day(n))["read"]
	}
	wg.Wait()
	total := int64(0)
	for n := 9; n >= 0; n-- {
		got := w.counts(ctx, day(n))["read"]
		if want, ok := sealed[n]; ok && got != want {
			t.Errorf("%d days ago: %d requests, were %d when it was sealed", n, got, want)
		}
		total += got
	}
	if total != writers*messages {
		t.Errorf("%d requests, want %d", total, writers*messages)
	}
}

// A day is sealed after the transactions that are adding counts to it, so its count contains them.
func TestSealingWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Live)
	c := caller.FromContext(ctx)
	sealed := make(chan int64, 1)
	err := w.db.Worker.SystemTx(t.Context(), func(tctx context.Context, tx pg.Tx) error {
		_, err := store.AddRequestCounts(tctx, tx, []domain.RequestCount{{TenantID: c.Tenant, Livemode: true, Day: day(2), Class: "read", Requests: 4}}, time.Now())
		go func() {
			w.seal(ctx, day(2))
			sealed <- w.counts(ctx, day(2))["read"]
		}()
		select {
		case n := <-sealed:
			t.Errorf("sealed with %d requests while others are being added", n)
			sealed <- n
		case <-time.After(300 * time.Millisecond):
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := <-sealed; n != 4 {
		t.Errorf("sealed with %d requests, want 4", n)
	}
}

// Counts of days that are too old or far in the future are skipped, and old ones are deleted.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Live)
	w.handle(counted(t, count(ctx, day(36), "read", 1), count(ctx, day(-2), "read", 1), count(ctx, day(34), "read", 1), count(ctx, day(0), "read", 0)))
	for before, want := range map[int]int64{36: 0, -2: 0, 34: 1, 0: 0} {
		if got := w.counts(ctx, day(before))["read"]; got != want {
			t.Errorf("%d days ago: %d, want %d", before, got, want)
		}
	}
	w.Intake.Now = func() time.Time { return time.Now().AddDate(0, 0, 2) }
	if err := w.Intake.Maintain(t.Context()); err != nil || len(w.counts(ctx, day(34))) != 0 {
		t.Errorf("after its time: %v, %v", w.counts(ctx, day(34)), err)
	}
}

// Counts without a tenant or an id are dead letters.
func TestCountsThatAreNoCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []*eventsv1.RequestCounts{{}, {Id: make([]byte, 16), Counts: []*eventsv1.RequestCount{{Requests: 1}}}} {
		raw, err := proto.Marshal(&eventsv1.RequestLogs{Counts: []*eventsv1.RequestCounts{c}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Handle(t.Context(), kafkax.Message{Value: raw}); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
