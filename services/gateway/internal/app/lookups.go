package app

import (
	"slices"
	"sync"
	"time"

	"holdfast.dev/services/gateway/internal/domain"
)

// Lookups limits the load on identity from credentials that this process has not seen yet. It limits the number of parallel
// lookups, and the number of unknown credentials per second. Further lookups wait in one queue per client address. The queues are
// served in turn, so that a client that guesses keys does not delay others.
type Lookups struct {
	atOnce int
	rate   float64 // unknown credentials per second; after an idle second, the same number at once

	mu        sync.Mutex
	running   int             // guarded by mu, like all fields below
	allowance float64         // number of unknown credentials that are allowed now
	counted   time.Time       // when allowance was computed
	queues    []*addressQueue // in the order in which they are served
	byAddress map[string]*addressQueue
	waking    bool // a timer will call dispatch
}

// addressQueue contains the waiting lookups of one address, in the order of their arrival.
type addressQueue struct {
	address string
	waiting []chan struct{} // each is closed when its lookup may start
}

const (
	// lookupWait is how long a lookup waits. It is less than the two seconds within which a request with a valid credential must
	// receive its response.
	lookupWait = time.Second
	// maxWaiting is the maximum number of waiting lookups of one address.
	maxWaiting = 1024
)

// NewLookups allows atOnce parallel lookups, and unknownPerSecond lookups that find no credential.
func NewLookups(atOnce, unknownPerSecond int) *Lookups {
	return &Lookups{
		atOnce: atOnce, rate: float64(unknownPerSecond), allowance: float64(unknownPerSecond), counted: time.Now(),
		byAddress: map[string]*addressQueue{},
	}
}

// Enter waits until a lookup for a client's address may start. It returns ErrGuessing if that takes too long. After a successful
// Enter, call Leave.
func (l *Lookups) Enter(address string) error {
	ready := make(chan struct{})
	address = domain.Network(address)
	if !l.enqueue(address, ready) {
		return domain.ErrGuessing
	}
	timer := time.NewTimer(lookupWait)
	defer timer.Stop()
	select {
	case <-ready:
		return nil
	case <-timer.C:
	}
	if !l.withdraw(address, ready) {
		return nil // it was allowed at the same time
	}
	return domain.ErrGuessing
}

// Leave ends a lookup. unknown reports that it found no credential.
func (l *Lookups) Leave(unknown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	if !unknown {
		l.allowance++
	}
	l.dispatch()
}

func (l *Lookups) enqueue(address string, ready chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byAddress[address]
	if q == nil {
		q = &addressQueue{address: address}
		l.byAddress[address] = q
		l.queues = append(l.queues, q)
	}
	if len(q.waiting) >= maxWaiting {
		return false
	}
	q.waiting = append(q.waiting, ready)
	l.dispatch()
	return true
}

// withdraw removes a lookup from its queue and reports whether it was still waiting.
func (l *Lookups) withdraw(address string, ready chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byAddress[address]
	if q == nil {
		return false
	}
	i := slices.Index(q.waiting, ready)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// dispatch starts as many lookups as allowed. The caller must hold l.mu.
func (l *Lookups) dispatch() {
	for len(l.queues) > 0 {
		next := l.queues[0]
		if len(next.waiting) > 0 && !l.take() {
			l.wakeLater()
			return
		}
		l.queues = l.queues[1:]
		if len(next.waiting) > 0 {
			close(next.waiting[0])
			next.waiting = next.waiting[1:]
		}
		if len(next.waiting) > 0 {
			l.queues = append(l.queues, next)
		} else {
			delete(l.byAddress, next.address)
		}
	}
}

func (l *Lookups) take() bool {
	now := time.Now()
	l.allowance = min(l.rate, l.allowance+now.Sub(l.counted).Seconds()*l.rate)
	l.counted = now
	if l.running >= l.atOnce || l.allowance < 1 {
		return false
	}
	l.running++
	l.allowance--
	return true
}

// wakeLater calls dispatch when one more unknown credential is allowed. When atOnce lookups run, Leave calls it.
func (l *Lookups) wakeLater() {
	if l.waking || l.running >= l.atOnce {
		return
	}
	l.waking = true
	time.AfterFunc(time.Duration((1-l.allowance)/l.rate*float64(time.Second))+time.Millisecond, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waking = false
		l.dispatch()
	})
}
