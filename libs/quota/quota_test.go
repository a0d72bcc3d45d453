package quota_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/quota"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	c := quota.Cap{Most: 2, Rows: "active boats", Field: "url", Remedy: "Sink one first."}
	if err := c.Room(1); err != nil {
		t.Error(err)
	}
	for _, there := range []int{2, 3} {
		err := apperr.As(c.Room(there))
		if !errors.Is(err, quota.ErrReached) || err.Kind != apperr.Invalid || err.Fields[0].Field != "url" ||
			!strings.Contains(err.Fields[0].Message, "2 active boats") || !strings.Contains(err.Fields[0].Message, "Sink one first.") {
			t.Errorf("%d: %+v", there, err)
		}
	}
}
