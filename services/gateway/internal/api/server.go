// Package api is the gateway's HTTP server: it finds the operation of each request, runs the checks in their one order,
// and writes the answer.
package api

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/api/docs"
	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

// Server answers every request that reaches the gateway.
type Server struct {
	Contract *contract.Contract
	Pipeline *app.Pipeline
	Docs     *docs.Pages
	Hops     int // trusted proxies in front, whose X-Forwarded-For is believed

	BodyStallTimeout time.Duration // for the next bytes of a body, then it is cut
	ReadTimeout      time.Duration // for the whole body; 0: none
}

// bases are the paths under which each operation is mounted. Services know the first one only.
var bases = [...]string{"/api/v1", "/v1"}

// Handler returns the router with all checks of a request, in the order of their errors. The line in the access log is
// begun before all of them, by obs.Handler, which libs/service puts around each handler. A verdict that is known early
// waits for its turn: the key is looked up in the round trip of limitRate, and judged by checkIdempotencyKey.
func (s *Server) Handler() http.Handler {
	router := httpx.NewRouter(domain.ErrNotFound)
	router.UseEscapedPath, router.UnescapePathValues = true, false // the path that is matched is the one that goes on
	router.HandleMethodNotAllowed = false                          // each path answers all methods itself
	// These run before the router's own 404 and 405, too.
	router.Use(requestID, httpx.Recover)
	router.Use(httpx.Steps(s.limitBodyTime, rejectFragment, rejectEmptySegment)...)
	s.mountOperations(router,
		rejectQueryKey,
		s.authenticate,
		s.limitRate,
		authorize,
		s.readBody,
		parseBody,
		checkIdempotencyKey,
		s.replay,
		s.proxy,
	)
	for path, document := range s.Docs.All() {
		mount(router, path, map[string]gin.HandlersChain{http.MethodGet: {page(path, document)}})
	}
	return knownMethods(router)
}

// mountOperations registers the operations of the contract under each base.
func (s *Server) mountOperations(router *gin.Engine, steps ...httpx.Handler) {
	paths := map[string]map[string]gin.HandlersChain{}
	for _, op := range s.Contract.Operations() {
		for _, base := range bases {
			path := base + httpx.Path(op)
			if paths[path] == nil {
				paths[path] = map[string]gin.HandlersChain{}
			}
			paths[path][op.Method] = httpx.Steps(append([]httpx.Handler{s.route(op, base)}, steps...)...)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		mount(router, path, paths[path])
	}
}

// methods are those that the router knows.
var methods = [...]string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodHead, http.MethodOptions, http.MethodConnect, http.MethodTrace,
}

// mount registers a path. Its other methods are registered too, as 405: the router has a tree for each method, and would
// take /events/replay for an id where only POST has that path.
func mount(router *gin.Engine, path string, byMethod map[string]gin.HandlersChain) {
	allow := strings.Join(slices.Sorted(maps.Keys(byMethod)), ", ")
	refuse := httpx.Steps(func(*gin.Context) error { return httpx.ErrMethod.WithHeader("Allow", allow) })
	for _, method := range methods {
		if chain, ok := byMethod[method]; ok {
			router.Handle(method, path, chain...)
		} else {
			router.Handle(method, path, refuse...)
		}
	}
}

// knownMethods has the router refuse a method that it does not know like TRACE, which no path has.
func knownMethods(router http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods[:], r.Method) {
			known := *r
			known.Method = http.MethodTrace
			r = &known
		}
		router.ServeHTTP(w, r)
	})
}

// page serves a document.
func page(path string, document http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		obs.SetRoute(c.Request.Context(), path)
		document.ServeHTTP(c.Writer, c.Request)
	}
}

// requestID gives the request its id. The client's own is only logged.
func requestID(c *gin.Context) {
	id := ids.New[ids.RequestPrefix]().String()
	httpx.SetRequestID(c, id)
	ctx := c.Request.Context()
	obs.Add(ctx, slog.String("request_id", id))
	if client := c.Request.Header.Get("X-Request-Id"); client != "" {
		obs.Add(ctx, slog.String("client_request_id", client[:min(len(client), 128)]))
	}
}

// rejectFragment refuses a target with a raw #: what follows it would be lost on the way to the service.
func rejectFragment(c *gin.Context) error {
	if strings.Contains(c.Request.RequestURI, "#") {
		return domain.ErrTarget
	}
	return nil
}

// rejectEmptySegment refuses a path with an empty segment, which the router would take for an empty id.
func rejectEmptySegment(c *gin.Context) error {
	if strings.Contains(c.Request.URL.Path, "//") && strings.Contains(c.Request.URL.EscapedPath(), "//") {
		return domain.ErrNotFound
	}
	return nil
}

// route notes the operation that the router has found.
func (s *Server) route(op *contract.Operation, base string) httpx.Handler {
	return func(c *gin.Context) error {
		r := c.Request
		obs.SetRoute(r.Context(), op.Path)
		c.Set(requestKey, &request{
			op: op, id: httpx.RequestID(c), path: strings.TrimPrefix(r.URL.EscapedPath(), base), address: s.address(r),
		})
		return nil
	}
}
