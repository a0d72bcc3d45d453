package quota

import (
	"context"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// Slots limits how much costly work of one kind runs in a process at the same time, such as rendering documents. A tenant uses at
// most PerTenant of All slots. Its further requests wait only for its own slots, so that it never uses the slots of the others.
type Slots struct {
	limits  Limits
	slots   chan struct{}
	tenants *shares[ids.Tenant]
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

// NewSlots creates the slots of one kind of work in this process.
func NewSlots(l Limits) *Slots {
	return &Slots{limits: l, slots: make(chan struct{}, l.All), tenants: newShares[ids.Tenant](l.PerTenant, l.PerTenant+l.Waiting)}
}

// Acquire waits for a slot, at most as long as the limits allow. The caller must call release when its work ends. If too many
// requests of the tenant are in progress, the error is 429 rate_limited. If too many requests of all tenants are in progress, it is
// 503 unavailable.
func (s *Slots) Acquire(ctx context.Context, tenant ids.Tenant) (release func(), err error) {
	own := s.tenants.enter(tenant)
	if own == nil {
		return nil, s.tooMany()
	}
	timer := time.NewTimer(s.limits.Wait)
	defer timer.Stop()
	if err := take(ctx, own.running, timer.C, s.tooMany()); err != nil {
		s.tenants.leave(tenant)
		return nil, err
	}
	if err := take(ctx, s.slots, timer.C, apperr.ErrUnavailable.WithMessage("Too many %s are in progress. Retry shortly.", s.limits.Work)); err != nil {
		s.tenants.free(tenant)
		return nil, err
	}
	began := time.Now()
	return func() {
		<-s.slots
		if !s.limits.Rests {
			s.tenants.free(tenant)
			return
		}
		time.AfterFunc(restFactor*time.Since(began), func() { s.tenants.free(tenant) })
	}, nil
}

func (s *Slots) tooMany() error {
	return apperr.New(apperr.RateLimited, "rate_limited", "Your account has too many "+s.limits.Work+
		" in progress. Wait for the time in Retry-After, and send fewer at a time.").WithRetryAfter(max(time.Second, s.limits.Wait))
}
