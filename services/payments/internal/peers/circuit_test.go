package peers_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
)

// shared is a gateway that serves each account, except those in broken, and counts the requests of each key.
type shared struct {
	*peers.Stripe

	mu       sync.Mutex
	broken   map[string]http.HandlerFunc // by secret key
	received map[string]int
}

func newShared(t *testing.T, timeout time.Duration, inFlight int) *shared {
	t.Helper()
	s := &shared{broken: map[string]http.HandlerFunc{}, received: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		s.received[key]++
		broken := s.broken[key]
		s.mu.Unlock()
		if broken != nil {
			broken(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"id":"pi_1","object":"payment_intent","status":"requires_payment_method","currency":"usd"}`))
	}))
	t.Cleanup(server.Close)
	s.Stripe = peers.NewStripe(server.URL, timeout, inFlight)
	return s
}

// breaks makes how handle the calls of an account. nil repairs the account.
func (s *shared) breaks(a domain.Account, how http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[string(a.SecretKey)] = how
}

func (s *shared) requests(a domain.Account) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received[string(a.SecretKey)]
}

func (s *shared) create(ctx context.Context, a domain.Account) error {
	p := domain.Intent{ID: ids.New[domain.IntentPrefix](), Amount: money.Amount{Minor: 500, Currency: "USD"}, CaptureMethod: domain.CaptureAutomatic}
	_, err := s.Create(ctx, a, p)
	return err
}

func anAccount(key string) domain.Account {
	return domain.Account{ID: ids.New[domain.AccountPrefix](), SecretKey: domain.Secret(key)}
}

func respondWith(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

const failed = `{"error":{"type":"api_error","message":"Sorry."}}`

// never does not respond until the caller has disconnected.
func never(_ http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // reads the body to its end: only then does the server notice that the caller has disconnected
	<-r.Context().Done()
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// TestCircuitOfAnAccount checks that an account whose calls keep failing is no longer called, and that its calls fail immediately.
// Calls of another account succeed in the meantime. A probe closes the circuit when the account is served again.
func TestCircuitOfAnAccount(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]http.HandlerFunc{
		"429": respondWith(429, `{"error":{"type":"invalid_request_error","code":"rate_limit"}}`), "500": respondWith(500, failed), "503": respondWith(503, "no JSON"),
		"never": never, "closed": hangUp,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dead, well := newShared(t, 200*time.Millisecond, 4), anAccount("sk_test_dead"), anAccount("sk_test_well")
			s.breaks(dead, how)
			var busy *domain.BusyError
			for n := 0; ; n++ {
				err := s.create(t.Context(), dead)
				if errors.As(err, &busy) && s.requests(dead) == n {
					break // nothing was sent
				}
				if err == nil || n > 20 {
					t.Fatalf("call %d: %v", n, err)
				}
			}
			if busy.RetryAfter < time.Second || busy.RetryAfter > 10*time.Second {
				t.Errorf("Retry-After %v", busy.RetryAfter)
			}
			for range 20 {
				if err := s.create(t.Context(), well); err != nil {
					t.Errorf("the other account: %v", err)
				}
			}
			s.breaks(dead, nil)
			until(t, "the circuit is closed", func() bool { return s.create(t.Context(), dead) == nil })
		})
	}
}

// TestProbesAreFew checks that a probe that fails opens the circuit again, with one request and not one per caller.
func TestProbesAreFew(t *testing.T) {
	t.Parallel()
	s, dead := newShared(t, time.Second, 64), anAccount("sk_test_dead")
	s.breaks(dead, respondWith(500, failed))
	for range 5 {
		_ = s.create(t.Context(), dead)
	}
	until(t, "a probe is made", func() bool {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { _ = s.create(t.Context(), dead) })
		}
		all.Wait()
		return s.requests(dead) > 5
	})
	if n := s.requests(dead); n != 6 {
		t.Errorf("%d requests, want 5 and a probe", n)
	}
}

// TestCircuitStaysClosed checks that results that show nothing about the gateway's health open no circuit: refusals, stored
// responses, and callers that have disconnected.
func TestCircuitStaysClosed(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]http.HandlerFunc{
		"declined": respondWith(402, `{"error":{"type":"card_error","code":"card_declined","message":"No."}}`),
		"keys":     respondWith(401, `{"error":{"type":"invalid_request_error","message":"No."}}`),
		"running":  respondWith(409, `{"error":{"type":"idempotency_error","message":"Later."}}`),
		"stored":   respondWith(500, failed, "Idempotent-Replayed", "true"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, a := newShared(t, time.Second, 4), anAccount("sk_test_1")
			s.breaks(a, how)
			for range 20 {
				_ = s.create(t.Context(), a)
			}
			if n := s.requests(a); n != 20 {
				t.Errorf("%d requests, want 20", n)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		s, a := newShared(t, time.Minute, 4), anAccount("sk_test_1")
		var came atomic.Int32
		for range 20 {
			ctx, leave := context.WithCancel(t.Context())
			s.breaks(a, func(w http.ResponseWriter, r *http.Request) {
				came.Add(1)
				leave()
				never(w, r)
			})
			_ = s.create(ctx, a)
			leave()
		}
		if n := came.Load(); n != 20 {
			t.Errorf("%d requests, want 20", n)
		}
	})
}

// TestCircuitOpensForImpatientCallers checks that callers that disconnect after a long wait open the circuit, because the gateway
// does not serve the account.
func TestCircuitOpensForImpatientCallers(t *testing.T) {
	t.Parallel()
	s, dead := newShared(t, 400*time.Millisecond, 4), anAccount("sk_test_dead")
	s.breaks(dead, never)
	for range 5 {
		ctx, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_ = s.create(ctx, dead)
		leave()
	}
	var busy *domain.BusyError
	if err := s.create(t.Context(), dead); !errors.As(err, &busy) || s.requests(dead) != 5 {
		t.Errorf("%v after %d requests", err, s.requests(dead))
	}
}

// holds makes the gateway delay its responses to an account until release is called.
func (s *shared) holds(a domain.Account) (release func()) {
	released := make(chan struct{})
	s.breaks(a, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
			respondWith(200, `{"id":"pi_1","object":"payment_intent","status":"requires_payment_method","currency":"usd"}`)(w, r)
		case <-r.Context().Done():
		}
	})
	return sync.OnceFunc(func() { close(released) })
}

// TestCallsWaitForAPlace checks that a call that finds no place waits for half of a call's time, and is then not sent. A call that
// gets its place late still has all of its time.
func TestCallsWaitForAPlace(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	s, a := newShared(t, timeout, 2), anAccount("sk_test_1")
	release := s.holds(a)
	defer release()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if err := s.create(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
	until(t, "both places are taken", func() bool { return s.requests(a) == 2 })
	began := time.Now()
	all.Go(func() {
		time.Sleep(timeout / 4)
		if err := s.create(t.Context(), a); err != nil { // it gets its place when the first two have completed
			t.Errorf("the call that waited: %v", err)
		}
	})
	var busy *domain.BusyError
	if err := s.create(t.Context(), a); !errors.As(err, &busy) || s.requests(a) != 2 {
		t.Errorf("%v after %d requests", err, s.requests(a))
	}
	if took := time.Since(began); took < timeout/2 || took > timeout*3/4 {
		t.Errorf("it waited for %v", took)
	}
	release()
	all.Wait()
}

// TestWorkersLeavePlaces checks that the workers of the service leave half of the places to clients.
func TestWorkersLeavePlaces(t *testing.T) {
	t.Parallel()
	s, a := newShared(t, 10*time.Second, 8), anAccount("sk_test_1")
	release := s.holds(a)
	defer release()
	worker := caller.With(t.Context(), caller.Service("payments", ids.New[ids.TenantPrefix](), caller.Test))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { _ = s.create(worker, a) })
	}
	until(t, "the workers' places are taken", func() bool { return s.requests(a) == 4 })
	for range 4 {
		all.Go(func() {
			if err := s.create(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
	until(t, "the clients' places are taken", func() bool { return s.requests(a) == 8 })
	release()
	all.Wait()
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}
