package httpx

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
)

// DirectAPI is an API that clients reach without the gateway, with credentials of their own.
type DirectAPI struct {
	Document     []byte  // its operations have x-required-scopes
	Base         string  // path of its operations
	Authenticate Handler // finds the credential, and puts the caller with its scopes into the request's context
}

// MountDirect registers each operation of a direct API, keyed by operationId. The checks are those of the gateway and of a service
// together, in the order of the contract's errors. Unknown fields of a body are errors. An operation without a handler and a handler
// without an operation are errors.
func (s *Server) MountDirect(e *gin.Engine, d DirectAPI, routes map[string]Route) error {
	spec, err := contract.LoadDirect(d.Document, s.Service)
	if err != nil {
		return err
	}
	return s.mount(e, spec, d.Base, routes, func(op *contract.Operation, route Route) []Handler {
		steps := []Handler{setRoute(op), setDirect, d.Authenticate, scoped(op.Scopes), readBody, parseBody}
		if op.Idempotent {
			steps = append(steps, parseIdempotencyKey)
		}
		return append(steps, s.validate(route, parseQuery, validateBody, parseIfMatch), s.handle(route))
	})
}

// setDirect records that the response does not pass through the gateway.
func setDirect(c *gin.Context) error {
	of(c).direct = true
	return nil
}
