package httpx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/obs"
)

// ErrScope reports that the caller lacks a scope.
var ErrScope = apperr.New(apperr.Forbidden, "insufficient_scope", "The credential lacks a scope.")

// MissingScope returns ErrScope with the name of the scope.
func MissingScope(scope string) error {
	return ErrScope.WithMessage("The credential lacks the scope %s.", scope).
		WithHeader("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
}

// Internal passes the signed calls of the named services to h, with the tenant and mode of the signed caller. It is for calls whose
// body no contract describes. MountInternal registers the others.
func (s *Server) Internal(h Handler, peers ...string) gin.HandlerFunc {
	return func(c *gin.Context) {
		obs.SetRoute(c.Request.Context(), c.FullPath())
		err := s.verifyPeer(c, peers)
		if err == nil {
			err = h(c)
		}
		if err != nil {
			Fail(c, err)
		}
	}
}

// verifyPeer rejects a request that none of the named services signed.
func (s *Server) verifyPeer(c *gin.Context, peers []string) error {
	peer, err := s.identify(c)
	if err == nil && !slices.Contains(peers, peer) {
		err = ErrCaller.WithCause(fmt.Errorf("%s is not allowed to make this call", peer))
	}
	return err
}

// MountInternal registers each call of a document of proto/internal, keyed by operationId. The document defines the path of a call,
// the services that may make it, the scopes that its caller needs, and the contents of its body and query. A call without a handler
// and a handler without a call are errors.
func (s *Server) MountInternal(e *gin.Engine, document []byte, routes map[string]Route) error {
	calls, err := contract.LoadInternal(document, s.Service)
	if err != nil {
		return err
	}
	return s.mount(e, calls, "", routes, s.internalSteps)
}

// internalSteps returns the steps of an internal call: the checks of the caller that the gateway makes for a public request, then
// the steps of a public request.
func (s *Server) internalSteps(op *contract.Operation, route Route) []Handler {
	steps := []Handler{
		setRoute(op),
		func(c *gin.Context) error { return s.verifyPeer(c, op.Callers) },
		scoped(op.Scopes),
	}
	if route.Allow != nil {
		steps = append(steps, route.Allow)
	}
	steps = append(steps, readBody, parseBody)
	if op.Idempotent {
		steps = append(steps, parseIdempotencyKey)
	}
	return append(steps, s.validate(route, parseQuery, validateBody), s.handle(route))
}

// scoped rejects a caller that lacks one of the scopes.
func scoped(scopes []string) Handler {
	return func(c *gin.Context) error {
		who := caller.FromContext(c.Request.Context())
		for _, scope := range scopes {
			if !who.Has(scope) {
				return MissingScope(scope)
			}
		}
		return nil
	}
}

// Path returns the path of an operation in gin's notation. A parameter is a whole segment. A suffix, as in {token}.ics, is omitted,
// and the parameter's value contains it.
func Path(op *contract.Operation) string {
	segments := strings.Split(op.Path, "/")
	for i, segment := range segments {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			name, _, _ = strings.Cut(name, "}")
			segments[i] = ":" + name
		}
	}
	return strings.Join(segments, "/")
}
