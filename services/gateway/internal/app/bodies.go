package app

import (
	"sync"

	"holdfast.dev/services/gateway/internal/domain"
)

// Bodies bounds the bytes of requests' bodies that this process holds at once: of each credential, and of all.
type Bodies struct {
	one     int64 // of one credential
	all     int64 // of all of them
	metrics *Metrics
	mu      sync.Mutex
	sum     int64            // guarded by mu
	held    map[string]int64 // guarded by mu; by credential id, none of 0
}

// NewBodies allows each credential so many bytes at a time, and all of them together so many.
func NewBodies(one, all int64, m *Metrics) *Bodies {
	return &Bodies{one: one, all: all, metrics: m, held: map[string]int64{}}
}

// Take counts n more bytes of the credential: ErrBodies when it would hold too many, ErrBusy when the process would.
func (b *Bodies) Take(credential string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[credential]+n > b.one {
		b.metrics.Limited.Inc()
		return domain.ErrBodies
	}
	if b.sum+n > b.all {
		return domain.ErrBusy
	}
	b.count(credential, n)
	return nil
}

// Free gives back what Take has counted.
func (b *Bodies) Free(credential string, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(credential, -n)
}

func (b *Bodies) count(credential string, n int64) {
	b.sum += n
	b.metrics.BodyBytes.Set(float64(b.sum))
	if b.held[credential] += n; b.held[credential] == 0 {
		delete(b.held, credential)
	}
}
