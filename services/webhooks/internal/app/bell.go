package app

import (
	"sync"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Bell wakes the open streams of a tenant and mode when events have come in for them, and bounds how many streams
// a tenant has open in this process. It keeps nothing of a tenant without streams.
type Bell struct {
	Gap   time.Duration // between two wakes of a stream, at least
	Most  int           // open streams of a tenant, of both modes together
	mu    sync.Mutex
	open  map[ids.Tenant]int
	lines map[Audience]*line
}

// Audience is who sees an event.
type Audience struct {
	Tenant   ids.Tenant
	Livemode bool
}

// line is the streams of one audience.
type line struct {
	listeners map[*Listener]struct{}
	resting   bool // the gap since the last wake is not over
	late      bool // a ring came in that gap
}

// Listener is one open stream.
type Listener struct {
	C    chan struct{} // receives after events came in; one wake is kept for a reader who is busy
	bell *Bell
	of   Audience
}

// Listen opens a stream, or returns domain.ErrStreams when the tenant has the most already.
func (b *Bell) Listen(of Audience) (*Listener, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[of.Tenant] >= b.Most {
		return nil, domain.ErrStreams.Saying("The tenant has %d streams open, and may have no more. Close one, or wait for the time in Retry-After.", b.Most)
	}
	if b.open == nil {
		b.open, b.lines = map[ids.Tenant]int{}, map[Audience]*line{}
	}
	if b.lines[of] == nil {
		b.lines[of] = &line{listeners: map[*Listener]struct{}{}}
	}
	l := &Listener{C: make(chan struct{}, 1), bell: b, of: of}
	b.open[of.Tenant]++
	b.lines[of].listeners[l] = struct{}{}
	return l, nil
}

// Close gives the stream's place back.
func (l *Listener) Close() {
	b := l.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[l.of.Tenant]--; b.open[l.of.Tenant] == 0 {
		delete(b.open, l.of.Tenant)
	}
	delete(b.lines[l.of].listeners, l)
	if len(b.lines[l.of].listeners) == 0 {
		delete(b.lines, l.of)
	}
}

// Ring wakes the streams of one audience: at once, or at the end of the gap since they were woken last.
func (b *Bell) Ring(of Audience) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ln := b.lines[of]; ln != nil {
		b.ring(ln)
	}
}

func (b *Bell) ring(ln *line) {
	if ln.resting {
		ln.late = true
		return
	}
	for l := range ln.listeners {
		select {
		case l.C <- struct{}{}:
		default:
		}
	}
	ln.resting = true
	time.AfterFunc(b.Gap, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		late := ln.late
		ln.resting, ln.late = false, false
		if late {
			b.ring(ln)
		}
	})
}
