package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idem"
)

// The gateway sends the preference to the service, and returns the service's headers about unknown fields, but not for a replay.
func TestUnknownFieldsPassTheGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	w.service.set(func(f *fakeService) {
		f.handle = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("X-Ignored-Fields", "unitid, caf%C3%A9")
			if r.Header.Get("Prefer") != "" {
				w.Header().Set("Preference-Applied", r.Header.Get("Prefer"))
			}
			return false
		}
	})
	edits := []edit{bearer(w.identity.newKey()), header("Idempotency-Key", "one"), header("Prefer", "handling=strict")}
	first := g.send(t, "POST", bookings, party, edits...)
	want(t, first, 201, "")
	if first.Header.Get("X-Ignored-Fields") != "unitid, caf%C3%A9" || first.Header.Get("Preference-Applied") != "handling=strict" {
		t.Errorf("first: %v", first.Header)
	}
	again := g.replayed(t, party, edits...)
	for _, name := range []string{"X-Ignored-Fields", "Preference-Applied"} {
		if _, there := again.Header[name]; there {
			t.Errorf("a replay says %s", name)
		}
	}
	// The comparison of requests with the same key ignores the preference.
	if lenient := g.replayed(t, party, edits[:2]...); lenient.body != first.body {
		t.Error("the same request without the preference is another one")
	}
}

// The gateway sends the fingerprint of a request with a key, computed in the same pass over the body.
func TestFingerprintIsHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := bearer(w.identity.newKey())
	fingerprint := func() (got []byte) {
		w.service.set(func(f *fakeService) { got = f.caller.Fingerprint })
		return got
	}
	const body = ` { "metadata":{"b":1.0,"a":"\u0041<"}, "event_date":"2026-05-10" } `
	want(t, g.send(t, "POST", "/v1/bookings?x=%31", body, key, header("Idempotency-Key", "k")), 201, "")
	sum := idem.Fingerprint("POST", "/bookings", "x=%31", []byte(`{"event_date":"2026-05-10","metadata":{"a":"A\u003c","b":1.0}}`))
	if got := fingerprint(); !bytes.Equal(got, sum[:]) {
		t.Errorf("got %x, want %x", got, sum)
	}
	want(t, g.send(t, "POST", bookings, body, key), 201, "")
	if got := fingerprint(); got != nil {
		t.Errorf("a request without a key has %x", got)
	}
	if _, err := g.raw("POST", bookings+"/bk_x/cancel", "", key, header("Idempotency-Key", "k2")); err != nil {
		t.Fatal(err)
	}
	sum = idem.Fingerprint("POST", "/bookings/bk_x/cancel", "", nil)
	if got := fingerprint(); !bytes.Equal(got, sum[:]) {
		t.Errorf("without a body: %x, want %x", got, sum)
	}
}

// The gateway rejects an invalid body with the same messages as a service.
func TestBodiesThatAreNotIJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := bearer(w.identity.newKey())
	for _, body := range []string{
		`{"a":{"b":[{"c":1,"c":2}]}}`, "{\n \"a\": tru\n}", `{"a":"\ud800"}`, `{"a":1}{}`, `[]`, "{\"a\":\"\xff\"}",
	} {
		_, err := contract.Canonical([]byte(body))
		a := g.send(t, "POST", bookings, body, key)
		want(t, a, 400, "malformed_json")
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal([]byte(a.body), &e) != nil || err == nil || "malformed_json: "+e.Error.Message != err.Error() {
			t.Errorf("%s: %s, want %v", body, e.Error.Message, err)
		}
	}
	form := g.send(t, "POST", bookings, "a=b", key, func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") })
	want(t, form, 400, "missing_content_type")
	if !bytes.Contains([]byte(form.body), []byte("The body must be JSON")) {
		t.Errorf("form: %s", form.body)
	}
	if handled, _ := w.service.calls(); handled != 0 {
		t.Errorf("%d reached the service", handled)
	}
}
