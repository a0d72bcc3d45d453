package page

import (
	"sync"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// The limits of downloads in a process: of a tenant, and of all.
const (
	MaxDownloadsPerTenant = 8
	MaxDownloads          = 32
)

// Errors of a download too many.
var (
	ErrTooManyDownloads = apperr.New(apperr.RateLimited, "rate_limited",
		"The tenant has too many downloads under way. Wait for the time in Retry-After.").WithRetryAfter(5 * time.Second)
	errManyDownloads = apperr.ErrUnavailable.WithMessage("Too many downloads are under way. Retry shortly.")
)

// downloads limits the downloads of the process, because each holds a page in memory.
var downloads = &downloadLimiter{tenants: map[ids.Tenant]int{}}

type downloadLimiter struct {
	mu      sync.Mutex
	tenants map[ids.Tenant]int // guarded by mu; without zeros
	all     int                // guarded by mu
}

// acquire counts one more download of the tenant. done releases it.
func (l *downloadLimiter) acquire(tenant ids.Tenant) (done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.tenants[tenant] == MaxDownloadsPerTenant:
		return nil, ErrTooManyDownloads
	case l.all == MaxDownloads:
		return nil, errManyDownloads
	}
	l.tenants[tenant]++
	l.all++
	return func() { l.release(tenant) }, nil
}

func (l *downloadLimiter) release(tenant ids.Tenant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.tenants[tenant]--; l.tenants[tenant] == 0 {
		delete(l.tenants, tenant)
	}
}
