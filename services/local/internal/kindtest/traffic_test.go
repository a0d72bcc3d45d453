package kindtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// call is one request.
type call struct{ method, path, body, idempotency, key string }

// client behaves like an ordinary client behind an ordinary load balancer: it reuses connections, and retries a refused
// connection, because nothing was sent.
var client = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{
	MaxIdleConnsPerHost: 100,
	DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		for range 20 {
			if conn, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address); !errors.Is(err, syscall.ECONNREFUSED) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		return conn, err
	},
}}

// fetchStatus sends the request and returns the status.
func fetchStatus(ctx context.Context, client *http.Client, c call) (int, error) {
	status, _, err := fetch(ctx, client, c)
	return status, err
}

func fetch(ctx context.Context, client *http.Client, c call) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, base+c.path, strings.NewReader(c.body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.idempotency != "" {
		req.Header.Set("Idempotency-Key", c.idempotency)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// traffic sends requests at a constant rate, whether or not earlier ones have completed.
type traffic struct {
	quit, done chan struct{}
	mu         sync.Mutex
	sent       int
	took       []duration // of the requests with a response
	failed     []failure
	pending    map[*call]time.Time
}

// duration is how long a request took that began at a time.
type duration struct {
	began time.Time
	took  time.Duration
}

// failure is a request without a 2xx response.
type failure struct {
	call
	at, began time.Time
	status    int
	err       error
	body      string
}

func (f failure) String() string {
	return fmt.Sprintf("%s %s %s (%v): %d %v %.200s", f.began.Format(time.StampMilli), f.method, f.path, f.at.Sub(f.began).Round(time.Millisecond), f.status, f.err, f.body)
}

// send starts to send the calls of next, `rate` per second.
func send(t *testing.T, rate int, secret string, next func() call) *traffic {
	t.Helper()
	tr := &traffic{quit: make(chan struct{}), done: make(chan struct{}), pending: map[*call]time.Time{}}
	go func() {
		defer close(tr.done)
		var all sync.WaitGroup
		defer all.Wait()
		due := time.NewTicker(time.Second / time.Duration(rate))
		defer due.Stop()
		for {
			select {
			case <-tr.quit:
				return
			case <-due.C:
				all.Go(func() {
					c := next()
					c.key = secret
					tr.do(c)
				})
			}
		}
	}()
	t.Cleanup(func() { tr.stop() })
	return tr
}

func (tr *traffic) do(c call) {
	began := time.Now()
	tr.mu.Lock()
	tr.sent++
	tr.pending[&c] = began
	tr.mu.Unlock()
	status, body, err := fetch(context.Background(), client, c)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	delete(tr.pending, &c)
	if err == nil {
		tr.took = append(tr.took, duration{began, time.Since(began)})
	}
	if err != nil || status/100 != 2 {
		tr.failed = append(tr.failed, failure{call: c, at: time.Now(), began: began, status: status, err: err, body: string(body)})
	}
}

// inFlight returns the number of requests without a response.
func (tr *traffic) inFlight() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.pending)
}

// stop stops sending and waits for the requests in flight.
func (tr *traffic) stop() *traffic {
	select {
	case <-tr.quit:
	default:
		close(tr.quit)
	}
	<-tr.done
	return tr
}

// none fails the test if a request failed.
func (tr *traffic) none(t *testing.T, when string) {
	t.Helper()
	t.Logf("%s: %d requests, %d failed", when, tr.sent, len(tr.failed))
	for i, f := range tr.failed {
		if i == 10 {
			t.Errorf("and %d more", len(tr.failed)-10)
			break
		}
		t.Errorf("failed: %v", f)
	}
	if tr.sent == 0 {
		t.Error("nothing was sent")
	}
}

// percentile returns a percentile of the durations of the requests that began in a period, after stop.
func (tr *traffic) percentile(percent int, from, to time.Time) time.Duration {
	var took []time.Duration
	for _, d := range tr.took {
		if d.began.After(from) && d.began.Before(to) {
			took = append(took, d.took)
		}
	}
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[min(len(took)*percent/100, len(took)-1)].Round(100 * time.Microsecond)
}

func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, rand.Uint64()) }

// newCustomer returns a write with a key. The tag allows counting its effects.
func newCustomer() call {
	tag := unique("kind")
	return call{
		method: http.MethodPost, path: "/customers", idempotency: tag,
		body: fmt.Sprintf(`{"first_name":"K","email":"k@example.com","metadata":{"tag":%q}}`, tag),
	}
}

func newBooking() call {
	tag := unique("kind")
	return call{
		method: http.MethodPost, path: "/bookings", idempotency: tag,
		body: fmt.Sprintf(`{"event_date":"2034-01-02","metadata":{"tag":%q}}`, tag),
	}
}

func readBookings() call { return call{method: http.MethodGet, path: "/bookings?limit=20"} }

func readTenant() call { return call{method: http.MethodGet, path: "/tenant"} }

// mixed returns a random call to any service.
func mixed() call {
	switch rand.IntN(6) {
	case 0:
		return newCustomer()
	case 1:
		return newBooking()
	case 2:
		return call{method: http.MethodGet, path: "/customers?limit=5"}
	case 3:
		return call{method: http.MethodGet, path: "/webhook-endpoints"}
	case 4:
		return readTenant()
	default:
		return readBookings()
	}
}

// once repeats a write with its key until it succeeds, and fails unless its effect exists exactly once.
func once(t *testing.T, c call) {
	t.Helper()
	await(t, "a response to "+c.body, time.Minute, func() bool {
		status, err := fetchStatus(t.Context(), client, c)
		return err == nil && status == http.StatusCreated
	})
	status, body, err := fetch(t.Context(), client, call{method: http.MethodGet, path: c.path + "?metadata[tag]=" + c.idempotency, key: c.key})
	var list struct{ Data []struct{ ID string } }
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &list) != nil || len(list.Data) != 1 {
		t.Errorf("%s is there %d times: %d %v %s", c.idempotency, len(list.Data), status, err, body)
	}
}
