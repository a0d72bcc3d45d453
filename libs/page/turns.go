package page

import (
	"context"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// How many deep searches there are in a process: DeepAtOnce read, one of them of each tenant, and
// DeepPerTenant of a tenant read or wait, each for its turn at most deepWait.
const (
	DeepAtOnce    = 4
	DeepPerTenant = 4
	deepWait      = 2 * time.Second
)

// ErrDeep says that the tenant has too many deep searches under way.
var ErrDeep = apperr.New(apperr.RateLimited, "rate_limited",
	"The tenant has too many searches under way that read all their matches. Narrow them, or send fewer at a time.").WithRetryAfter(time.Second)

// deep are the turns of the process: each deep search holds a connection of the pool.
var deep = newTurns(deepWait)

// turns gives places to tenants in the order in which they come, and never two to one tenant.
type turns struct {
	wait    time.Duration
	all     chan struct{}
	mu      sync.Mutex
	tenants map[ids.Tenant]*turn
}

type turn struct {
	under   int           // deep searches of the tenant that read or wait
	reading chan struct{} // holds the one that reads, or waits for a place among all
}

func newTurns(wait time.Duration) *turns {
	return &turns{wait: wait, all: make(chan struct{}, DeepAtOnce), tenants: map[ids.Tenant]*turn{}}
}

// take waits for the tenant's turn; done ends it.
func (t *turns) take(ctx context.Context, tenant ids.Tenant) (done func(), err error) {
	own := t.enter(tenant)
	if own == nil {
		return nil, ErrDeep
	}
	timer := time.NewTimer(t.wait)
	defer timer.Stop()
	if err := put(ctx, own.reading, timer.C, ErrDeep); err != nil {
		t.leave(tenant)
		return nil, err
	}
	if err := put(ctx, t.all, timer.C, apperr.ErrUnavailable); err != nil {
		<-own.reading
		t.leave(tenant)
		return nil, err
	}
	return func() {
		<-t.all
		<-own.reading
		t.leave(tenant)
	}, nil
}

// put waits for a place in c; late is the error when there is none in time.
func put(ctx context.Context, c chan struct{}, timer <-chan time.Time, late error) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-timer:
		return late
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the request's own end
	}
}

// enter counts one more of the tenant; nil: it has too many.
func (t *turns) enter(tenant ids.Tenant) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.tenants[tenant]
	if own == nil {
		own = &turn{reading: make(chan struct{}, 1)}
		t.tenants[tenant] = own
	}
	if own.under == DeepPerTenant {
		return nil
	}
	own.under++
	return own
}

func (t *turns) leave(tenant ids.Tenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.tenants[tenant]
	if own.under--; own.under == 0 {
		delete(t.tenants, tenant)
	}
}
