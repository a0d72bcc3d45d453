package holdfast

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneKeyForAllAttempts checks that all attempts of a write have the same body and the same key, and that each write has another key.
func TestOneKeyForAllAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, respond(503, failure("unavailable")), cut, respond(201, booking, "Idempotent-Replayed", "true", "X-Request-Id", "req_9"))
		var r Response
		b, err := c.Bookings.Create(t.Context(), BookingCreate{EventDate: Ptr("2030-06-01")}, WithResponse(&r))
		if err != nil || b.ID != "bk_1" || b.Status != BookingStatusPending || b.TotalAmount.Amount != 9000 || b.Notes != nil {
			t.Fatalf("%+v %v", b, err)
		}
		if !r.Replayed || r.Attempts != 3 || r.Status != 201 || r.RequestID != "req_9" || !strings.Contains(string(r.Body), "a_new_field") {
			t.Errorf("%+v", r)
		}
		requests := s.requests()
		if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(r.IdempotencyKey) {
			t.Errorf("the key %s is no UUID of version 4", r.IdempotencyKey)
		}
		if want := strings.TrimSuffix(strings.Repeat(r.IdempotencyKey+" ", 3), " "); keys(requests) != want {
			t.Errorf("the keys are %s", keys(requests))
		}
		for _, request := range requests {
			if request.body != `{"event_date":"2030-06-01"}` || request.Method != http.MethodPost || request.URL.String() != "https://holdfast.test/api/v1/bookings" {
				t.Errorf("%s %s %s", request.Method, request.URL, request.body)
			}
		}
		if _, err := c.Bookings.Create(t.Context(), BookingCreate{}); err != nil || strings.Count(keys(s.requests()), r.IdempotencyKey) != 3 {
			t.Errorf("a second write: %v, the keys %s", err, keys(s.requests()))
		}
		if _, err := c.Bookings.Create(t.Context(), BookingCreate{}, WithIdempotencyKey("order-17")); err != nil || !strings.HasSuffix(keys(s.requests()), " order-17") {
			t.Errorf("an own key: %v, the keys %s", err, keys(s.requests()))
		}
	})
}

// TestWhatIsRepeated checks which failures of a write are repeated.
func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		step step
		want int
	}{
		"408":                     {respond(408, ""), 3},
		"409 another booking":     {respond(409, failure("slot_unavailable")), 1},
		"409 in progress":         {respond(409, failure("idempotency_in_progress")), 3},
		"425":                     {respond(425, ""), 3},
		"429":                     {respond(429, failure("rate_limited")), 3},
		"500":                     {respond(500, failure("internal_error")), 3},
		"502":                     {respond(502, "<html>"), 3},
		"503":                     {respond(503, failure("unavailable")), 3},
		"504":                     {respond(504, failure("upstream_timeout")), 3},
		"503 that is final":       {respond(503, failure("unavailable"), "Service-Should-Retry", "false"), 1},
		"502 that is final":       {respond(502, failure("payment_intent_failed"), "Service-Should-Retry", "false"), 1},
		"400":                     {respond(400, failure("malformed_json")), 1},
		"401":                     {respond(401, failure("invalid_credential")), 1},
		"404":                     {respond(404, failure("booking_not_found")), 1},
		"412":                     {respond(412, failure("version_mismatch")), 1},
		"422":                     {respond(422, failure("idempotency_mismatch")), 1},
		"501":                     {respond(501, ""), 1},
		"307":                     {respond(307, "", "Location", "https://elsewhere.test"), 1},
		"a cut connection":        {cut, 3},
		"no response":             {hang, 3},
		"a wait of over a minute": {respond(503, failure("unavailable"), "Retry-After", "61"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, s := newClient(t, tc.step)
				c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				_, err := c.Bookings.Create(t.Context(), BookingCreate{})
				if err == nil || len(s.requests()) != tc.want {
					t.Errorf("%d attempts, want %d: %v", len(s.requests()), tc.want, err)
				}
				before := len(s.requests())
				if _, err := c.Bookings.Create(t.Context(), BookingCreate{}, WithMaxRetries(0)); err == nil || len(s.requests()) != before+1 {
					t.Errorf("without retries: %d attempts, %v", len(s.requests())-before, err)
				}
			})
		})
	}
}

