package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/peer/peertest"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func keys(t *testing.T, peer string) caller.Keys {
	t.Helper()
	k, err := caller.ParseKeys(peer + "=k1:" + strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func client(t *testing.T, h http.HandlerFunc) *peer.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return &peer.Client{
		Target: "bookings", BaseURL: srv.URL, Timeout: time.Minute,
		Signer: &caller.Signer{From: "customers", Keys: keys(t, "bookings")},
	}
}

func ctx() context.Context {
	c := caller.Caller{Mode: caller.Test, Credential: "key_1", RequestID: "req_1"}
	return obs.WithTraceparent(caller.With(context.Background(), c), traceparent)
}

func respondWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestDoSignsAndCarries(t *testing.T) {
	t.Parallel()
	verifier := &caller.Verifier{Self: "bookings", Keys: keys(t, "customers")}
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		who, from, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.Path, time.Now())
		if err != nil || from != "customers" || who.Credential != "key_1" {
			t.Errorf("caller %+v from %q: %v", who, from, err)
		}
		for name, want := range map[string]string{
			"X-Request-Id": "req_1", "Traceparent": traceparent, "Idempotency-Key": "quote:1", "Content-Type": "application/json",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if r.URL.RawQuery != "expand=a" {
			t.Errorf("query %q", r.URL.RawQuery)
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	var out struct{ Name string }
	err := c.Do(ctx(), http.MethodPost, "/api/v1/bookings?expand=a", map[string]string{"name": "Ann"}, &out, peer.IdempotencyKey("quote:1"))
	if err != nil || out.Name != "Ann" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestResponsesBecomeErrors(t *testing.T) {
	t.Parallel()
	envelope := func(code string) string {
		return `{"error":{"code":"` + code + `","message":"No."}}`
	}
	for status, want := range map[int]*apperr.Error{
		400: apperr.New(apperr.BadRequest, "malformed_json", ""),
		403: apperr.New(apperr.Forbidden, "mode_mismatch", ""),
		404: apperr.New(apperr.NotFound, "booking_not_found", ""),
		409: apperr.New(apperr.Conflict, "slot_unavailable", ""),
		412: apperr.New(apperr.PreconditionFailed, "version_mismatch", ""),
		429: apperr.New(apperr.RateLimited, "rate_limited", ""),
		500: apperr.New(apperr.Internal, "internal_error", ""),
		503: apperr.New(apperr.Unavailable, "unavailable", ""),
		504: apperr.New(apperr.Timeout, "upstream_timeout", ""),
	} {
		err := client(t, respondWith(status, envelope(want.Code))).Do(ctx(), http.MethodPost, "/x", nil, nil)
		var got *apperr.Error
		if !errors.As(err, &got) || got.Kind != want.Kind || got.Code != want.Code || got.Message != "No." {
			t.Errorf("%d: got %#v", status, err)
		}
	}
	for status, want := range map[int]error{502: apperr.ErrUnavailable, 503: apperr.ErrUnavailable, 401: apperr.ErrInternal, 302: apperr.ErrInternal} {
		err := client(t, respondWith(status, "<html>")).Do(ctx(), http.MethodPost, "/x", nil, nil)
		if err == nil || !errors.Is(apperr.As(err), want) {
			t.Errorf("%d without envelope: %v, want %v", status, err, want)
		}
	}
	if err := client(t, respondWith(401, envelope("invalid_credential"))).Do(ctx(), http.MethodPost, "/x", nil, nil); !errors.Is(apperr.As(err), apperr.ErrInternal) {
		t.Errorf("a refused signature is reported to the client: %v", err)
	}
}

// TestNumbersOfAnErrorArePassedOn checks that a service passes on the numbers of an error that another service returned, and nothing else.
func TestNumbersOfAnErrorArePassedOn(t *testing.T) {
	t.Parallel()
	err := client(t, respondWith(409, `{"error":{"type":"t","code":"slot_unavailable","message":"No.","doc_url":"u","request_id":"7","seats_available":3,"later":"text"}}`)).
		Do(ctx(), http.MethodPost, "/x", nil, nil)
	if got := apperr.As(err).Extra; len(got) != 1 || got["seats_available"] != 3 {
		t.Errorf("got %v", got)
	}
}

func TestFieldOfTheErrorComesFirst(t *testing.T) {
	t.Parallel()
	err := client(t, respondWith(422, `{"message":"m","errors":{"a":["A"],"b":["B1","B2"],"c":["C"]},
		"error":{"code":"invalid_request","message":"B1","param":"b"}}`)).Do(ctx(), http.MethodPost, "/x", nil, nil)
	var got []string
	for _, f := range apperr.As(err).Fields {
		got = append(got, f.Field+"="+f.Message)
	}
	if s := strings.Join(got, " "); s != "b=B1 b=B2 a=A c=C" {
		t.Errorf("got %s", s)
	}
}

func TestRetryAfterIsPreserved(t *testing.T) {
	t.Parallel()
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		respondWith(503, `{"error":{"code":"unavailable","message":"m"}}`)(w, nil)
	})
	if err := c.Do(ctx(), http.MethodPost, "/x", nil, nil); apperr.As(err).RetryAfter != 7*time.Second {
		t.Errorf("got %v", apperr.As(err).RetryAfter)
	}
}

