package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/contract/contracttest"
)

// ledger simulates the writes of all services. A request with a known key gets the stored response. fault determines how a call
// fails.
type ledger struct {
	p       *platform
	mu      sync.Mutex
	calls   int                 // guarded by mu
	effects int                 // guarded by mu
	stored  map[string]response // by operation, parameters, and key; guarded by mu
	fault   func(call int) (before, after func() *response)
}

// cut closes the connection without a response.
func cut() *response { panic(http.ErrAbortHandler) }

// respondsWith returns a fault that responds with an error of the API.
func respondsWith(status int, code string) func() *response {
	return func() *response {
		out := refusal(status, code, nil)(call{})
		return &out
	}
}

// faults holds the ways in which a call can fail with an unknown outcome: before or after its effect, and for how many calls.
var faults = map[string]func(call int) (before, after func() *response){
	"cut once after the effect":   func(n int) (before, after func() *response) { return nil, when(n == 1, cut) },
	"cut always after the effect": func(int) (before, after func() *response) { return nil, cut },
	"cut always before it":        func(int) (before, after func() *response) { return cut, nil },
	"late": func(int) (before, after func() *response) {
		return nil, respondsWith(http.StatusGatewayTimeout, "upstream_timeout")
	},
	"under way": func(n int) (before, after func() *response) {
		return when(n > 1, respondsWith(http.StatusConflict, "idempotency_in_progress")), cut
	},
	"a bad gateway": func(int) (before, after func() *response) {
		return nil, respondsWith(http.StatusBadGateway, "payment_intent_failed")
	},
	"away": func(int) (before, after func() *response) {
		return respondsWith(http.StatusServiceUnavailable, "unavailable"), nil
	},
	"broken": func(int) (before, after func() *response) {
		return nil, respondsWith(http.StatusInternalServerError, "internal_error")
	},
	"away, then too fast": func(n int) (before, after func() *response) {
		return when(n > 1, respondsWith(http.StatusTooManyRequests, "rate_limited")), cut
	},
}

func when(holds bool, f func() *response) func() *response {
	if holds {
		return f
	}
	return nil
}

// respond responds to a write.
func (l *ledger) respond(c call) response {
	l.mu.Lock()
	l.calls++
	var before, after func() *response
	if l.fault != nil {
		before, after = l.fault(l.calls)
	}
	l.mu.Unlock()
	if before != nil {
		if out := before(); out != nil {
			return *out
		}
	}
	out := l.effect(c)
	if after != nil {
		return *after()
	}
	return out
}

// effect applies the effect of a write, once per key.
func (l *ledger) effect(c call) response {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := c.ID + strings.Join(c.Params, ",") + string(c.Body)
	if c.Method != http.MethodDelete {
		if c.Header.Get("Idempotency-Key") == "" {
			l.p.t.Errorf("%s has no Idempotency-Key", c.ID)
		}
		name = c.ID + strings.Join(c.Params, ",") + c.Header.Get("Idempotency-Key")
	}
	if out, ok := l.stored[name]; ok {
		return out
	}
	l.effects++
	if op, _, _ := contracttest.Match(l.p.contract, c.Method, strings.TrimPrefix(c.Path, "/api/v1")); op != nil {
		l.stored[name] = l.p.example(op, c)
	} else {
		l.stored[name] = l.p.internal(c)
	}
	return l.stored[name]
}

// newLedger makes a ledger respond to all writes of a platform.
func newLedger(p *platform) *ledger {
	l := &ledger{p: p, stored: map[string]response{}}
	for id, op := range parts().operations {
		if op.Method != http.MethodGet && !slices.Contains(ofSessions, id) {
			p.setResponse(id, l.respond)
		}
	}
	return l
}

// reads are the forms that change nothing.
var reads = []string{"POST /audit/verify"}

// elsewhere are the forms whose page has another address, also after an unknown outcome.
var elsewhere = []string{"POST /views", "POST /views/:id/delete", "POST /bookings/:id/move", "POST /business/logo"}

// TestUnknownOutcomes checks that each form takes effect once, regardless of the outcome of its calls. If the outcome is unknown,
// the page reports it and contains the form with its key. Submitting that form again shows the result.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	routes := newPlatform(t, options{}).routes()
	for name, fault := range faults {
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			if method != http.MethodPost || slices.Contains(reads, route) {
				continue
			}
			t.Run(name+" "+path, func(t *testing.T) {
				t.Parallel()
				p := newPlatform(t, options{})
				l := newLedger(p)
				at := address("alpha", "test", path)
				form := p.changedForm(at)
				if !form.Has("once") {
					form.Set("once", strings.Repeat("k", 30))
				}
				l.fault = fault
				w := p.post("owner", at, form)
				l.fault = nil
				if name == "cut once after the effect" {
					if w.Code != http.StatusOK && w.Code != http.StatusSeeOther || l.effects != 1 {
						t.Errorf("%d, %d effects: %s", w.Code, l.effects, alerts(parse(t, w.Body.String())))
					}
					return
				}
				if w.Code < http.StatusConflict || !slices.Contains(elsewhere, route) && !strings.Contains(alerts(parse(t, w.Body.String())), "It may have completed") {
					t.Errorf("%d: %s", w.Code, alerts(parse(t, w.Body.String())))
				}
				again := url.Values{}
				for key, values := range form {
					again[key] = values
				}
				if !slices.Contains(elsewhere, route) {
					again = formOf(t, parse(t, w.Body.String()), at)
					again.Del("form")
				}
				if again.Get("once") != form.Get("once") {
					t.Errorf("the form has the key %s, then %s", form.Get("once"), again.Get("once"))
				}
				for _, key := range []string{"notes", "name", "version", "from"} {
					if form.Get(key) != again.Get(key) {
						t.Errorf("%s was %q, then %q", key, form.Get(key), again.Get(key))
					}
				}
				if w := p.post("owner", at, again); w.Code != http.StatusOK && w.Code != http.StatusSeeOther {
					t.Errorf("then %d: %s", w.Code, alerts(parse(t, w.Body.String())))
				}
				if l.effects != 1 {
					t.Errorf("%d effects", l.effects)
				}
			})
		}
	}
}

