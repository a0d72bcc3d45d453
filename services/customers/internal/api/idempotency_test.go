package api_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

const ann = `{"first_name":"Ann","email":"a@b.co"}`

func TestSameKeyAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	responses := make([]response, 20)
	var all sync.WaitGroup
	for i := range responses {
		all.Go(func() { responses[i] = w.do(ctx, "POST", "/customers", ann, "Idempotency-Key: once") })
	}
	all.Wait()
	fresh := 0
	for _, a := range responses {
		if a.is(201); string(a.Body) != string(responses[0].Body) || a.Header.Get("Location") != responses[0].Header.Get("Location") ||
			a.Header.Get("ETag") != `"1"` {
			t.Errorf("responses differ:\n%s\n%s", a.Body, responses[0].Body)
		}
		if a.Header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	if n := w.Count(`select count(*) from customers`); n != 1 || fresh != 1 || w.Types() != "created" {
		t.Errorf("%d rows, %d fresh responses, events %q", n, fresh, w.Types())
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const key = "Idempotency-Key: k"
	first := w.do(ctx, "POST", "/customers", ann, key).is(201)
	path := "/customers/" + first.customer().ID
	w.do(ctx, "PATCH", path, `{"first_name":"Bea"}`).is(200)
	again := w.do(ctx, "POST", "/customers", ` { "email" : "a@b.co" , "first_name" : "Ann" } `, key).is(201)
	if string(again.Body) != string(first.Body) || again.Header.Get("Idempotent-Replayed") != "true" ||
		again.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("not the first response: %s", again.Body)
	}
	w.do(ctx, "POST", "/customers", `{"first_name":"Ann","email":"other@b.co"}`, key).is(422, "idempotency_mismatch", "Idempotency-Key")
	w.do(ctx, "POST", "/customers", `{"first_name":""}`, key).is(422, "idempotency_mismatch", "Idempotency-Key")
	w.do(ctx, "PATCH", path, `{"first_name":"Cec"}`, key).is(422, "idempotency_mismatch", "Idempotency-Key")

	patch := w.do(ctx, "PATCH", path, `{"phone":"1"}`, "Idempotency-Key: p", `If-Match: "2"`).is(200)
	if got := w.do(ctx, "PATCH", path, `{"phone":"1"}`, "Idempotency-Key: p", `If-Match: "2"`).is(200); string(got.Body) != string(patch.Body) {
		t.Errorf("a PATCH replays its response, got %s", got.Body)
	}
	if got := w.Types(); got != "created updated updated" {
		t.Errorf("events: %s", got)
	}
}

func TestKeysOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	c := caller.FromContext(ctx)
	second := c
	second.Credential = "key_second"
	for _, who := range []context.Context{ctx, caller.With(ctx, second), pg.OtherMode(ctx), pgtest.Ctx(t, caller.Test)} {
		if a := w.do(who, "POST", "/customers", ann, "Idempotency-Key: same").is(201); a.Header.Get("Idempotent-Replayed") != "" {
			t.Error("a key belongs to tenant, mode and credential")
		}
	}
	if n := w.Count(`select count(*) from customers`); n != 4 {
		t.Errorf("%d rows", n)
	}
}

func TestKeyIsFreeAfterAnError(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const key = "Idempotency-Key: k"
	w.do(ctx, "POST", "/customers", `{"first_name":"Ann"}`, key).is(422, "invalid_request", "email")
	w.do(ctx, "PATCH", "/customers/"+ids.New[ids.CustomerPrefix]().String(), `{"phone":"1"}`, key).is(404)
	w.do(ctx, "POST", "/customers", ann, key).is(201)
}

func TestKeyExpires(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const key = "Idempotency-Key: k"
	first := w.do(ctx, "POST", "/customers", ann, key).is(201).customer()
	w.late.Store(int64(24*time.Hour - time.Minute))
	if got := w.do(ctx, "POST", "/customers", ann, key).is(201).customer(); got.ID != first.ID {
		t.Error("forgotten before 24 hours")
	}
	w.late.Store(int64(24*time.Hour + time.Minute))
	other := w.do(ctx, "POST", "/customers", `{"first_name":"Bea","email":"b@b.co"}`, key).is(201)
	if other.customer().ID == first.ID || other.Header.Get("Idempotent-Replayed") != "" {
		t.Error("remembered after 24 hours")
	}
}

func TestKeyBounds(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	for _, r := range []struct{ method, path, body string }{{"POST", "/customers", ann}, {"PATCH", path, `{}`}} {
		w.do(ctx, r.method, r.path, r.body, "Idempotency-Key: ").is(422, "invalid_request", "Idempotency-Key")
		w.do(ctx, r.method, r.path, r.body, header("Idempotency-Key: "+strings.Repeat("k", 256))).is(422, "invalid_request", "Idempotency-Key")
		if a := w.do(ctx, r.method, r.path, r.body, header("Idempotency-Key: "+strings.Repeat(r.method[1:2], 255))); a.Status >= 300 {
			t.Errorf("255 characters: %d %s", a.Status, a.Body)
		}
	}
}

// TestKeyInUse checks that a request whose key is held by a transaction that does not end is refused after the lock timeout.
func TestKeyInUse(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	w.engine = w.serve(w.Impatient(100 * time.Millisecond))
	c := caller.FromContext(ctx)
	for _, r := range []struct{ method, path, body, key string }{{"POST", "/customers", ann, "a"}, {"PATCH", path, `{"phone":"1"}`, "b"}} {
		release := w.HoldKey(c, r.key)
		a := w.do(ctx, r.method, r.path, r.body, header("Idempotency-Key: "+r.key)).is(409, "idempotency_in_progress")
		if a.Header.Get("Retry-After") == "" {
			t.Error("409 without Retry-After")
		}
		release()
	}
	w.do(ctx, "POST", "/customers", ann, "Idempotency-Key: a").is(201)
}
