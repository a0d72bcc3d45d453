package httpx

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/obs"
)

// ErrScope refuses a caller that lacks a scope.
var ErrScope = apperr.New(apperr.Forbidden, "insufficient_scope", "The credential lacks a scope.")

// MissingScope is ErrScope with the name of the scope.
func MissingScope(scope string) error {
	return ErrScope.WithMessage("The credential lacks the scope %s.", scope).
		WithHeader("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
}

// Internal gives the signed calls of the named services to h, with the tenant and mode of the signed caller. It is for
// the calls of proto/internal, which are not in the public contract.
func (s *Server) Internal(h Handler, peers ...string) gin.HandlerFunc {
	return func(c *gin.Context) {
		obs.SetRoute(c.Request.Context(), c.FullPath())
		peer, err := s.identify(c)
		if err == nil && !slices.Contains(peers, peer) {
			err = ErrCaller.WithCause(fmt.Errorf("%s is not allowed to make this call", peer))
		}
		if err == nil {
			err = h(c)
		}
		if err != nil {
			Fail(c, err)
		}
	}
}

// MountInternal registers calls of a document of proto/internal for one peer, by operationId. Where a call is, and which
// scopes its caller needs, is the document's. A call that the document lacks is an error.
func (s *Server) MountInternal(e *gin.Engine, document []byte, peer string, calls map[string]Handler) error {
	forms, err := contract.Forms(document)
	if err != nil {
		return err
	}
	for id, h := range calls {
		form, ok := forms[id]
		if !ok {
			return fmt.Errorf("mount %s: there is no internal call %s", s.Service, id)
		}
		e.Handle(form.Method, ginPath(form.Path), s.Internal(scoped(form.Scopes, h), peer))
	}
	return nil
}

// scoped gives a call to h when its caller has the scopes.
func scoped(scopes []string, h Handler) Handler {
	return func(c *gin.Context) error {
		who := caller.FromContext(c.Request.Context())
		for _, scope := range scopes {
			if !who.Has(scope) {
				return MissingScope(scope)
			}
		}
		return h(c)
	}
}

// Keyed gives an internal call to h with its Idempotency-Key and the fingerprint of the request. The call sees limit bytes of the body at most; secret says
// that the answer holds a secret.
func Keyed(secret bool, limit int64, h Handler) Handler {
	return func(c *gin.Context) error {
		r := c.Request
		key, err := IdempotencyKey(r.Header)
		if err != nil {
			return err
		}
		if !Writes(r.Method) {
			return h(c)
		}
		raw, err := io.ReadAll(io.LimitReader(r.Body, limit))
		if err != nil {
			return ErrTooLarge.WithCause(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		if key == "" {
			return h(c)
		}
		canonical, err := contract.Canonical(raw)
		if err != nil {
			canonical = raw // the call refuses it
		}
		sum := idem.Fingerprint(r.Method, r.URL.EscapedPath(), r.URL.RawQuery, canonical)
		c.Request = r.WithContext(idem.WithRequest(r.Context(), idem.Request{Key: key, Fingerprint: sum, Secret: secret}))
		return h(c)
	}
}

// Path returns the path of an operation in gin's notation.
func Path(op *contract.Operation) string { return ginPath(op.Path) }

// ginPath returns a path of a document in gin's notation. A parameter is a whole segment: a suffix, as in {token}.ics, is left
// out, and the parameter's value has it.
func ginPath(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			name, _, _ = strings.Cut(name, "}")
			segments[i] = ":" + name
		}
	}
	return strings.Join(segments, "/")
}
