package httpx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/obs"
)

// Base is the path under which a service mounts its operations.
const Base = "/api/v1"

// Handler is a step of a request. The last step decodes the request, calls one use case and responds with Send or JSON.
// Fail writes the error of a step.
type Handler func(c *gin.Context) error

// Route is a service's implementation of one operation.
type Route struct {
	Handle Handler
	// Exists returns the 404 or 403 for the id in the path, or nil if the caller may see the resource. It is called only if the
	// request is invalid, because these errors take precedence. A path without an id may also have an Exists, for a resource of
	// which each caller has at most one. Then id is "".
	Exists func(ctx context.Context, id string) error
	// Allow returns an error for a caller that may not make an internal call. This error takes precedence over all errors of the
	// request. nil allows each caller that has the call's scopes.
	Allow Handler
}

// IdempotencyChecker finds the stored response of a request whose key is in ctx. It returns nil if there is none, and ErrMismatch
// if the key was used for another request. *idemstore.Store implements it.
type IdempotencyChecker interface {
	Check(ctx context.Context) (*idem.Response, error)
}

// Server mounts the operations of one service.
type Server struct {
	Service     string // x-service in the contract
	Contract    *contract.Contract
	Verifier    *caller.Verifier
	Idempotency IdempotencyChecker // nil in a service without writes
	Now         func() time.Time   // nil is time.Now
}

// Mount registers each of the service's operations under /api/v1. routes is keyed by operationId. A missing operation, an operation
// without a handler, and an operation of another service are errors.
func (s *Server) Mount(e *gin.Engine, routes map[string]Route) error {
	return s.mount(e, s.Contract, Base, routes, s.pipeline)
}

func (s *Server) mount(e *gin.Engine, spec *contract.Contract, base string, routes map[string]Route, steps func(*contract.Operation, Route) []Handler) error {
	var wrong []string
	for id := range routes {
		if op := spec.Operation(id); op == nil || op.Service != s.Service {
			wrong = append(wrong, id+" is not an operation of "+s.Service)
		}
	}
	for _, op := range spec.For(s.Service) {
		r := routes[op.ID]
		if r.Handle == nil {
			wrong = append(wrong, op.ID+" has no handler")
			continue
		}
		e.Handle(op.Method, base+Path(op), Steps(steps(op, r)...)...)
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("mount %s: %s", s.Service, strings.Join(wrong, "; "))
	}
	return nil
}

func (s *Server) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// pipeline returns the steps of a request of an operation, in the order of the contract's errors. obs.Handler, which wraps each
// engine in libs/service, starts the log line before all of them.
func (s *Server) pipeline(op *contract.Operation, route Route) []Handler {
	return []Handler{
		setRoute(op),
		s.verifyCaller,
		readBody,
		parseBody,
		parseIdempotencyKey,
		s.validate(route, parseQuery, validateBody, parseIfMatch),
		s.handle(route),
	}
}

// setRoute records the operation.
func setRoute(op *contract.Operation) Handler {
	return func(c *gin.Context) error {
		obs.SetRoute(c.Request.Context(), op.Path)
		r := &request{op: op}
		if len(op.PathParams) > 0 {
			r.id = c.Param(op.PathParams[0])
		}
		c.Set(ctxKey, r)
		return nil
	}
}

// verifyCaller rejects a request that no known service signed.
func (s *Server) verifyCaller(c *gin.Context) error {
	_, err := s.identify(c)
	return err
}

// identify puts the verified caller into the request's context and returns the service that signed it.
func (s *Server) identify(c *gin.Context) (peer string, err error) {
	req := c.Request
	from, peer, err := s.Verifier.Verify(req.Header.Get(caller.Header), req.Method, req.URL.EscapedPath(), s.now())
	req.Header.Del(caller.Header)
	if err != nil {
		return "", ErrCaller.WithCause(err)
	}
	if from.RequestID != "" {
		SetRequestID(c, from.RequestID)
	}
	from.Traceparent = obs.Traceparent(req.Context())
	ctx := caller.With(req.Context(), from)
	obs.AddCaller(ctx, from)
	obs.Add(ctx, slog.String("peer", peer))
	c.Request = req.WithContext(ctx)
	return peer, nil
}

// readBody reads the body of any request. The body of a GET or DELETE is ignored.
func readBody(c *gin.Context) (err error) {
	of(c).raw, err = ReadBody(c, nil)
	return err
}

// parseBody checks the media type of a write's body, then its syntax.
func parseBody(c *gin.Context) error {
	r := of(c)
	if !Writes(c.Request.Method) {
		return nil
	}
	found, err := HasBody(r.op, c.Request.Header.Get("Content-Type"), r.raw)
	if !found || err != nil {
		return err
	}
	r.body, err = r.op.Parse(r.raw)
	return err
}

