package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { w.do(ctx, "PATCH", path, fmt.Sprintf(`{"phone":"%d"}`, i)).is(200) })
	}
	all.Wait()
	events := w.Events()
	if len(events) != 21 {
		t.Fatalf("%d events, want one per change", len(events))
	}
	for i, e := range events {
		if e.ResourceVersion != int64(i)+1 {
			t.Errorf("event %d has version %d", i, e.ResourceVersion)
		}
	}
	last := w.do(ctx, "GET", path, "").is(200)
	if string(last.Body) != string(events[20].Object) {
		t.Errorf("the last event is not what is there:\n%s\n%s", events[20].Object, last.Body)
	}
}

func TestOneOfManyIfMatchWins(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	var statuses [20]int
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			statuses[i] = w.do(ctx, "PATCH", path, fmt.Sprintf(`{"phone":"%d"}`, i), `If-Match: "1"`).Status
		})
	}
	all.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	if count[200] != 1 || count[412] != 19 {
		t.Errorf("got %v", count)
	}
}

func TestEraseAmidChanges(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for range 5 {
		path := "/customers/" + w.create(ctx, "").ID
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				a := w.do(ctx, "PATCH", path, fmt.Sprintf(`{"company":"Trace%d","metadata":{"k":"v%d"}}`, i, i), header(fmt.Sprintf("Idempotency-Key: %s%d", path, i)))
				if a.Status != 200 && a.Status != 404 {
					t.Errorf("got %d %s", a.Status, a.Body)
				}
			})
		}
		all.Go(func() { w.do(ctx, "DELETE", path, "").is(204) })
		all.Wait()
	}
	for _, sql := range []string{
		`select count(*) from customers where company is not null or metadata is not null`,
		`select count(*) from customer_words`, `select count(*) from customer_metadata`, `select count(*) from idempotency_keys where encode(body, 'escape') like '%Trace%'`,
		`select count(*) from outbox where encode(message, 'escape') like '%Trace%'`,
	} {
		if n := w.Count(sql); n != 0 {
			t.Errorf("%d left: %s", n, sql)
		}
	}
	if got := w.Types(); !strings.HasSuffix(got, " erased updated") {
		t.Errorf("an event comes after the last erasure: %s", got)
	}
}

// TestFailureLeavesNothing checks that a failure at any step leaves no row, event or stored key.
func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, "")
	for _, broken := range []string{`customer_words`, `outbox`, `idempotency_keys`} {
		w.Exec(`alter table ` + broken + ` add column broken int not null default 1 / (current_setting('app.tenant_id', true) is null)::int`)
		w.do(ctx, "POST", "/customers", ann, "Idempotency-Key: k").is(500, "internal_error")
		w.do(ctx, "PATCH", "/customers/"+c.ID, `{"phone":"1"}`, "Idempotency-Key: l").is(500, "internal_error")
		w.Exec(`alter table ` + broken + ` drop column broken`)
	}
	if n := w.Count(`select count(*) from customers`); n != 1 || w.Types() != "created" || w.wakes.Load() != 1 {
		t.Errorf("%d rows, events %q, %d wakes", n, w.Types(), w.wakes.Load())
	}
	if got := w.do(ctx, "GET", "/customers/"+c.ID, "").is(200).customer(); got.Version != 1 {
		t.Errorf("changed: %+v", got)
	}
	w.do(ctx, "POST", "/customers", ann, "Idempotency-Key: k").is(201)
}
