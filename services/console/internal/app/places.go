package app

import (
	"sync"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/console/internal/domain"
)

// ErrPlaces reports that a session or its operator has too many streams or downloads open at the same time.
var ErrPlaces = apperr.New(apperr.RateLimited, "rate_limited", "Too much is open at once. Close a page, or wait until a download has ended.")

// Places limits how many streams or downloads a session and an operator can have open at the same time in this process, regardless
// of what their browsers send.
type Places struct {
	session, operator int
	mu                sync.Mutex
	open              map[string]int // guarded by mu; by the id of a session or an operator, without zeros
}

// NewPlaces sets the limits for one session and for all sessions of an operator.
func NewPlaces(session, operator int) *Places {
	return &Places{session: session, operator: operator, open: map[string]int{}}
}

// Take reserves a place. The caller must call leave. The error is ErrPlaces if no place is free.
func (p *Places) Take(s *domain.Session) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[s.ID] >= p.session || p.open[s.Operator.ID] >= p.operator {
		return nil, ErrPlaces
	}
	p.open[s.ID]++
	p.open[s.Operator.ID]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, id := range [...]string{s.ID, s.Operator.ID} {
			if p.open[id]--; p.open[id] == 0 {
				delete(p.open, id)
			}
		}
	}), nil
}
