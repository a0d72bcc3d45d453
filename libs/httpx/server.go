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

// Handler decodes, calls one thing and answers with Send or JSON; an error it returns is written here.
type Handler func(c *gin.Context) error

// Route is what a service gives for one operation.
type Route struct {
	Handle Handler
	// Exists returns the 404 or 403 of the id in the path, nil when the caller may see the resource. It is
	// asked only when the request is about to be refused as invalid: those errors come first. A path without
	// an id may have one too, for a resource that each caller has one of or none; id is "" then.
	Exists func(ctx context.Context, id string) error
}

// IdemChecker finds the stored answer of a request whose key is in ctx: nil without one, ErrMismatch when
// the key was used for another request. *idem.Store is one.
type IdemChecker interface {
	Check(ctx context.Context) (*idem.Reply, error)
}

// Server mounts the operations of one service.
type Server struct {
	Service  string // x-service in the contract
	Contract *contract.Contract
	Verifier *caller.Verifier
	Idem     IdemChecker      // nil in a service without writes
	Now      func() time.Time // nil is time.Now
}

// Mount registers each of the service's operations under /api/v1. routes is keyed by operationId; one that
// is missing, without a handler, or not the service's is an error.
func (s *Server) Mount(e *gin.Engine, routes map[string]Route) error {
	var wrong []string
	for id := range routes {
		if op := s.Contract.Operation(id); op == nil || op.Service != s.Service {
			wrong = append(wrong, id+" is not an operation of "+s.Service)
		}
	}
	for _, op := range s.Contract.For(s.Service) {
		r := routes[op.ID]
		if r.Handle == nil {
			wrong = append(wrong, op.ID+" has no handler")
			continue
		}
		e.Handle(op.Method, Base+ginPath(op.Path), s.handle(op, r))
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("mount %s: %s", s.Service, strings.Join(wrong, "; "))
	}
	return nil
}

func ginPath(path string) string { return strings.NewReplacer("{", ":", "}", "").Replace(path) }

func (s *Server) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Internal lets the named services' signed calls through to h and nobody else's; tenant and mode are those that
// the caller states. It is for the calls of proto/internal, which the public contract does not have.
func (s *Server) Internal(h Handler, peers ...string) gin.HandlerFunc {
	return func(c *gin.Context) {
		obs.SetRoute(c.Request.Context(), c.FullPath())
		peer, err := s.identify(c)
		if err == nil && !slices.Contains(peers, peer) {
			err = ErrCaller.With(fmt.Errorf("%s may not ask", peer))
		}
		if err == nil {
			err = h(c)
		}
		if err != nil {
			fail(c, err)
		}
	}
}

func (s *Server) handle(op *contract.Operation, route Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		obs.SetRoute(c.Request.Context(), op.Path)
		if err := s.serve(c, op, route); err != nil {
			fail(c, err)
		}
	}
}

// serve runs the checks in the order of the contract's errors: caller, size, type and form, key; then
// replay, existence, query, body, If-Match. The last five cost nothing until one of them fails.
func (s *Server) serve(c *gin.Context, op *contract.Operation, route Route) error {
	r := &request{op: op}
	if len(op.PathParams) > 0 {
		r.id = c.Param(op.PathParams[0])
	}
	c.Set(ctxKey, r)
	if _, err := s.identify(c); err != nil {
		return err
	}
	if err := s.read(c, r); err != nil {
		return err
	}
	if err := s.validate(c, r); err != nil {
		return s.refuse(c, r, route, err)
	}
	err := route.Handle(c)
	if err == nil || !early(err) {
		return err
	}
	if answered, stored := s.replay(c); answered || stored != nil {
		return stored
	}
	return err
}

