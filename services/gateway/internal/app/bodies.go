package app

import (
	"sync"

	"holdfast.dev/services/gateway/internal/domain"
)

// Bodies limits the bytes of request bodies that this process holds at the same time, for each credential and in total.
type Bodies struct {
	one     int64 // for one credential
	all     int64 // for all of them
	metrics *Metrics
	mu      sync.Mutex
	sum     int64            // guarded by mu
	held    map[string]int64 // guarded by mu; by credential id, without zeros
}

// NewBodies allows each credential at most `one` bytes at a time, and all credentials together at most `all`.
func NewBodies(one, all int64, m *Metrics) *Bodies {
	return &Bodies{one: one, all: all, metrics: m, held: map[string]int64{}}
}

// Take counts n more bytes of the credential. It returns ErrBodies if the credential would exceed its limit, and ErrBusy if the
// process would.
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

// Free releases bytes that Take counted.
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
