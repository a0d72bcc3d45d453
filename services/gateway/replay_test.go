package main

import (
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/proto/internalapi"
)

// replayed waits until Redis answers the key, which happens soon after the first answer.
func (g *gateway) replayed(t *testing.T, body string, edits ...edit) *answer {
	t.Helper()
	var a *answer
	before := count(g.door.Gate.Metrics.Replays.WithLabelValues("hit"))
	eventually(t, "a replay from Redis", func() bool {
		a = g.send(t, "POST", customers, body, edits...)
		return count(g.door.Gate.Metrics.Replays.WithLabelValues("hit")) > before
	})
	return a
}

func TestReplayFromRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	edits := []edit{bearer(key), header("Idempotency-Key", "one")}
	first := g.send(t, "POST", customers, ada, edits...)
	want(t, first, 201, "")
	again := g.replayed(t, `{ "email":"a@example.com", "first_name":"Ada" }`, edits...)
	if again.body != first.body || again.StatusCode != 201 || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replay %d %q\n%s\n%s", again.StatusCode, again.Header.Get("Idempotent-Replayed"), again.body, first.body)
	}
	for _, name := range []string{"Location", "Content-Type", "Etag"} {
		if first.Header.Get(name) == "" || again.Header.Get(name) != first.Header.Get(name) {
			t.Errorf("%s: %q, first %q", name, again.Header.Get(name), first.Header.Get(name))
		}
	}
	if again.Header.Get("X-Request-Id") == first.Header.Get("X-Request-Id") ||
		again.Header.Get("RateLimit-Remaining") == first.Header.Get("RateLimit-Remaining") {
		t.Error("request id or rate headers are not fresh")
	}
	handled, made := w.service.calls()
	if g.replayed(t, ada, edits...); made != 1 {
		t.Errorf("%d customers were made", made)
	}
	if after, _ := w.service.calls(); after != handled {
		t.Error("a replay from Redis reached the service")
	}
	legacy := g.send(t, "POST", strings.TrimPrefix(customers, "/api"), ada, edits...)
	if legacy.body != first.body || legacy.Header.Get("Location") != first.Header.Get("Location") {
		t.Error("the legacy base has an idempotency space of its own")
	}
	if other := w.identity.newKey(); g.send(t, "POST", customers, ada, bearer(other), edits[1]).body == first.body {
		t.Error("another credential got the answer")
	}
}

func TestMismatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	edits := []edit{bearer(w.identity.newKey()), header("Idempotency-Key", "one")}
	g.send(t, "POST", customers, ada, edits...)
	g.replayed(t, ada, edits...)
	for _, c := range []struct{ path, body string }{
		{customers, `{"first_name":"Bea","email":"a@example.com"}`},
		{customers + "?a=1", ada},
	} {
		a := g.send(t, "POST", c.path, c.body, edits...)
		want(t, a, 422, "idempotency_mismatch")
		if !strings.Contains(a.body, `"param":"Idempotency-Key"`) || !strings.Contains(a.body, `"errors":{"Idempotency-Key"`) {
			t.Error(a.body)
		}
	}
}

func TestReplayNeedsTheScopeStill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey("write:customers")
	edits := []edit{bearer(key), header("Idempotency-Key", "one")}
	g.send(t, "POST", customers, ada, edits...)
	g.replayed(t, ada, edits...)
	w.identity.change(key, func(p *internalapi.Principal) { p.Version, p.Scopes = 2, []string{"read:units"} })
	w.setState(t, key, "2")
	want(t, g.send(t, "POST", customers, ada, edits...), 403, "insufficient_scope")
}

// With Redis's memory lost, the service's own record answers; the gateway claims nothing.
func TestReplayFromTheService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	edits := []edit{bearer(key), header("Idempotency-Key", "one")}
	first := g.send(t, "POST", customers, ada, edits...)
	g.replayed(t, ada, edits...)
	w.forget(t, key)
	again := g.send(t, "POST", customers, ada, edits...)
	if _, made := w.service.calls(); made != 1 || again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d made, %q", made, again.Header.Get("Idempotent-Replayed"))
	}
}

func TestWhatIsNotCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	for name, answers := range map[string]func(http.ResponseWriter){
		"an answer with a secret": func(w http.ResponseWriter) {
			w.Header().Set("X-Internal-Idem-Expires", "99999999999")
			w.Header().Set("X-Internal-Idem-Cache", "no")
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "/api/v1/customers/x")
			w.WriteHeader(201)
			_, _ = w.Write([]byte(customerBody("x")))
		},
		"an answer without a record": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "/api/v1/customers/x")
			w.WriteHeader(201)
			_, _ = w.Write([]byte(customerBody("x")))
		},
		"an error": func(w http.ResponseWriter) {
			w.Header().Set("X-Internal-Idem-Expires", "99999999999")
			w.WriteHeader(500)
		},
	} {
		key := w.identity.newKey()
		w.service.set(func(f *fakeService) {
			f.handle = func(w http.ResponseWriter, _ *http.Request) bool { answers(w); return true }
		})
		for range 5 {
			if _, err := g.try("POST", customers, ada, bearer(key), header("Idempotency-Key", "one")); err != nil {
				t.Fatal(err)
			}
		}
		if keys := w.redis.Keys(t.Context(), "id:{"+w.identity.id(key)+"}*").Val(); len(keys) != 0 {
			t.Errorf("%s is cached", name)
		}
	}
}