func TestFinalIsPreserved(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"": false, "false": true} {
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Service-Should-Retry", value)
			respondWith(502, `{"error":{"code":"payment_intent_failed","message":"m"}}`)(w, nil)
		})
		if err := c.Do(ctx(), http.MethodPost, "/x", nil, nil); apperr.As(err).Final != want {
			t.Errorf("%q: final is %v", value, !want)
		}
	}
}

func TestOnlyReadsAreRepeated(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int32{http.MethodGet: 3, http.MethodPost: 1} {
		var calls atomic.Int32
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		if err := c.Do(ctx(), method, "/x", nil, nil); !errors.Is(err, apperr.ErrUnavailable) {
			t.Errorf("%s: %v", method, err)
		}
		if calls.Load() != want {
			t.Errorf("%s: %d calls, want %d", method, calls.Load(), want)
		}
	}
	var calls atomic.Int32
	var out json.RawMessage
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	if err := c.Do(ctx(), http.MethodGet, "/x", nil, &out); err != nil || string(out) != `{"ok":true}` {
		t.Errorf("the second try: %s, %v", out, err)
	}
}

func TestSlowAndDeadPeersAndACanceledCall(t *testing.T) {
	t.Parallel()
	slow := client(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	slow.Timeout = 50 * time.Millisecond
	if err := slow.Do(ctx(), http.MethodGet, "/x", nil, nil); !errors.Is(err, apperr.ErrTimeout) {
		t.Errorf("slow: %v", err)
	}
	dead := client(t, nil)
	dead.BaseURL = "http://" + peertest.Refusing(t)
	if err := dead.Do(ctx(), http.MethodGet, "/x", nil, nil); !errors.Is(err, apperr.ErrUnavailable) {
		t.Errorf("dead: %v", err)
	}
	gone, cancel := context.WithCancel(ctx())
	cancel()
	if err := slow.Do(gone, http.MethodGet, "/x", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("gone: %v", err)
	}
	if err := slow.Do(context.Background(), http.MethodGet, "/x", nil, nil); !errors.Is(err, caller.ErrNone) {
		t.Errorf("no caller: %v", err)
	}
}

// transport responds to requests without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The time-out limits a read with all its attempts, by a clock that counts only the waiting time.
func TestTimeoutCoversAllAttempts(t *testing.T) {
	t.Parallel()
	const want = 50 * time.Millisecond
	for _, first := range []int{0, 1} { // attempts that fail before one that hangs
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			c := &peer.Client{Target: "bookings", BaseURL: "http://bookings.test", Timeout: want, Signer: &caller.Signer{From: "customers", Keys: keys(t, "bookings")}}
			c.HTTP = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				if tries++; tries <= first {
					return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
				}
				<-r.Context().Done()
				return nil, r.Context().Err()
			})}
			start := time.Now()
			if err := c.Do(ctx(), http.MethodGet, "/x", nil, nil); !errors.Is(err, apperr.ErrTimeout) {
				t.Errorf("%d refused: %v", first, err)
			}
			if took := time.Since(start); took != want || tries != first+1 {
				t.Errorf("%d refused: %v and %d tries", first, took, tries)
			}
		})
	}
}

