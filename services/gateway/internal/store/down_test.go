package store

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/redistest"

	"holdfast.dev/services/gateway/internal/domain"
)

// One silent master of a Cluster affects only the credentials of its slots: they fail after one time-out, and then immediately.
// Those of the other masters keep exact limits and wait for nothing. After the master responds again, its credentials do too.
func TestASilentMasterAffectsOnlyItsSlots(t *testing.T) {
	t.Parallel()
	address, pause, resume, silent := redistest.SilentCluster(t)
	var mu sync.Mutex
	var changes []bool
	const limit = time.Second // a loaded machine's pauses are shorter
	r := open(t, address, Options{Timeout: limit, Changed: func(down bool) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, down)
	}})
	var well, ill []string
	for len(well) < 8 || len(ill) < 8 {
		if who := credential(); silent(who) {
			ill = append(ill, who)
		} else {
			well = append(well, who)
		}
	}
	const most = 30
	l := domain.Limit{Max: most, Per: time.Hour.Microseconds()}
	evaluate := func(who string) (Result, time.Duration, error) {
		start := time.Now()
		got, err := r.Evaluate(Request{Holder: Holder{Credential: who}, Limits: domain.Limits{Credential: l}})
		return got, time.Since(start), err
	}
	for _, who := range slices.Concat(well, ill) {
		if got, _, err := evaluate(who); err != nil || !got.Passed {
			t.Fatalf("before: %+v, %v", got, err)
		}
	}
	pause()
	var all sync.WaitGroup
	var slow, failed atomic.Int64
	for _, who := range ill {
		all.Go(func() {
			for range most {
				_, d, err := evaluate(who)
				if !errors.Is(err, ErrDown) {
					t.Errorf("silent: %v", err)
				}
				if failed.Add(1); d > limit/2 {
					slow.Add(1)
				}
			}
		})
	}
	for _, who := range well {
		all.Go(func() {
			passed := 1
			for range 2 * most {
				got, d, err := evaluate(who)
				if err != nil || d > limit/2 {
					t.Errorf("another master: %v after %v", err, d)
				}
				if got.Passed {
					passed++
				}
			}
			if passed != most {
				t.Errorf("%d of %d passed", passed, most)
			}
		})
	}
	all.Wait()
	if r.DownFor(Holder{Credential: ill[0]}) == 0 || r.DownFor(Holder{Credential: well[0]}) != 0 {
		t.Errorf("down for %v and %v", r.DownFor(Holder{Credential: ill[0]}), r.DownFor(Holder{Credential: well[0]}))
	}
	if n := slow.Load(); n == 0 || n > int64(len(ill)) {
		t.Errorf("%d of %d waited for the silent master", n, failed.Load())
	}
	resume()
	untilPassed(t, r, Request{Holder: Holder{Credential: ill[0]}, Limits: domain.Limits{Credential: l}})
	mu.Lock()
	defer mu.Unlock()
	if len(changes) != 2 || !changes[0] || changes[1] {
		t.Errorf("changes %v", changes)
	}
}

// The previous key of a state can be on a silent master. Only the first request waits for it, and its result counts.
func TestASilentMasterOfThePreviousKeyDelaysOneRequest(t *testing.T) {
	t.Parallel()
	address, pause, _, silent := redistest.SilentCluster(t)
	const limit = time.Second
	r := open(t, address, Options{Timeout: limit})
	who := one()
	for silent(who.Tenant) || !silent(who.Credential) {
		who = one()
	}
	pause()
	slow := 0
	for range 5 {
		start := time.Now()
		if got, err := r.Evaluate(Request{Holder: who, Limits: limits(600, 3000)}); err != nil || !got.Passed {
			t.Errorf("%+v, %v", got, err)
		}
		if time.Since(start) > limit/2 {
			slow++
		}
	}
	if slow > 1 {
		t.Errorf("%d of 5 requests waited", slow)
	}
}

// After a Sentinel names a new master, evaluations are sent to it.
func TestBackAfterAFailover(t *testing.T) {
	t.Parallel()
	address, kill := redistest.Sentinel(t, nil)
	o := Options{Timeout: 200 * time.Millisecond}
	o.Access.SentinelPassword = redistest.SentinelPassword
	r := open(t, address, o)
	request := Request{Holder: one(), Limits: limits(600, 3000)}
	untilPassed(t, r, request) // on a busy machine, the first one can take longer than the time-out
	kill()
	untilPassed(t, r, request)
}

// untilPassed repeats the request until the limits let it pass.
func untilPassed(t *testing.T, r *Redis, request Request) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got, err := r.Evaluate(request)
		if err == nil && got.Passed {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("never passed: %+v, %v", got, err)
		}
	}
}
