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
type Erasure struct{ client *peer.Client }

// NewErasure returns the erasure of the service that c calls, with a longer time-out.
func NewErasure(c *peer.Client) *Erasure {
	return &Erasure{&peer.Client{Target: c.Target, BaseURL: c.BaseURL, Signer: c.Signer, Timeout: erasureTimeout}}
}

// Prepare implements app.ErasureService.
func (e *Erasure) Prepare(ctx context.Context, tenant ids.Tenant) (wait string, err error) {
	var out internalapi.ErasurePreparation
	err = e.client.Do(of(ctx, tenant), http.MethodPost, "/internal/v1/erasure/preparation", nil, &out)
	return out.Wait, err
}

// Step implements app.ErasureService.
func (e *Erasure) Step(ctx context.Context, tenant ids.Tenant) (erasure.Progress, error) {
	var out internalapi.ErasureStep
	err := e.client.Do(of(ctx, tenant), http.MethodPost, "/internal/v1/erasure", nil, &out)
	return erasure.Progress{Erased: out.Erased, Deleted: out.Deleted}, err
}

func of(ctx context.Context, tenant ids.Tenant) context.Context {
	return caller.With(ctx, caller.Service("identity", tenant, caller.Live))
}
