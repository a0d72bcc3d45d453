package app

import (
	"sync"

	"holdfast.dev/services/gateway/internal/domain"
)

// Assistants limits the number of messages of assistants that this process handles at the same time, for each tenant and mode. A message
// can last as long as a tool call, so slow calls of one tenant must not use up the connections of others.
type Assistants struct {
	most    int
	metrics *Metrics
	mu      sync.Mutex
	running map[string]int // guarded by mu; by tenant and mode, without zeros
}

// NewAssistants allows each tenant at most `most` messages in one mode at a time.
func NewAssistants(most int, m *Metrics) *Assistants {
	return &Assistants{most: most, metrics: m, running: map[string]int{}}
}

// Begin counts one more message of a credential, until end is called. It returns domain.ErrAssistants if its tenant has too many.
func (a *Assistants) Begin(c *Credential) (end func(), err error) {
	holder := c.Caller.Tenant.String() + " " + string(c.Caller.Mode)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[holder] >= a.most {
		a.metrics.Limited.Inc()
		return nil, domain.ErrAssistants.WithMessage("Assistants of this tenant have %d tool calls running in this mode, the maximum. Repeat the call shortly.", a.most)
	}
	a.running[holder]++
	a.metrics.Assistants.Inc()
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.metrics.Assistants.Dec()
		if a.running[holder]--; a.running[holder] == 0 {
			delete(a.running, holder)
		}
	}, nil
}
