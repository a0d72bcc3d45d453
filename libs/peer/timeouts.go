package peer

import (
	"slices"
	"sync"
	"time"
)

// The time-outs of one client that a breaker counts: fewer than it needs to open, so that one client's slow requests never close a service
// for the others, while those of several together do.
const (
	timeoutsPerClient = 5
	timeoutWindow     = 10 * time.Second
)

// Timeouts counts the time-outs of each client, which is a tenant or, without a credential, an address. The zero value is ready.
type Timeouts struct {
	mu      sync.Mutex
	swept   time.Time              // guarded by mu
	counted map[string][]time.Time // guarded by mu: those of the window that a breaker has counted, by client
}

// Count reports whether a breaker counts a time-out of the client, and notes it then. Within any timeoutWindow that are timeoutsPerClient.
func (t *Timeouts) Count(client string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	over := func(at time.Time) bool { return now.Sub(at) >= timeoutWindow }
	if over(t.swept) { // clients whose time-outs are over are forgotten
		t.swept = now
		for name, list := range t.counted {
			if over(list[len(list)-1]) {
				delete(t.counted, name)
			}
		}
	}
	list := slices.DeleteFunc(t.counted[client], over)
	counts := len(list) < timeoutsPerClient
	if counts {
		list = append(list, now)
	}
	if t.counted == nil {
		t.counted = map[string][]time.Time{}
	}
	t.counted[client] = list
	return counts
}
