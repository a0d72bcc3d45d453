package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/secret"
)

// calendars serves the calendars of the tokens that are in valid, and counts the requests.
type calendars struct {
	requests atomic.Int64
	valid    sync.Map
}

func (w *world) calendars(tokens ...string) *calendars {
	k := &calendars{}
	for _, token := range tokens {
		k.valid.Store("/api/v1/calendar/"+token+".ics", true)
	}
	w.service.handle = func(out http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/api/v1/calendar/") {
			return false
		}
		k.requests.Add(1)
		if r.Method != http.MethodGet || r.URL.RawQuery != "" {
			out.WriteHeader(http.StatusInternalServerError)
			return true
		}
		if _, ok := k.valid.Load(r.URL.Path); !ok {
			out.Header().Set("Content-Type", "application/json")
			out.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(out, `{"error":{"type":"invalid_request_error","code":"calendar_feed_not_found","message":"Calendar feed not found.",`+
				`"doc_url":"https://booking.test/docs/errors#calendar_feed_not_found","request_id":%q}}`, r.Header.Get("X-Request-Id"))
			return true
		}
		out.Header().Set("ETag", `W/"1"`)
		out.Header().Set("Cache-Control", "private, no-cache")
		if r.Header.Get("If-None-Match") == `W/"1"` {
			out.WriteHeader(http.StatusNotModified)
			return true
		}
		out.Header().Set("Content-Type", "text/calendar; charset=utf-8")
		_, _ = io.WriteString(out, "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n")
		return true
	}
	return k
}

func newToken() string { return strings.ToLower(ids.New[ids.RequestPrefix]().String()[4:]) }

func calendar(token string) string { return "/api/v1/calendar/" + token + ".ics" }

// An operation without a credential ignores a missing, a wrong and a valid credential. The gateway does not call identity, and
// the response has no header of a credential.
func TestAnOperationWithoutACredential(t *testing.T) {
	t.Parallel()
	w, token := newWorld(t), newToken()
	w.calendars(token)
	g := w.start(t)
	for _, base := range []string{"/api/v1", "/v1"} {
		for name, auth := range map[string][]edit{
			"none": nil, "unknown": {bearer(apikey.New(caller.Live))}, "malformed": {bearer("x")}, "valid": {bearer(w.identity.newKey())},
			"no scopes": {bearer(w.identity.newKey("read:customers"))}, "another scheme": {header("Authorization", "Basic eA==")},
		} {
			a := g.send(t, "GET", base+"/calendar/"+token+".ics", "", auth...)
			if a.StatusCode != 200 || a.body != "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n" || a.Header.Get("Content-Type") != "text/calendar; charset=utf-8" ||
				a.Header.Get("ETag") != `W/"1"` || a.Header.Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%s %s: %d %v %s", base, name, a.StatusCode, a.Header, a.body)
			}
			for header := range a.Header {
				if strings.HasPrefix(strings.ToLower(header), "ratelimit") || header == "X-Service-Scope" {
					t.Errorf("%s: has the header %s", name, header)
				}
			}
		}
	}
	if from := w.service.caller; !from.Tenant.IsZero() || from.Credential != "svc:gateway" || len(from.Scopes) > 0 {
		t.Errorf("the service was called as %+v", from)
	}
	if n := w.identity.lookupCount(); n != 0 {
		t.Errorf("identity was called %d times", n)
	}
	if a := g.send(t, "GET", calendar(token), "", header("If-None-Match", `W/"1"`)); a.StatusCode != 304 || a.body != "" {
		t.Errorf("unchanged: %d %q", a.StatusCode, a.body)
	}
	for _, query := range []string{"?", "?cb=1", "?a=1&a=2&%zz", "?limit=0"} {
		if a := g.send(t, "GET", calendar(token)+query, ""); a.StatusCode != 200 || a.body == "" {
			t.Errorf("%s: %d %q", query, a.StatusCode, a.body)
		}
		a := g.send(t, "HEAD", calendar(token)+query, "")
		if a.StatusCode != 200 || a.body != "" || a.ContentLength != 32 || a.Header.Get("Content-Type") != "text/calendar; charset=utf-8" || a.Header.Get("ETag") != `W/"1"` {
			t.Errorf("HEAD %s: %d %q %v", query, a.StatusCode, a.body, a.Header)
		}
	}
	want(t, g.send(t, "GET", calendar(token)+"?api_key=x", ""), 400, "query_api_key_unsupported")
	if a := g.send(t, "HEAD", calendar(token), "", header("If-None-Match", `W/"1"`)); a.StatusCode != 304 {
		t.Errorf("HEAD, unchanged: %d", a.StatusCode)
	}
	if a := g.send(t, "HEAD", calendar(newToken()), ""); a.StatusCode != 404 || a.body != "" {
		t.Errorf("HEAD of another token: %d %q", a.StatusCode, a.body)
	}
	for _, method := range []string{"POST", "OPTIONS", "DELETE"} {
		a := g.send(t, method, calendar(token), "")
		if want(t, a, 405, "method_not_allowed"); a.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow %q", method, a.Header.Get("Allow"))
		}
	}
	if a := g.send(t, "HEAD", "/api/v1/customers", ""); a.StatusCode != 405 {
		t.Errorf("HEAD elsewhere: %d", a.StatusCode)
	}
	want(t, g.send(t, "GET", calendar(newToken()), ""), 404, "calendar_feed_not_found")
	if text := g.log.String(); strings.Contains(text, token) || !strings.Contains(text, `"route":"/calendar/{token}.ics"`) {
		t.Errorf("the log holds the token, or not the route:\n%s", text)
	}
}