// TestBackAndReloadReuseTheKey checks that Back and reload show a form with its previous key, so that it takes effect only once. A
// page opened for the first time has a new key.
func TestBackAndReloadReuseTheKey(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.lax = true
	for _, route := range p.routes() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodPost || slices.Contains(reads, route) || slices.Contains(elsewhere, route) {
			continue
		}
		at := address("alpha", "test", path)
		r := p.signed(request{Method: http.MethodGet, Path: at, Token: "owner"})
		first := p.serve(r)
		to := first.Header().Get("Location")
		if first.Code != http.StatusSeeOther || !strings.Contains(to, "once=") {
			t.Errorf("%s: %d to %s", path, first.Code, to)
			continue
		}
		form := formOf(t, parse(t, p.get("owner", to).Body.String()), at)
		p.post("owner", at, form)
		if again := formOf(t, parse(t, p.get("owner", to).Body.String()), at); again.Get("once") != form.Get("once") {
			t.Errorf("%s: the key is %s, then %s", path, form.Get("once"), again.Get("once"))
		}
		if other := formOf(t, parse(t, p.get("owner", at).Body.String()), at); other.Get("once") == form.Get("once") {
			t.Errorf("%s: two forms have one key", path)
		}
	}
}

// TestKeyOfAnotherOperator checks that a key in another operator's link is not used.
func TestKeyOfAnotherOperator(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	w := p.serve(p.signed(request{Method: http.MethodGet, Path: where + "refunds/new?booking_id=bk_01k00000000000000000000001&once=" + strings.Repeat("a", 32), Token: "owner"}))
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.Contains(to, "booking_id=bk_") || strings.Contains(to, "aaaa") {
		t.Errorf("%d to %s", w.Code, to)
	}
}

// TestDefiniteRefusalGetsTheNextKey checks that after a definite refusal a form has the next key, which is always the same.
func TestDefiniteRefusalGetsTheNextKey(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{
		http.StatusUnprocessableEntity: "invalid_request", http.StatusConflict: "slot_unavailable", http.StatusPreconditionFailed: "version_mismatch", http.StatusNotFound: "unit_not_found",
	} {
		p := newPlatform(t, options{})
		p.setResponse("createBooking", refusal(status, code, nil))
		path := where + "bookings/new"
		form := p.fill("owner", path, url.Values{"customer_id": {"cu_01k00000000000000000000001"}, "event_date": {"2027-05-01"}})
		for range 2 {
			again := formOf(t, parse(t, p.post("owner", path, form).Body.String()), path)
			if again.Get("once") != form.Get("once")+"-2" {
				t.Errorf("%s: %s, then %s", code, form.Get("once"), again.Get("once"))
			}
		}
		if n := len(p.written()); n != 2 {
			t.Errorf("%s: %d calls", code, n)
		}
	}
}

// TestActionsSendIfMatch checks that actions apply to the version that the page showed. If the version has changed, the form shows
// the current state for the next attempt.
func TestActionsSendIfMatch(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := address("alpha", "test", "/bookings/:id/cancel")
	p.setResponse("getBooking", object(exampleObject(t, "getBooking", map[string]any{"version": 4, "status": "confirmed"})))
	form := p.fill("owner", path, nil)
	p.setResponse("getBooking", object(exampleObject(t, "getBooking", map[string]any{"version": 5, "status": "completed"})))
	p.setResponse("cancelBooking", refusal(http.StatusPreconditionFailed, "version_mismatch", nil))
	w := p.post("owner", path, form)
	if got := p.only(t).Header.Get("If-Match"); got != `"4"` {
		t.Errorf("If-Match %s", got)
	}
	doc := parse(t, w.Body.String())
	again := formOf(t, doc, path)
	if w.Code != http.StatusPreconditionFailed || alerts(doc) == "" || !strings.Contains(textOf(doc), " completed ") || again.Get("version") != "5" || again.Get("once") == form.Get("once") {
		t.Errorf("%d: %s %v", w.Code, textOf(doc), again)
	}
	if w := p.post("owner", path, url.Values{"once": {form.Get("once")}}); w.Code != http.StatusBadRequest {
		t.Errorf("without a version: %d", w.Code)
	}
}
