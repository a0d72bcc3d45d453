package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/libs/apperr"
)

// recorder is a sender of batches that takes callTime for each, and the credential "stuck" an hour.
type recorder struct {
	mu       sync.Mutex
	batches  [][]string
	canceled bool // the context of a batch
}

const callTime = 10 * time.Millisecond

func (r *recorder) send(ctx context.Context, batch []*lookup) {
	var hashes []string
	for _, l := range batch {
		hashes = append(hashes, l.hash)
		l.principal.Scopes = l.hash
	}
	r.mu.Lock()
	r.batches = append(r.batches, hashes)
	r.mu.Unlock()
	if hashes[0] == "stuck" {
		time.Sleep(time.Hour)
	}
	time.Sleep(callTime)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.canceled = r.canceled || ctx.Err() != nil
}

// lookUp starts a lookup and stores how long it took.
func (r *recorder) lookUp(t *testing.T, q *lookups, all *sync.WaitGroup, hash string, took *time.Duration) {
	all.Go(func() {
		start := time.Now()
		if p, err := q.find(t.Context(), hash, r.send); err != nil || p.Scopes != hash {
			t.Errorf("the lookup of %s returned %q: %v", hash, p.Scopes, err)
		}
		*took = time.Since(start)
	})
	synctest.Wait()
}

func runningOf(q *lookups) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running
}

// The first lookup is sent at once. Those that arrive during its call share the next ones.
func TestLookupsThatWaitShareACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q lookups
		var r recorder
		var all sync.WaitGroup
		const n = 2 + maxLookups
		took := make([]time.Duration, n)
		for i := range n {
			r.lookUp(t, &q, &all, fmt.Sprint(i), &took[i])
		}
		all.Wait()
		synctest.Wait()
		var sizes []int
		for _, b := range r.batches {
			sizes = append(sizes, len(b))
		}
		if !slices.Equal(sizes, []int{1, maxLookups, 1}) || r.batches[1][0] != "1" || r.batches[2][0] != fmt.Sprint(n-1) {
			t.Errorf("the calls are %v", r.batches)
		}
		for i, want := range map[int]time.Duration{0: callTime, 1: 2 * callTime, n - 2: 2 * callTime, n - 1: 3 * callTime} {
			if took[i] != want {
				t.Errorf("lookup %d took %s, not %s", i, took[i], want)
			}
		}
		// Afterwards nothing runs.
		var alone time.Duration
		r.lookUp(t, &q, &all, "alone", &alone)
		all.Wait()
		synctest.Wait()
		if n := runningOf(&q); alone != callTime || n != 0 {
			t.Errorf("a later lookup took %s; %d calls are running", alone, n)
		}
	})
}

// A call that is stuck delays others only by lookupWait.
func TestAStuckLookupDelaysOthersBriefly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q lookups
		var r recorder
		var all sync.WaitGroup
		var stuck time.Duration
		took := make([]time.Duration, 6)
		r.lookUp(t, &q, &all, "stuck", &stuck)
		time.Sleep(time.Millisecond)
		for i := range took {
			r.lookUp(t, &q, &all, fmt.Sprint(i), &took[i])
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := runningOf(&q); len(r.batches) != 2 || len(r.batches[1]) != len(took) || n != 1 {
			t.Errorf("while a call is stuck, the calls are %v and %d are running", r.batches, n)
		}
		all.Wait()
		synctest.Wait()
		for i, d := range took {
			if want := lookupWait + callTime - time.Duration(i)*time.Millisecond; d != want {
				t.Errorf("lookup %d took %s, not %s", i, d, want)
			}
		}
		if n := runningOf(&q); n != 0 {
			t.Errorf("%d calls are still running", n)
		}
	})
}

// A lookup whose request has ended is not sent. If it has been sent, its call continues for others in it.
func TestAnEndedLookupIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q lookups
		var r recorder
		for _, hash := range []string{"sent", "waiting"} {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), callTime/2)
				defer cancel()
				if p, err := q.find(ctx, hash, r.send); !errors.Is(err, apperr.ErrTimeout) || p.Scopes != "" {
					t.Errorf("%s: %q, %v", hash, p.Scopes, err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := runningOf(&q); len(r.batches) != 1 || r.batches[0][0] != "sent" || r.canceled || n != 0 {
			t.Errorf("the calls are %v, %d are running, and one was canceled: %t", r.batches, n, r.canceled)
		}
	})
}