// identify puts the verified caller into the request's context and returns the service that signed for it.
func (s *Server) identify(c *gin.Context) (peer string, err error) {
	req := c.Request
	from, peer, err := s.Verifier.Verify(req.Header.Get(caller.Header), req.Method, req.URL.EscapedPath(), s.now())
	req.Header.Del(caller.Header)
	if err != nil {
		return "", ErrCaller.With(err)
	}
	from.Traceparent = obs.Traceparent(req.Context())
	ctx := caller.With(req.Context(), from)
	obs.AddCaller(ctx, from)
	obs.Add(ctx, slog.String("peer", peer))
	c.Request = req.WithContext(ctx)
	return peer, nil
}

// read takes the body and the key, and puts the key with the request's fingerprint into the context.
func (s *Server) read(c *gin.Context, r *request) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	req := c.Request
	if req.Method != http.MethodPost && req.Method != http.MethodPatch && req.Method != http.MethodPut {
		return nil // a body has no meaning there
	}
	if r.body, err = parseBody(r.op, req.Header.Get("Content-Type"), body); err != nil {
		return err
	}
	key, err := idempotencyKey(req.Header)
	if err != nil || key == "" {
		return err
	}
	sum, err := fingerprint(req, body)
	if err != nil {
		return err
	}
	c.Request = req.WithContext(idem.WithRequest(req.Context(), idem.Request{Key: key, Fingerprint: sum, Secret: r.op.Secret}))
	return nil
}

// fingerprint is what the gateway has worked out from its reading of the body. Who calls without one has the body
// read once more.
func fingerprint(req *http.Request, body []byte) (sum [32]byte, err error) {
	if given := caller.Must(req.Context()).Fingerprint; len(given) == len(sum) {
		return [32]byte(given), nil
	}
	var canonical []byte
	if len(body) > 0 {
		if canonical, err = contract.Canonical(body); err != nil {
			return sum, err //nolint:wrapcheck // the answer
		}
	}
	return idem.Fingerprint(req.Method, strings.TrimPrefix(req.URL.EscapedPath(), Base), req.URL.RawQuery, canonical), nil
}

func (s *Server) validate(c *gin.Context, r *request) error {
	var err error
	if r.query, err = r.op.ParseQuery(c.Request.URL.RawQuery); err != nil {
		return err
	}
	if r.op.HasBody {
		if err := validateBody(c, r); err != nil {
			return err
		}
	}
	if r.id != "" && c.Request.Method != http.MethodGet {
		r.ifMatch, err = parseIfMatch(c.Request.Header)
	}
	return err
}

// validateBody names unknown fields in the answer's header, or refuses them where the client prefers that.
func validateBody(c *gin.Context, r *request) error {
	body, h := r.body, c.Writer.Header()
	if body == nil {
		body = contract.Empty()
	}
	refuse := strict(c.Request.Header)
	if refuse {
		h.Set(HeaderApplied, "handling=strict")
	} else if names := r.op.Ignored(body); len(names) > 0 {
		h.Set(HeaderIgnored, ignoredFields(names))
	}
	return r.op.ValidateBody(body, refuse) //nolint:wrapcheck // the answer
}

// refuse looks for whatever comes before a failed validation: a stored answer, then a missing resource.
func (s *Server) refuse(c *gin.Context, r *request, route Route, invalid error) error {
	if answered, err := s.replay(c); answered || err != nil {
		return err
	}
	if route.Exists != nil {
		if err := route.Exists(c.Request.Context(), r.id); err != nil {
			return err
		}
	}
	return invalid
}

// replay answers with the stored reply of the request's key, if there is one.
func (s *Server) replay(c *gin.Context) (answered bool, err error) {
	ctx := c.Request.Context()
	if _, ok := idem.RequestFrom(ctx); !ok || s.Idem == nil {
		return false, nil
	}
	reply, err := s.Idem.Check(ctx)
	if err != nil || reply == nil {
		return false, err //nolint:wrapcheck // an answer, or an internal error that says what it is
	}
	reply.Replayed = true
	return true, Send(c, *reply)
}

// early reports whether an error may have come before the look at the idempotency record, which an earlier
// success with the same key outranks.
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
