package peer

import (
	"sync"
	"time"

	"holdfast.dev/libs/ids"
)

// The time-outs of one tenant that a breaker counts: fewer than it needs to open, so that one tenant's slow requests never close a service
// for the others, while those of a few tenants together do.
const (
	timeoutsPerTenant = 5
	timeoutWindow     = 10 * time.Second
)

// Timeouts counts the time-outs of each tenant. The zero value is ready.
type Timeouts struct {
	mu      sync.Mutex
	began   time.Time          // guarded by mu: of the window
	tenants map[ids.Tenant]int // guarded by mu: time-outs in the window
}

// Count notes a time-out of a tenant, and reports whether a breaker counts it. Those of no tenant all count.
func (t *Timeouts) Count(tenant ids.Tenant) bool {
	if tenant.IsZero() {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.began) > timeoutWindow {
		t.began, t.tenants = now, map[ids.Tenant]int{}
	}
	t.tenants[tenant]++
	return t.tenants[tenant] <= timeoutsPerTenant
}
