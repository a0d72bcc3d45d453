package api

import (
	"crypto/sha256"
	"net/url"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
)

// proxyPublic forwards the request of an operation without a credential, as GET and without its query. Programs add their own
// parameters to an address that they subscribe to, and the server sends no body in response to HEAD. The path contains a secret
// token, so logs and traces contain only the route.
func (s *Server) proxyPublic(c *gin.Context) error {
	q, r := of(c), c.Request
	from := caller.Service("gateway", ids.Tenant{}, "")
	from.RequestID = q.id
	encoded, err := caller.Encode(from)
	if err != nil {
		return err
	}
	call := &domain.Call{
		Caller: from, Encoded: encoded, Method: q.op.Method, Path: bases[0] + q.path,
		IfNoneMatch: r.Header["If-None-Match"], Traceparent: obs.Traceparent(r.Context()), Address: q.address,
	}
	plain, err := url.PathUnescape(q.path) // so that a token has one rate regardless of its escaping
	if err != nil {
		return domain.ErrTarget.WithCause(err)
	}
	response, err := s.Pipeline.Tokens.Forward(r.Context(), s.Pipeline, q.op.Service, call, sha256.Sum256([]byte(plain)))
	if err != nil {
		return err
	}
	s.write(c, &response)
	return nil
}