// parseIdempotencyKey puts the key of a write, with the request's fingerprint, into the context.
func parseIdempotencyKey(c *gin.Context) error {
	r, req := of(c), c.Request
	if !Writes(req.Method) {
		return nil
	}
	key, err := IdempotencyKey(req.Header)
	if err != nil || key == "" {
		return err
	}
	sum, err := fingerprint(req, r.raw)
	if err != nil {
		return err
	}
	c.Request = req.WithContext(idem.WithRequest(req.Context(), idem.Request{Key: key, Fingerprint: sum, Secret: r.op.Secret}))
	return nil
}

// Writes reports whether an operation uses the body and the Idempotency-Key of its requests.
func Writes(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}

// fingerprint returns the fingerprint that the gateway signed. If there is none, it computes the fingerprint from the body.
func fingerprint(req *http.Request, body []byte) (sum [32]byte, err error) {
	if given := caller.FromContext(req.Context()).Fingerprint; len(given) == len(sum) {
		return [32]byte(given), nil
	}
	var canonical []byte
	if len(body) > 0 {
		if canonical, err = contract.Canonical(body); err != nil {
			return sum, err
		}
	}
	return idem.Fingerprint(req.Method, strings.TrimPrefix(req.URL.EscapedPath(), Base), req.URL.RawQuery, canonical), nil
}

// validate runs the checks that come after a stored response and a missing resource. Both need a lookup, which is only made if a
// check fails.
func (s *Server) validate(route Route, checks ...Handler) Handler {
	return func(c *gin.Context) error {
		for _, check := range checks {
			if err := check(c); err != nil {
				return s.refuse(c, route, err)
			}
		}
		return nil
	}
}

// refuse responds with the error of a failed validation, unless a stored response or a missing resource takes precedence.
func (s *Server) refuse(c *gin.Context, route Route, invalid error) error {
	if responded, err := s.replay(c); responded || err != nil {
		return err
	}
	if route.Exists != nil {
		if err := route.Exists(c.Request.Context(), of(c).id); err != nil {
			return err
		}
	}
	return invalid
}

func parseQuery(c *gin.Context) (err error) {
	r := of(c)
	r.query, err = r.op.ParseQuery(c.Request.URL.RawQuery)
	return err
}

// validateBody lists unknown fields in a response header, or rejects them if the client prefers that. A direct API always rejects
// them.
func validateBody(c *gin.Context) error {
	r := of(c)
	if !r.op.HasBody {
		return nil
	}
	body, h := r.body, c.Writer.Header()
	if body == nil {
		body = contract.Empty()
	}
	preferred := strict(c.Request.Header)
	if preferred {
		h.Set(HeaderApplied, "handling=strict")
	} else if names := r.op.Ignored(body); len(names) > 0 && !r.direct {
		h.Set(HeaderIgnored, ignoredFields(names))
	}
	return r.op.ValidateBody(body, preferred || r.direct)
}

// parseIfMatch reads the If-Match of a change to the resource of the path.
func parseIfMatch(c *gin.Context) (err error) {
	r := of(c)
	if r.id != "" && c.Request.Method != http.MethodGet {
		r.ifMatch, err = ParseIfMatch(c.Request.Header)
	}
	return err
}

// handle runs the handler. A stored response replaces an error that the handler returned before it searched for one.
func (s *Server) handle(route Route) Handler {
	return func(c *gin.Context) error {
		err := route.Handle(c)
		if err == nil || !early(err) {
			return err
		}
		if responded, stored := s.replay(c); responded || stored != nil {
			return stored
		}
		return err
	}
}

// replay responds with the stored response of the request's key, if there is one, and ends the request.
func (s *Server) replay(c *gin.Context) (responded bool, err error) {
	ctx := c.Request.Context()
	if _, ok := idem.RequestFrom(ctx); !ok || s.Idempotency == nil {
		return false, nil
	}
	res, err := s.Idempotency.Check(ctx)
	if err != nil || res == nil {
		return false, err
	}
	c.Abort()
	res.Replayed = true
	return true, Send(c, *res)
}

// early reports whether a handler may return this error before it reads the idempotency record. A stored response of the
// same key replaces such an error.
func early(err error) bool {
	if errors.Is(err, apperr.ErrMismatch) || errors.Is(err, apperr.ErrInProgress) {
		return false
	}
	switch apperr.As(err).Kind {
	case apperr.Invalid, apperr.NotFound, apperr.Forbidden, apperr.Conflict, apperr.PreconditionFailed:
		return true
	default:
		return false
	}
}
