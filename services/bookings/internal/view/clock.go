package view

import (
	"time"

	"holdfast.dev/proto/api"
)

// TestClock is the public shape of a test clock that shows now.
func TestClock(now time.Time, frozen bool) api.TestClock {
	return api.TestClock{Object: api.TestClockObjectTestClock, Now: now.UTC().Truncate(time.Microsecond), Frozen: frozen}
}
