package app

import (
	"slices"
	"sync"
	"time"

	"holdfast.dev/services/gateway/internal/domain"
)

// Lookups bounds what credentials that this process has not seen yet cost identity: how many are looked up at once, and
// how many a second may turn out to be unknown. Those over it wait, and the addresses that they come from have their
// turns one after the other: a client that guesses keys takes no more of it than one that brings a single good one.
type Lookups struct {
	atOnce int
	rate   float64 // unknown ones a second, and as many at once after a quiet second

	mu      sync.Mutex
	running int              // guarded by mu, as all that follows
	left    float64          // unknown ones that are left
	counted time.Time        // when left was right
	turns   []*line          // the first is next
	lines   map[string]*line // those of turns, by address
	waking  bool             // a timer will dispatch
}

// line is those who wait of one address, first come first served.
type line struct {
	address string
	waiting []chan struct{} // closed when it is their turn
}

const (
	// lookupWait is how long a credential waits for its turn. It is below the two seconds within which a good one
	// is to be answered.
	lookupWait = time.Second
	// lookupLine is how many of one address may wait.
	lookupLine = 1024
)

// NewLookups allows so many look-ups at once, and so many a second that find nothing.
func NewLookups(atOnce, unknownPerSecond int) *Lookups {
	return &Lookups{
		atOnce: atOnce, rate: float64(unknownPerSecond), left: float64(unknownPerSecond), counted: time.Now(), lines: map[string]*line{},
	}
}

// Enter waits for the turn of a client's address: ErrGuessing when it does not come in time. Who entered must Leave.
func (l *Lookups) Enter(address string) error {
	turn := make(chan struct{})
	address = domain.Network(address)
	if !l.queue(address, turn) {
		return domain.ErrGuessing
	}
	timer := time.NewTimer(lookupWait)
	defer timer.Stop()
	select {
	case <-turn:
		return nil
	case <-timer.C:
	}
	if !l.withdraw(address, turn) {
		return nil // its turn came with the end of the wait
	}
	return domain.ErrGuessing
}

// Leave ends a look-up. One that turned out to be unknown is counted.
func (l *Lookups) Leave(unknown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	if !unknown {
		l.left++
	}
	l.dispatch()
}

func (l *Lookups) queue(address string, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.lines[address]
	if of == nil {
		of = &line{address: address}
		l.lines[address] = of
		l.turns = append(l.turns, of)
	}
	if len(of.waiting) >= lookupLine {
		return false
	}
	of.waiting = append(of.waiting, turn)
	l.dispatch()
	return true
}

// withdraw reports whether turn still waited.
func (l *Lookups) withdraw(address string, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.lines[address]
	if of == nil {
		return false
	}
	i := slices.Index(of.waiting, turn)
	if i < 0 {
		return false
	}
	of.waiting = slices.Delete(of.waiting, i, i+1)
	return true
}

// dispatch gives turns while there are some to give. l.mu is held.
func (l *Lookups) dispatch() {
	for len(l.turns) > 0 {
		next := l.turns[0]
		if len(next.waiting) > 0 && !l.take() {
			l.wakeLater()
			return
		}
		l.turns = l.turns[1:]
		if len(next.waiting) > 0 {
			close(next.waiting[0])
			next.waiting = next.waiting[1:]
		}
		if len(next.waiting) > 0 {
			l.turns = append(l.turns, next)
		} else {
			delete(l.lines, next.address)
		}
	}
}

func (l *Lookups) take() bool {
	now := time.Now()
	l.left = min(l.rate, l.left+now.Sub(l.counted).Seconds()*l.rate)
	l.counted = now
	if l.running >= l.atOnce || l.left < 1 {
		return false
	}
	l.running++
	l.left--
	return true
}

// wakeLater dispatches again when one more may be unknown. Where all places are taken, Leave does it.
func (l *Lookups) wakeLater() {
	if l.waking || l.running >= l.atOnce {
		return
	}
	l.waking = true
	time.AfterFunc(time.Duration((1-l.left)/l.rate*float64(time.Second))+time.Millisecond, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waking = false
		l.dispatch()
	})
}