// A call waits for as long as its option says, and another call of the same client for as long as the client says.
func TestTimeoutOfOneCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &peer.Client{Target: "bookings", BaseURL: "http://bookings.test", Timeout: time.Second, Signer: &caller.Signer{From: "customers", Keys: keys(t, "bookings")}}
		c.HTTP = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		for _, of := range []struct {
			want    time.Duration
			options []peer.Option
		}{
			{time.Minute, []peer.Option{peer.Within(time.Minute), peer.IdempotencyKey("1")}},
			{10 * time.Millisecond, []peer.Option{peer.Within(10 * time.Millisecond)}},
			{time.Second, nil},
		} {
			for name, send := range map[string]func() error{
				"Do": func() error { return c.Do(ctx(), http.MethodPost, "/x", nil, nil, of.options...) },
				"Open": func() error {
					_, err := c.Open(ctx(), "/x", of.options...)
					return err
				},
			} {
				start := time.Now()
				if err := send(); !errors.Is(err, apperr.ErrTimeout) || time.Since(start) != of.want {
					t.Errorf("%s: %v after %s, want %s", name, err, time.Since(start), of.want)
				}
			}
		}
	})
}

// A peer that breaks its connections is not called for a while. A peer that responds is called, regardless of its response.
func TestBreakerOpensAndRefusesAtOnce(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{true, false} {
		var calls atomic.Int32
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			if broken {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusInternalServerError)
		})
		states := make(chan string, 1)
		c.Changed = func(state string) { states <- state }
		for range 100 {
			if err := c.Do(ctx(), http.MethodPost, "/x", nil, nil); !errors.Is(err, apperr.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
		}
		n := calls.Load()
		if broken && (n < 20 || n > 30 || <-states != "open") || !broken && n != 100 {
			t.Errorf("broken %v: %d calls reached the peer", broken, n)
		}
	}
}

// Open passes on the body while it arrives, returns the same errors as Do, and waits no longer than the time-out for the header.
func TestOpen(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refused":
			respondWith(http.StatusForbidden, `{"error":{"code":"insufficient_scope","message":"No."}}`)(w, r)
		case "/slow":
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, "one")
			_ = http.NewResponseController(w).Flush()
			<-more
			_, _ = io.WriteString(w, "two")
		}
	})
	res, err := c.Open(ctx(), "/list", peer.Header("Accept", "text/csv"))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 3)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "one" {
		t.Errorf("%q %v", first, err)
	}
	close(more)
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "two" {
		t.Errorf("%q %v", rest, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	var e *apperr.Error
	if _, err := c.Open(ctx(), "/refused"); !errors.As(err, &e) || e.Code != "insufficient_scope" || e.Kind != apperr.Forbidden {
		t.Errorf("%v", err)
	}
	hasty := client(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	hasty.Timeout = 20 * time.Millisecond
	if _, err := hasty.Open(ctx(), "/slow"); !errors.Is(err, apperr.ErrTimeout) {
		t.Errorf("%v", err)
	}
	if _, err := c.Open(context.Background(), "/list"); !errors.Is(err, caller.ErrNone) {
		t.Errorf("without a caller: %v", err)
	}
}

// The time-outs of one tenant do not open the breaker for the others. Those of several tenants do.
func TestTimeoutsOfOneTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &peer.Client{Target: "bookings", BaseURL: "http://bookings.test", Timeout: time.Millisecond, Signer: &caller.Signer{From: "customers", Keys: keys(t, "bookings")}}
		c.HTTP = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		tenant := func() context.Context {
			who := caller.FromContext(ctx())
			who.Tenant = ids.New[ids.TenantPrefix]()
			return caller.With(context.Background(), who)
		}
		busy := tenant()
		for range 60 {
			if err := c.Do(busy, http.MethodPost, "/x", nil, nil); !errors.Is(err, apperr.ErrTimeout) {
				t.Fatalf("one tenant: %v", err)
			}
		}
		var last error
		for range 60 {
			last = c.Do(tenant(), http.MethodPost, "/x", nil, nil)
		}
		if !errors.Is(last, apperr.ErrUnavailable) {
			t.Errorf("several tenants: %v", last)
		}
		for range 5 { // late probes of one tenant do not close it again
			time.Sleep(2 * time.Second)
			_ = c.Do(busy, http.MethodPost, "/x", nil, nil)
		}
		if err := c.Do(busy, http.MethodPost, "/x", nil, nil); !errors.Is(err, apperr.ErrUnavailable) {
			t.Errorf("after late probes: %v", err)
		}
	})
}
