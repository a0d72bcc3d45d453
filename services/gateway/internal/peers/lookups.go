package peers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/gateway/internal/domain"
)

const (
	// maxLookups is the maximum number of lookups in a call, which proto/internal/identity.yaml declares.
	maxLookups = 64
	// lookupWait is how long a lookup waits for a call that is running. After that, it is sent in another call.
	lookupWait = 50 * time.Millisecond
)

// lookups combines lookups of credentials of one kind into calls. A lookup is sent at once if no call is running. Otherwise it waits, and
// is sent in the next call with all others that wait.
type lookups struct {
	mu      sync.Mutex
	running int       // calls; guarded by mu, like waiting
	waiting []*lookup // in the order of their arrival
}

// lookup is a credential to look up, and its result.
type lookup struct {
	hash      string
	send      func(batch []*lookup) // sets the results of a batch that begins with this lookup
	principal domain.Principal
	err       error
	done      chan struct{} // closed when the result is set
}

// find looks up one credential. send sets the results of a batch. It runs until its calls end, even if ctx ends.
func (q *lookups) find(ctx context.Context, hash string, send func(context.Context, []*lookup)) (domain.Principal, error) {
	l := &lookup{hash: hash, done: make(chan struct{})}
	l.send = func(batch []*lookup) { send(context.WithoutCancel(ctx), batch) }
	if q.add(l) {
		go q.run()
	}
	late := time.NewTimer(lookupWait)
	defer late.Stop()
	for {
		select {
		case <-l.done:
			return l.principal, l.err
		case <-late.C:
			if q.hurry(l) {
				go q.run()
			}
		case <-ctx.Done():
			q.withdraw(l)
			return domain.Principal{}, apperr.ErrTimeout.WithCause(fmt.Errorf("look up credential: %w", ctx.Err()))
		}
	}
}

// run makes calls until no lookup waits.
func (q *lookups) run() {
	for {
		batch := q.next()
		if len(batch) == 0 {
			return
		}
		batch[0].send(batch)
		for _, l := range batch {
			close(l.done)
		}
	}
}

// add appends a lookup and reports whether the caller must call run.
func (q *lookups) add(l *lookup) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, l)
	if q.running > 0 {
		return false
	}
	q.running++
	return true
}

// hurry reports whether a lookup is still waiting. The caller must then call run.
func (q *lookups) hurry(l *lookup) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !slices.Contains(q.waiting, l) {
		return false
	}
	q.running++
	return true
}

// next returns the lookups of the next call. If there are none, it ends a run.
func (q *lookups) next() []*lookup {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxLookups)
	batch := slices.Clone(q.waiting[:n])
	if q.waiting = slices.Delete(q.waiting, 0, n); n == 0 {
		q.running--
	}
	return batch
}

func (q *lookups) withdraw(l *lookup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, l); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}
