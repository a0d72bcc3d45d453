package api_test

import (
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto"
)

// TestRequiredByPeers checks that a call of another service without a required field changes nothing.
func TestRequiredByPeers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Test)
	if n := w.RequiredByPeers(ctx, w.engine, proto.InternalIdentity); n < 20 {
		t.Errorf("%d requests", n)
	}
}
