package view

import (
	"time"

	"holdfast.dev/proto/api"
)

// TestClock returns the public body of a test clock that shows now.
func TestClock(now time.Time, frozen bool) api.TestClock {
	return api.TestClock{Object: api.TestClockObjectTestClock, Now: now.UTC().Truncate(time.Microsecond), Frozen: frozen}
}
