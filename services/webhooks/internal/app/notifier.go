package app

import (
	"sync"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Notifier wakes the open streams of a tenant and mode after events were written for them. It limits the number of open streams of
// a tenant in this process. It stores nothing for a tenant without streams.
type Notifier struct {
	MinInterval time.Duration // between two wakeups of a stream
	MaxStreams  int           // maximum number of open streams of a tenant, in both modes
	mu          sync.Mutex
	open        map[ids.Tenant]int
	audiences   map[Audience]*audienceStreams
}

// Audience is the tenant and mode that an event belongs to.
type Audience struct {
	Tenant   ids.Tenant
	Livemode bool
}

// audienceStreams are the open streams of one audience.
type audienceStreams struct {
	listeners map[*Listener]struct{}
	waiting   bool // MinInterval since the last wakeup is not over
	pending   bool // a broadcast arrived within that time
}

// Listener is one open stream.
type Listener struct {
	C        chan struct{} // receives a value after events were written; it buffers one wakeup
	notifier *Notifier
	audience Audience
}

// Listen opens a stream, or returns domain.ErrStreams if the tenant has MaxStreams open.
func (n *Notifier) Listen(audience Audience) (*Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[audience.Tenant] >= n.MaxStreams {
		return nil, domain.ErrStreams.WithMessage("The tenant already has %d open streams, the maximum. Close one, or wait for the time in Retry-After.", n.MaxStreams)
	}
	if n.open == nil {
		n.open, n.audiences = map[ids.Tenant]int{}, map[Audience]*audienceStreams{}
	}
	if n.audiences[audience] == nil {
		n.audiences[audience] = &audienceStreams{listeners: map[*Listener]struct{}{}}
	}
	l := &Listener{C: make(chan struct{}, 1), notifier: n, audience: audience}
	n.open[audience.Tenant]++
	n.audiences[audience].listeners[l] = struct{}{}
	return l, nil
}

// Close removes the stream, so that the tenant may open another one.
func (l *Listener) Close() {
	n := l.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[l.audience.Tenant]--; n.open[l.audience.Tenant] == 0 {
		delete(n.open, l.audience.Tenant)
	}
	delete(n.audiences[l.audience].listeners, l)
	if len(n.audiences[l.audience].listeners) == 0 {
		delete(n.audiences, l.audience)
	}
}

// Broadcast wakes the streams of one audience: now, or when MinInterval has passed since their last wakeup.
func (n *Notifier) Broadcast(audience Audience) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if streams := n.audiences[audience]; streams != nil {
		n.broadcast(streams)
	}
}

// broadcast is Broadcast with n.mu locked.
func (n *Notifier) broadcast(streams *audienceStreams) {
	if streams.waiting {
		streams.pending = true
		return
	}
	for l := range streams.listeners {
		select {
		case l.C <- struct{}{}:
		default:
		}
	}
	streams.waiting = true
	time.AfterFunc(n.MinInterval, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		pending := streams.pending
		streams.waiting, streams.pending = false, false
		if pending {
			n.broadcast(streams)
		}
	})
}
