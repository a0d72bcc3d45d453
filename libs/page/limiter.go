package page

import (
	"context"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// The limits of deep searches in a process: MaxDeepSearches read at the same time, at most one of each tenant. At most
// MaxDeepPerTenant of one tenant read or wait, and each waits at most deepWait.
const (
	MaxDeepSearches  = 4
	MaxDeepPerTenant = 4
	deepWait         = 2 * time.Second
)

// ErrTooManySearches says that the tenant has too many deep searches in progress.
var ErrTooManySearches = apperr.New(apperr.RateLimited, "rate_limited",
	"The tenant has too many searches under way that read all their matches. Narrow them, or send fewer at a time.").WithRetryAfter(time.Second)

// deepSearches limits the deep searches of the process, because each holds a connection of the pool.
var deepSearches = newSearchLimiter(deepWait)

// searchLimiter gives slots to tenants in the order of their requests, and never two to one tenant.
type searchLimiter struct {
	wait    time.Duration
	slots   chan struct{} // of all tenants
	mu      sync.Mutex
	tenants map[ids.Tenant]*tenantSearches
}

type tenantSearches struct {
	open int           // deep searches of the tenant that read or wait
	slot chan struct{} // holds the one search that reads, or waits for a slot of all tenants
}

func newSearchLimiter(wait time.Duration) *searchLimiter {
	return &searchLimiter{wait: wait, slots: make(chan struct{}, MaxDeepSearches), tenants: map[ids.Tenant]*tenantSearches{}}
}

// acquire waits for a slot for the tenant. done releases it.
func (l *searchLimiter) acquire(ctx context.Context, tenant ids.Tenant) (done func(), err error) {
	own := l.enter(tenant)
	if own == nil {
		return nil, ErrTooManySearches
	}
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	if err := acquireSlot(ctx, own.slot, timer.C, ErrTooManySearches); err != nil {
		l.leave(tenant)
		return nil, err
	}
	if err := acquireSlot(ctx, l.slots, timer.C, apperr.ErrUnavailable); err != nil {
		<-own.slot
		l.leave(tenant)
		return nil, err
	}
	return func() {
		<-l.slots
		<-own.slot
		l.leave(tenant)
	}, nil
}

// acquireSlot waits for room in c. It returns late when the timer fires first.
func acquireSlot(ctx context.Context, c chan struct{}, timer <-chan time.Time, late error) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-timer:
		return late
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter counts one more search of the tenant. It returns nil when the tenant has too many.
func (l *searchLimiter) enter(tenant ids.Tenant) *tenantSearches {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.tenants[tenant]
	if own == nil {
		own = &tenantSearches{slot: make(chan struct{}, 1)}
		l.tenants[tenant] = own
	}
	if own.open == MaxDeepPerTenant {
		return nil
	}
	own.open++
	return own
}

func (l *searchLimiter) leave(tenant ids.Tenant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.tenants[tenant]
	if own.open--; own.open == 0 {
		delete(l.tenants, tenant)
	}
}
