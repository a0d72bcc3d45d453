package erasure

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto"
	"holdfast.dev/proto/internalapi"
)

// Mount registers the calls with which identity erases tenants (proto/internal/erasure.yaml).
func (e *Eraser) Mount(s *httpx.Server, engine *gin.Engine) error {
	return s.MountInternal(engine, proto.InternalErasure, map[string]httpx.Route{
		"prepareErasure": {Handle: e.prepare},
		"stepErasure":    {Handle: e.step},
	})
}

func (e *Eraser) prepare(c *gin.Context) error {
	ctx := c.Request.Context()
	wait, err := e.Ready(ctx, caller.FromContext(ctx).Tenant)
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.ErasurePreparation{Wait: wait})
}

func (e *Eraser) step(c *gin.Context) error {
	ctx := c.Request.Context()
	p, err := e.Step(ctx, caller.FromContext(ctx).Tenant)
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.ErasureStep{Erased: p.Erased, Deleted: p.Deleted})
}
