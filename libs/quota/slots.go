package quota

import (
	"context"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// Slots limits how much costly work of one kind runs in a process at the same time, such as rendering documents. A tenant uses at
// most PerTenant of All slots. Its further requests wait only for its own slots, so that it never uses the slots of the others.
type Slots struct {
	limits  Limits
	slots   chan struct{}
	mu      sync.Mutex
	tenants map[ids.Tenant]*tenantSlots // guarded by mu; only tenants with open requests
}

// Limits are the limits of Slots.
type Limits struct {
	Work      string // what runs, in the plural, as in "documents"
	All       int    // at the same time, of all tenants
	PerTenant int    // at the same time, of one tenant; less than All
	Waiting   int    // waiting requests of one tenant
	Wait      time.Duration
	Rests     bool // a tenant's slot remains in use for a Rest after its work
}

type tenantSlots struct {
	open    int // requests that run or wait
	running chan struct{}
}

// NewSlots creates the slots of one kind of work in this process.
func NewSlots(l Limits) *Slots {
	return &Slots{limits: l, slots: make(chan struct{}, l.All), tenants: map[ids.Tenant]*tenantSlots{}}
}

// Acquire waits for a slot, at most as long as the limits allow. The caller must call release when its work ends. If too many
// requests of the tenant are in progress, the error is 429 rate_limited. If too many requests of all tenants are in progress, it is
// 503 unavailable.
func (s *Slots) Acquire(ctx context.Context, tenant ids.Tenant) (release func(), err error) {
	own := s.enter(tenant)
	if own == nil {
		return nil, s.tooMany()
	}
	timer := time.NewTimer(s.limits.Wait)
	defer timer.Stop()
	if err := take(ctx, own.running, timer.C, s.tooMany()); err != nil {
		s.leave(tenant)
		return nil, err
	}
	if err := take(ctx, s.slots, timer.C, apperr.ErrUnavailable.WithMessage("Too many %s are in progress. Retry shortly.", s.limits.Work)); err != nil {
		s.free(tenant, own)
		return nil, err
	}
	began := time.Now()
	return func() {
		<-s.slots
		if !s.limits.Rests {
			s.free(tenant, own)
			return
		}
		time.AfterFunc(restFactor*time.Since(began), func() { s.free(tenant, own) })
	}, nil
}

// free releases a tenant's own slot.
func (s *Slots) free(tenant ids.Tenant, own *tenantSlots) {
	<-own.running
	s.leave(tenant)
}

func (s *Slots) tooMany() error {
	return apperr.New(apperr.RateLimited, "rate_limited", "Your account has too many "+s.limits.Work+
		" in progress. Wait for the time in Retry-After, and send fewer at a time.").WithRetryAfter(max(time.Second, s.limits.Wait))
}

// take puts a token into c. It returns late if the timer fires before there is room.
func take(ctx context.Context, c chan struct{}, timer <-chan time.Time, late error) error {
	select {
	case c <- struct{}{}:
		return nil
	default:
	}
	select {
	case c <- struct{}{}:
		return nil
	case <-timer:
		return late
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter counts one more request of the tenant. It returns nil if the tenant has too many.
func (s *Slots) enter(tenant ids.Tenant) *tenantSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.tenants[tenant]
	if own == nil {
		own = &tenantSlots{running: make(chan struct{}, s.limits.PerTenant)}
		s.tenants[tenant] = own
	}
	if own.open == s.limits.PerTenant+s.limits.Waiting {
		return nil
	}
	own.open++
	return own
}

func (s *Slots) leave(tenant ids.Tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.tenants[tenant]
	if own.open--; own.open == 0 {
		delete(s.tenants, tenant)
	}
}