// TestWritesWithoutKey checks that a write without a key is repeated only if it was not sent, and a read always.
func TestWritesWithoutKey(t *testing.T) {
	t.Parallel()
	dial := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	for _, tc := range []struct {
		method string
		step   step
		want   int
	}{
		{http.MethodPost, cut, 1},
		{http.MethodPost, respond(503, ""), 1},
		{http.MethodPost, dial, 3},
		{http.MethodGet, cut, 3},
		{http.MethodDelete, cut, 3},
		{http.MethodDelete, respond(503, ""), 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := newClient(t, tc.step)
			if err := none(t.Context(), c, call{method: tc.method, path: "/test-clock"}, nil); err == nil || len(s.requests()) != tc.want {
				t.Errorf("%s: %d attempts, want %d (%v)", tc.method, len(s.requests()), tc.want, err)
			}
		})
	}
}

// TestRetryAfter checks that the client waits as long as the platform says, in seconds or until a date.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"7", "date"} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			if value == "date" {
				value = start.Add(7 * time.Second).UTC().Format(http.TimeFormat)
			}
			c, _ := newClient(t, respond(429, failure("rate_limited"), "Retry-After", value), respond(200, booking))
			if _, err := c.Bookings.Get(t.Context(), "bk_1", BookingsGetParams{}); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start).Round(time.Second); d != 7*time.Second {
				t.Errorf("%s: waited %v", value, d)
			}
		})
	}
}

// TestBackoff checks the limits of the random waits.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for retry, limit := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
		var longest time.Duration
		for range 2000 {
			longest = max(longest, backoff(retry))
		}
		if longest >= limit || longest < limit*9/10 {
			t.Errorf("retry %d waits up to %v, want almost %v", retry, longest, limit)
		}
	}
}

// TestDeadlines checks that the time of an attempt, the time of all attempts and the caller's context end a request.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, hang)
		start := time.Now()
		_, err := c.Bookings.Create(t.Context(), BookingCreate{}, WithIdempotencyKey("k"), WithAttemptTimeout(3*time.Second), WithTimeout(5*time.Second), WithMaxRetries(9))
		var e *ConnectionError
		if !errors.As(err, &e) || e.IdempotencyKey != "k" || e.Method != "POST" || e.Attempts != len(s.requests()) || !errors.Is(err, errTimeout) {
			t.Errorf("%#v", err)
		}
		if d := time.Since(start); d > 5*time.Second || d < 3*time.Second || len(s.requests()) > 2 {
			t.Errorf("%d attempts in %v", len(s.requests()), d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, respond(503, failure("unavailable"), "Retry-After", "50"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Me.Get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second || len(s.requests()) != 1 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if _, err := c.Me.Get(t.Context(), WithTimeout(40*time.Second)); !errors.Is(err, ErrUnavailable) || len(s.requests()) != 2 {
			t.Errorf("a wait that passes the deadline: %v", err)
		}
	})
}

// TestACutResponse checks that a write is repeated with its key if the response ends early.
func TestACutResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, func(r *http.Request) (*http.Response, error) {
			response, err := respond(201, booking)(r)
			response.Body = &body{brokenBody{}, func() {}}
			return response, err
		}, respond(201, booking))
		if b, err := c.Bookings.Create(t.Context(), BookingCreate{}); err != nil || b.ID != "bk_1" {
			t.Fatal(err)
		}
		if all := strings.Fields(keys(s.requests())); len(all) != 2 || all[0] != all[1] {
			t.Errorf("the keys are %v", all)
		}
	})
}

// brokenBody is a body whose connection fails.
type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errCut }

func (brokenBody) Close() error { return nil }
