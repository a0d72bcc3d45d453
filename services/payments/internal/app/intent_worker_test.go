package app

import (
	"testing"
	"time"
)

// What has failed together is spread over the last quarter of its pause, and nothing waits for longer.
func TestJitter(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 1000 {
		got := jitter(time.Minute)
		if got < 45*time.Second || got > time.Minute {
			t.Fatalf("%s", got)
		}
		seen[got] = true
	}
	if len(seen) < 100 {
		t.Errorf("%d different pauses", len(seen))
	}
}
