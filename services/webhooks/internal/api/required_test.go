package api_test

import (
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"
)

// A call of another service that lacks a required parameter or field changes nothing.
func TestRequiredByPeers(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	if n := w.RequiredByPeers(ctx, w.engine, proto.InternalWebhooks); n < 1 {
		t.Errorf("%d requests", n)
	}
}
