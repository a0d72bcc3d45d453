package main

import (
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/gateway/internal/domain"
)

// replayed waits until Redis has the response of the key, soon after the first response.
func (g *gateway) replayed(t *testing.T, body string, edits ...edit) *response {
	t.Helper()
	var a *response
	before := count(g.server.Pipeline.Metrics.Replays.WithLabelValues("hit"))
	eventually(t, "a replay from Redis", func() bool {
		a = g.send(t, "POST", bookings, body, edits...)
		return count(g.server.Pipeline.Metrics.Replays.WithLabelValues("hit")) > before
	})
	return a
}

func TestReplayFromRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	edits := []edit{bearer(key), header("Idempotency-Key", "one")}
	first := g.send(t, "POST", bookings, party, edits...)
	want(t, first, 201, "")
	again := g.replayed(t, `{ "guest_count":2, "event_date":"2026-05-10" }`, edits...)
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
	handled, created := w.service.calls()
	if g.replayed(t, party, edits...); created != 1 {
		t.Errorf("%d bookings were created", created)
	}
	if after, _ := w.service.calls(); after != handled {
		t.Error("a replay from Redis reached the service")
	}
	legacy := g.send(t, "POST", strings.TrimPrefix(bookings, "/api"), party, edits...)
	if legacy.body != first.body || legacy.Header.Get("Location") != first.Header.Get("Location") {
		t.Error("the legacy base has an idempotency space of its own")
	}
	if other := w.identity.newKey(); g.send(t, "POST", bookings, party, bearer(other), edits[1]).body == first.body {
		t.Error("another credential got the response")
	}
}

func TestMismatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	edits := []edit{bearer(w.identity.newKey()), header("Idempotency-Key", "one")}
	g.send(t, "POST", bookings, party, edits...)
	g.replayed(t, party, edits...)
	for _, c := range []struct{ path, body string }{
		{bookings, `{"event_date":"2026-05-10","guest_count":3}`},
		{bookings + "?a=1", party},
		{customers, ada},
	} {
		a := g.send(t, "POST", c.path, c.body, edits...)
		want(t, a, 422, "idempotency_mismatch")
		if !strings.Contains(a.body, `"param":"Idempotency-Key"`) || !strings.Contains(a.body, `"errors":{"Idempotency-Key"`) {
			t.Error(a.body)
		}
	}
}

func TestReplayStillNeedsTheScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey("write:bookings")
	edits := []edit{bearer(key), header("Idempotency-Key", "one")}
	g.send(t, "POST", bookings, party, edits...)
	g.replayed(t, party, edits...)
	w.identity.change(key, func(p *internalapi.Principal) { p.Version, p.Scopes = 2, []string{"read:units"} })
	w.setState(t, key, "2")
	want(t, g.send(t, "POST", bookings, party, edits...), 403, "insufficient_scope")
}

// If Redis has lost its data, the response comes from the service's own record, not from the gateway.
func TestReplayFromTheService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	edits := []edit{bearer(key), header("Idempotency-Key", "one")}
	first := g.send(t, "POST", bookings, party, edits...)
	g.replayed(t, party, edits...)
	w.forget(t, key)
	again := g.send(t, "POST", bookings, party, edits...)
	if _, created := w.service.calls(); created != 1 || again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d created, %q", created, again.Header.Get("Idempotent-Replayed"))
	}
}

// remembered waits for the Redis entry of the credential's one idempotency key.
func (w *world) remembered(t *testing.T, key string) string {
	t.Helper()
	var value string
	eventually(t, "the key is remembered", func() bool {
		names := w.redis.Keys(t.Context(), "id:{"+w.identity.holder(key).Tenant+"}*").Val()
		if len(names) != 1 {
			return false
		}
		value = w.redis.Get(t.Context(), names[0]).Val()
		return true
	})
	return value
}

// The data of an erased person must not remain in Redis. For a response with personal data or a secret, only the name of the
// service is cached, so that its key is still rejected for another service.
func TestWhatIsNotCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	w.service.set(func(f *fakeService) {
		f.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Idempotency-Key") == "secret" {
				w.Header().Set("X-Internal-Idem-Cache", "no")
			}
			return false
		}
	})
	for _, c := range []struct{ key, path, body, other, otherBody, service string }{
		{"personal", customers, ada, bookings, party, "customers"},
		{"secret", bookings, party, customers, ada, "bookings"},
	} {
		credential := w.identity.newKey()
		edits := []edit{bearer(credential), header("Idempotency-Key", c.key)}
		first := g.send(t, "POST", c.path, c.body, edits...)
		note, err := domain.Placeholder(c.service)
		if got := w.remembered(t, credential); err != nil || got != string(note) {
			t.Errorf("%s: Redis holds %q", c.key, got)
		}
		before, _ := w.service.calls()
		again := g.send(t, "POST", c.path, c.body, edits...)
		if after, _ := w.service.calls(); after != before+1 || again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %d calls, replayed %q", c.key, after-before, again.Header.Get("Idempotent-Replayed"))
		}
		want(t, g.send(t, "POST", c.other, c.otherBody, edits...), 422, "idempotency_mismatch")
		w.service.set(func(f *fakeService) { clear(f.records) }) // erased
		if fresh := g.send(t, "POST", c.path, c.body, edits...); fresh.Header.Get("Idempotent-Replayed") != "" || fresh.body == first.body {
			t.Errorf("%s: lives on after its service forgot it", c.key)
		}
	}
}

func TestOnlyRecordedSuccessIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	for name, respond := range map[string]func(http.ResponseWriter){
		"a response without a record": func(w http.ResponseWriter) {
			w.Header().Set("Location", "/api/v1/bookings/x")
			w.Header().Set("Etag", `"1"`)
			w.WriteHeader(201)
			_, _ = w.Write([]byte(bookingBody("x")))
		},
		"an error": func(w http.ResponseWriter) {
			w.Header().Set("X-Internal-Idem-Expires", "99999999999")
			httpx.WriteError(w, "https://booking.test", w.Header().Get("X-Request-Id"), apperr.ErrUnavailable)
		},
	} {
		key := w.identity.newKey()
		w.service.set(func(f *fakeService) {
			f.handle = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
				respond(w)
				return true
			}
		})
		for range 5 {
			g.send(t, "POST", bookings, party, bearer(key), header("Idempotency-Key", "one"))
		}
		if keys := w.redis.Keys(t.Context(), "id:{"+w.identity.holder(key).Tenant+"}*").Val(); len(keys) != 0 {
			t.Errorf("%s is cached", name)
		}
	}
}
