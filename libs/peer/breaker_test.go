package peer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A breaker opens when half of twenty calls fail, lets one call pass after a second, and closes after three calls that receive a
// response.
func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var states []string
		b := NewBreaker(func(state string) { states = append(states, state) })
		call := func(end func()) {
			t.Helper()
			if err := b.Begin(); err != nil {
				t.Fatal(err)
			}
			end()
		}
		for range 10 {
			call(b.Responded)
		}
		for range 9 {
			call(b.Unavailable)
		}
		if b.Open() {
			t.Error("open after 9 failures of 19 calls")
		}
		call(b.Unavailable)
		if err := b.Begin(); !b.Open() || !errors.Is(err, ErrOpen) {
			t.Errorf("not open after 10 failures of 20 calls: %v", err)
		}
		time.Sleep(openFor)
		if b.Open() {
			t.Error("still open after a second")
		}
		for range closingCalls {
			call(b.Responded)
		}
		if len(states) != 3 || states[0] != "open" || states[1] != "half-open" || states[2] != "closed" {
			t.Errorf("%v", states)
		}
	})
}

// The time-outs of one client do not open a breaker. Those without a client do.
func TestBreakerAndTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(func(string) {})
		late := func(client string) {
			if b.Begin() == nil {
				b.Late(client)
			}
		}
		for range 100 {
			late("tn_1")
		}
		if b.Open() {
			t.Error("one client has opened the breaker")
		}
		for range failureCalls {
			late("")
		}
		if !b.Open() {
			t.Error("calls for no client have not opened the breaker")
		}
	})
}

// A breaker counts five time-outs of one client within any ten seconds.
func TestTimeoutsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late timeouts
		var counted []time.Time
		for range 300 {
			if late.count("a") {
				counted = append(counted, time.Now())
			}
			time.Sleep(170 * time.Millisecond)
		}
		for i := 5; i < len(counted); i++ {
			if gap := counted[i].Sub(counted[i-5]); gap < 10*time.Second {
				t.Fatalf("six within %v", gap)
			}
		}
		if len(counted) < 25 || !late.count("b") {
			t.Errorf("%d of a minute are counted", len(counted))
		}
	})
}
