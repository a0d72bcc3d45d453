package peers

import (
	"context"
	"net/http"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"
)

// erasureTimeout is longer than a step takes.
const erasureTimeout = 10 * time.Second

// Erasure erases tenants from another service.
type Erasure struct{ Client *peer.Client }

// Prepare implements app.ErasureService.
func (e *Erasure) Prepare(ctx context.Context, tenant ids.Tenant) (wait string, err error) {
	var out internalapi.ErasurePreparation
	err = e.Client.Do(of(ctx, tenant), http.MethodPost, "/internal/v1/erasure/preparation", nil, &out, peer.Within(erasureTimeout))
	return out.Wait, err
}

// Step implements app.ErasureService.
func (e *Erasure) Step(ctx context.Context, tenant ids.Tenant) (erasure.Progress, error) {
	var out internalapi.ErasureStep
	err := e.Client.Do(of(ctx, tenant), http.MethodPost, "/internal/v1/erasure", nil, &out, peer.Within(erasureTimeout))
	return erasure.Progress{Erased: out.Erased, Deleted: out.Deleted}, err
}

func of(ctx context.Context, tenant ids.Tenant) context.Context {
	return caller.With(ctx, caller.Service("identity", tenant, caller.Live))
}
