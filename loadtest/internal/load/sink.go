package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Sink is a receiver of webhooks on loopback. It responds with 200 to everything, and records how long after the
// event's creation each first attempt arrived. An event's time is that of the transaction that created it, in
// milliseconds.
type Sink struct {
	URL    string
	began  func(body []byte) (time.Time, bool)
	server *http.Server

	mu    sync.Mutex
	times []time.Duration
	last  time.Time
}

// Listen starts a sink. Close ends it. began returns the start time for an event, and false for an event that is not
// measured. If it is nil, the start time is the event's creation.
func Listen(ctx context.Context, began func(body []byte) (time.Time, bool)) (*Sink, error) {
	if began == nil {
		began = created
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	s := &Sink{URL: "http://" + l.Addr().String(), began: began}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(l) }() // ends with Close
	return s, nil
}

// Close closes the server and all its connections.
func (s *Sink) Close() { _ = s.server.Close() }

// ServeHTTP implements http.Handler.
func (s *Sink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Service-Delivery-Attempt") != "1" {
		return
	}
	at, ok := s.began(body)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times, s.last = append(s.times, now.Sub(at)), now
}

// created returns the event's creation time.
func created(body []byte) (time.Time, bool) {
	var event struct {
		CreatedAt time.Time `json:"created_at"`
	}
	err := json.Unmarshal(body, &event)
	return event.CreatedAt, err == nil && !event.CreatedAt.IsZero()
}

// Await waits until n first attempts have arrived, and returns them as a sample of the time since from.
func (s *Sink) Await(ctx context.Context, from time.Time, n int, limit time.Duration) (Sample, error) {
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		came := len(s.times)
		if came >= n {
			sample := newSample(s.times, s.last.Sub(from))
			s.times = nil
			s.mu.Unlock()
			return sample, nil
		}
		s.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return Sample{}, err
		}
		if time.Now().After(end) {
			return Sample{}, fmt.Errorf("%d of %d deliveries came within %v", came, n, limit)
		}
	}
}
