package app

import (
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/services/gateway/internal/domain"
)

// Counters are sliding windows of this process only, one per name. They follow the windows in Redis, so that counting continues
// from these values, not from zero, when Redis does not respond.
type Counters struct {
	windows cache[string, *counter]
	skew    atomic.Int64 // Redis's clock minus this process's, in microseconds
}

type counter struct {
	mu sync.Mutex
	w  domain.Window
}

// NewCounters stores the `size` most used windows.
func NewCounters(size int) *Counters {
	return &Counters{windows: newCache[string, *counter](size, 2*time.Minute, sinceUse)}
}

func (c *Counters) of(name string) *counter {
	if w, ok := c.windows.get(name); ok {
		return w
	}
	return c.windows.add(name, &counter{})
}

func (c *Counters) now() int64 { return time.Now().UnixMicro() + c.skew.Load() }

// Adopt replaces the window of name with the shared one. now is the time of the shared window by Redis's clock. An older window,
// from a late response, changes nothing.
func (c *Counters) Adopt(name string, w domain.Window, now int64) {
	c.skew.Store(now - time.Now().UnixMicro())
	one := c.of(name)
	one.mu.Lock()
	defer one.mu.Unlock()
	if w.Start > one.w.Start || w.Start == one.w.Start && w.Cur > one.w.Cur {
		one.w = w
	}
}

// Take counts one request, unless the limit is reached.
func (c *Counters) Take(name string, l domain.Limit) (domain.Rate, bool) {
	now := c.now()
	one := c.of(name)
	one.mu.Lock()
	defer one.mu.Unlock()
	var ok bool
	one.w, ok = l.Take(one.w, now)
	return l.Rate(one.w, now), ok
}
