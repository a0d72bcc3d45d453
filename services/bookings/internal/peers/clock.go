package peers

import (
	"context"
	"net/http"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/testclock"
	"holdfast.dev/proto/internalapi"
)

// SetClock freezes the test clock of the caller's tenant, or, if at is nil, returns it to real time. For a time before the current
// time of the clock, identity responds with a 422 on now.
func (t *Tenants) SetClock(ctx context.Context, at *time.Time) (testclock.Clock, error) {
	path := "/internal/v1/tenants/" + caller.FromContext(ctx).Tenant.String() + "/test-clock"
	var got internalapi.Tenant
	if err := t.client.Do(ctx, http.MethodPut, path, internalapi.TestClockSet{Now: at}, &got); err != nil {
		return testclock.Clock{}, err
	}
	return testclock.Clock{FrozenAt: got.Clock, Version: got.PolicyVersion}, nil
}
