package ids_test

import (
	"bytes"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
)

// The first id of a time is after all earlier ids, and not after those that are created then.
func TestFirst(t *testing.T) {
	t.Parallel()
	id := ids.New[ids.RequestPrefix]()
	at := id.Time()
	for _, tc := range []struct {
		at    time.Time
		after bool
	}{{at, false}, {at.Add(-time.Hour), false}, {at.Add(time.Nanosecond), true}, {at.Add(time.Millisecond), true}, {time.Time{}, false}} {
		first, u := ids.First[ids.RequestPrefix](tc.at).UUID(), id.UUID()
		if (bytes.Compare(first[:], u[:]) > 0) != tc.after {
			t.Errorf("%s: %x, and the id is %x", tc.at, first, u)
		}
	}
	if ids.First[ids.RequestPrefix](time.Time{}).IsZero() {
		t.Error("the first id is none")
	}
}
