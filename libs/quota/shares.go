package quota

import (
	"context"
	"sync"
	"time"
)

// shares are what each client uses of something that all clients share. Only clients with open requests have one.
type shares[K comparable] struct {
	each    int // requests of a client that run at the same time
	most    int // open requests of a client; 0: no limit
	mu      sync.Mutex
	clients map[K]*share // guarded by mu
}

type share struct {
	open    int // requests that run or wait
	running chan struct{}
}

func newShares[K comparable](each, most int) *shares[K] {
	return &shares[K]{each: each, most: most, clients: map[K]*share{}}
}

// enter counts one more open request of the client. It returns nil if the client has too many.
func (s *shares[K]) enter(client K) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.clients[client]
	if own == nil {
		own = &share{running: make(chan struct{}, s.each)}
		s.clients[client] = own
	}
	if s.most > 0 && own.open == s.most {
		return nil
	}
	own.open++
	return own
}

// leave ends an open request that does not run.
func (s *shares[K]) leave(client K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(client)
}

// free ends a request that runs.
func (s *shares[K]) free(client K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	<-s.clients[client].running
	s.drop(client)
}

func (s *shares[K]) drop(client K) {
	own := s.clients[client]
	if own.open--; own.open == 0 {
		delete(s.clients, client)
	}
}

// try puts a token into c if there is room.
func try(c chan struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
		return false
	}
}

// take puts a token into c. It returns late if the timer fires before there is room.
func take(ctx context.Context, c chan struct{}, timer <-chan time.Time, late error) error {
	if try(c) {
		return nil
	}
	select {
	case c <- struct{}{}:
		return nil
	case <-timer:
		return late
	case <-ctx.Done():
		return ctx.Err()
	}
}
