package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/redistest"
)

// While one node of a Cluster is dead, Redis counts as down: no request waits a second time, and Redis does not
// alternate between down and up.
func TestADeadNodeIsDown(t *testing.T) {
	t.Parallel()
	address, kill := redistest.Cluster(t, nil)
	var mu sync.Mutex
	var changes []bool
	const limit = time.Second // a loaded machine's pauses are shorter
	r := open(t, address, Options{Timeout: limit, Changed: func(down bool) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, down)
	}})
	evaluate := func() error { _, err := r.Evaluate(Request{Holder: one(), Limits: limits(600, 3000)}); return err }
	for i := range 20 {
		if err := evaluate(); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	kill()
	var slow []string
	down := false
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		start := time.Now()
		err := evaluate()
		if err != nil && !errors.Is(err, ErrDown) {
			t.Fatal(err)
		}
		if down && err == nil {
			t.Fatal("back without the node")
		}
		down = down || r.down.Load()
		if d := time.Since(start); d > limit/2 {
			slow = append(slow, fmt.Sprint(d))
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !down || len(changes) != 1 || !changes[0] || len(slow) > 3 {
		t.Errorf("down %v, changes %v, slow: %v", down, changes, slow)
	}
}

// After a Sentinel names a new master, evaluations are sent to it.
func TestBackAfterAFailover(t *testing.T) {
	t.Parallel()
	address, kill := redistest.Sentinel(t, nil)
	o := Options{Timeout: 200 * time.Millisecond}
	o.Access.SentinelPassword = redistest.SentinelPassword
	r := open(t, address, o)
	who, l := one(), limits(600, 3000)
	if got, err := r.Evaluate(Request{Holder: who, Limits: l}); err != nil || !got.Passed {
		t.Fatalf("%+v, %v", got, err)
	}
	kill()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got, err := r.Evaluate(Request{Holder: who, Limits: l})
		if err == nil && got.Passed {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("never back: %v", err)
		}
	}
}
