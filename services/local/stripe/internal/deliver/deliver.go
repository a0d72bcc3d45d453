// Package deliver sends events to webhook endpoints with Stripe's signatures. It retries after a failure. Events of one payment
// intent are sent in the order in which they occurred.
package deliver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// queuesPerEndpoint is the number of deliveries that are sent to one endpoint at the same time. Events of one intent are in one
// queue.
const queuesPerEndpoint = 8

// Sender sends deliveries.
type Sender struct {
	DB     *store.DB
	Modes  *app.EventModes
	Client *http.Client
	// Retries are the delays before each further attempt. After the last attempt, the delivery is abandoned.
	Retries []time.Duration

	mu      sync.Mutex
	ctx     context.Context // of Start; queues start in it
	running sync.WaitGroup
	queues  map[string][]*queue
}

// Start queues the deliveries that an earlier process left behind. It sends them, and the deliveries from Add, until ctx ends.
func (s *Sender) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx, s.queues = ctx, map[string][]*queue{}
	s.mu.Unlock()
	return s.DB.View(func(t *store.Tx) error {
		left, err := t.Deliveries()
		for _, d := range left {
			s.Add(d)
		}
		return err
	})
}

// Wait waits for the attempts that are in progress when the ctx of Start ends.
func (s *Sender) Wait() { s.running.Wait() }

// Add queues a delivery as often as the account's mode specifies.
func (s *Sender) Add(d domain.Delivery) {
	mode := s.Modes.Of(d.Scope.Account)
	for range 1 + mode.Repeat {
		var wait time.Duration
		if mode.Shuffle > 0 {
			wait = rand.N(mode.Shuffle) //nolint:gosec // no secret
		}
		s.queue(item{Delivery: d, due: time.Now().Add(wait)})
	}
}

// queue puts an item into its queue. Before Start it does nothing, because Start loads the stored deliveries.
func (s *Sender) queue(i item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	some := s.queues[i.Endpoint]
	if some == nil {
		for range queuesPerEndpoint {
			l := newQueue()
			some = append(some, l)
			s.running.Go(func() { l.run(s.ctx, s) })
		}
		s.queues[i.Endpoint] = some
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(i.Queue)) // never fails
	some[h.Sum32()%queuesPerEndpoint].add(i)
}

// Wake makes every queue check again for due deliveries, after a change of the modes.
func (s *Sender) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, some := range s.queues {
		for _, l := range some {
			l.notify()
		}
	}
}

// send makes one attempt.
func (s *Sender) send(ctx context.Context, i item) {
	url, payload, signature, err := s.prepare(i.Delivery)
	if err == nil {
		err = s.post(ctx, url, payload, signature)
	}
	switch {
	case ctx.Err() != nil: // it is sent again after the next start
	case err == nil:
		s.finish(i.Delivery)
	default:
		s.again(i)
	}
}

// again queues the next attempt or gives up.
func (s *Sender) again(i item) {
	if i.Attempts >= len(s.Retries) {
		s.finish(i.Delivery)
		return
	}
	i.due = time.Now().Add(s.Retries[i.Attempts])
	i.Attempts++
	err := s.DB.Update(func(t *store.Tx) error { return t.PutDelivery(i.Delivery) })
	if err != nil {
		slog.Error("an attempt could not be stored", "event", i.Event, "error", err)
	}
	s.queue(i)
}

func (s *Sender) finish(d domain.Delivery) {
	if err := s.DB.Update(func(t *store.Tx) error { return t.DeleteDelivery(d) }); err != nil {
		slog.Error("a delivery could not be ended", "event", d.Event, "error", err)
	}
}

// prepare returns the URL, payload, and signature of a delivery.
func (s *Sender) prepare(d domain.Delivery) (url string, payload []byte, signature string, err error) {
	err = s.DB.View(func(t *store.Tx) error {
		endpoint, err := store.Get[domain.Endpoint](t, d.Scope, store.Endpoints, d.Endpoint)
		if err != nil {
			return err
		}
		payload = slices.Clone(t.Raw(d.Scope, store.Events, d.Event))
		url, signature = endpoint.URL, sign(payload, t.Now().Unix(), endpoint.Secret)
		return nil
	})
	return url, payload, signature, err
}

// sign returns the Stripe-Signature header.
func sign(payload []byte, now int64, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%d.", now) // never fails
	_, _ = mac.Write(payload)           // never fails
	return fmt.Sprintf("t=%d,v1=%x", now, mac.Sum(nil))
}

func (s *Sender) post(ctx context.Context, url string, payload []byte, signature string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	req.Header.Set("Stripe-Signature", signature)
	resp, err := s.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection is reused
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("%s returned %s", url, resp.Status)
	}
	return nil
}
