package api_test

import (
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

func TestOneLine(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	if n := w.OneLine(ctx, w.engine); n < 5 {
		t.Errorf("%d texts were tried", n)
	}
}