// A token can be used 60 times a minute across all gateways, regardless of its escaping. Other tokens are not delayed, and a token
// that is no longer valid gets 404 immediately.
func TestTheRateOfAToken(t *testing.T) {
	t.Parallel()
	w, token, other := newWorld(t), newToken(), newToken()
	k := w.calendars(token, other)
	gates := []*gateway{w.start(t), w.start(t)}
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		path := calendar(token)
		if i%3 == 0 {
			path = "/v1/calendar/" + fmt.Sprintf("%%%02X", token[0]) + token[1:] + ".ics"
		}
		wg.Go(func() {
			a, err := gates[i%2].try(t, "GET", path, "")
			switch {
			case err != nil:
				t.Error(err)
			case a.StatusCode == 200:
				passed.Add(1)
			case a.StatusCode == 429 && a.code() == "rate_limited":
				refused.Add(1)
				if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || n < 1 || n > 120 {
					t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
				}
			default:
				t.Errorf("%s %s", a.Status, a.body)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 60 || refused.Load() != 40 {
		t.Errorf("%d passed, %d refused", passed.Load(), refused.Load())
	}
	want(t, gates[0].send(t, "GET", calendar(other), ""), 200, "")
	want(t, gates[0].send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 200, "")
	k.valid.Delete(calendar(other))
	want(t, gates[0].send(t, "GET", calendar(other), ""), 404, "calendar_feed_not_found")
	want(t, gates[0].send(t, "GET", calendar(other), ""), 404, "calendar_feed_not_found")
}

// While Redis is down, each gateway counts on its own.
func TestTheRateOfATokenWithoutRedis(t *testing.T) {
	t.Parallel()
	w, token := newWorld(t), newToken()
	w.calendars(token)
	g := w.start(t, func(c *Config) {
		c.RedisURL, c.RedisTimeout, c.TokenRateLimit = secret.New("redis://127.0.0.1:1"), 10*time.Millisecond, 3
	})
	for range 3 {
		want(t, g.send(t, "GET", calendar(token), ""), 200, "")
	}
	want(t, g.send(t, "GET", calendar(token), ""), 429, "rate_limited")
}

// Guessed tokens reach the service no faster than unknown credentials reach identity, leave nothing in Redis, and do not
// block a token that was valid recently. The gateway itself responds to a repeated guess.
func TestGuessedTokens(t *testing.T) {
	t.Parallel()
	w, token := newWorld(t), newToken()
	k := w.calendars(token)
	g := w.start(t, func(c *Config) { c.UnknownPerSecond = 5 })
	want(t, g.send(t, "GET", calendar(token), ""), 200, "")
	began := time.Now()
	guess := newToken()
	var refused, unknown atomic.Int64
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			a, err := g.try(t, "GET", calendar(fmt.Sprintf("%s%02d", guess[2:], i)), "")
			switch {
			case err != nil:
				t.Error(err)
			case a.StatusCode == 429 && a.Header.Get("Retry-After") == "1":
				refused.Add(1)
			case a.StatusCode == 404 && a.code() == "calendar_feed_not_found":
				unknown.Add(1)
			default:
				t.Errorf("%s %s", a.Status, a.body)
			}
		})
	}
	want(t, g.send(t, "GET", calendar(token), ""), 200, "")
	wg.Wait()
	most := 5 + int64(5*time.Since(began)/time.Second) + 1
	if refused.Load()+unknown.Load() != 60 || unknown.Load() > most || unknown.Load() < 4 {
		t.Errorf("%d refused, %d forwarded, which may be %d", refused.Load(), unknown.Load(), most)
	}
	eventually(t, "one more guess is forwarded", func() bool {
		a, err := g.try(t, "GET", calendar(guess), "")
		return err == nil && a.StatusCode == 404
	})
	before := k.requests.Load()
	want(t, g.send(t, "GET", calendar(guess), ""), 404, "calendar_feed_not_found")
	if k.requests.Load() != before {
		t.Error("a repeated guess was forwarded")
	}
}
