// Package api is the gateway's HTTP server: it finds the operation of each request, runs the checks in a fixed order,
// and writes the response.
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

	"holdfast.dev/services/gateway/internal/api/assistant"
	"holdfast.dev/services/gateway/internal/api/docs"
	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

// Server handles every request that reaches the gateway.
type Server struct {
	Contract   *contract.Contract
	Pipeline   *app.Pipeline
	Docs       *docs.Pages
	Compressor *Compressor // of the services' responses
	Assistant  *assistant.Endpoint
	PublicURL  string // URL at which clients reach the gateway; the doc_url of errors begins with it
	Hops       int    // number of trusted proxies in front, which add to X-Forwarded-For

	BodyStallTimeout time.Duration // for the next bytes of a body; then the request ends
	ReadTimeout      time.Duration // for the whole body; 0: none
}

// bases are the paths under which each operation is mounted. Services use only the first one.
var bases = [...]string{"/api/v1", "/v1"}

// Handler returns the router with all checks of a request, in the order of their errors. obs.Handler, which wraps each handler in
// libs/service, starts the log line before all of them. A result that is available early is also used in this order: limitRate
// looks up the Idempotency-Key, and checkIdempotencyKey evaluates it.
func (s *Server) Handler() http.Handler {
	router := httpx.NewRouter(s.PublicURL, domain.ErrNotFound)
	router.UseEscapedPath, router.UnescapePathValues = true, false // the matched path is the one that is forwarded
	router.NoRoute(s.noRoute)
	router.HandleMethodNotAllowed = false // each path handles all methods itself
	// These also run before the router's own 404 and 405.
	router.Use(requestID, s.logRequest, httpx.Recover)
	router.Use(httpx.Steps(s.limitBodyTime, rejectFragment, rejectEmptySegment)...)
	s.mountOperations(router, []httpx.Handler{rejectQueryKey, s.proxyPublic},
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
	s.mountGatewayEvents(router)
	s.mountBrowser(router)
	s.mountMCP(router)
	for path, document := range s.Docs.All() {
		shown := gin.HandlersChain{page(path, document)}
		mount(router, path, map[string]gin.HandlersChain{http.MethodGet: shown, http.MethodHead: shown})
	}
	toDocs := gin.HandlersChain{func(c *gin.Context) { c.Redirect(http.StatusPermanentRedirect, "/docs") }}
	mount(router, "/docs/", map[string]gin.HandlersChain{http.MethodGet: toDocs, http.MethodHead: toDocs})
	return knownMethods(router)
}

// noRoute responds to an unknown path: with a page if a browser looks for one of the portal, otherwise with an error.
func (s *Server) noRoute(c *gin.Context) {
	r := c.Request
	if strings.HasPrefix(r.URL.Path, docs.Folder) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		s.Docs.Missing().ServeHTTP(c.Writer, r)
		return
	}
	httpx.Fail(c, domain.ErrNotFound)
}

// mountOperations registers the operations of the contract under each base: those without a credential with the steps of
// public, all others with steps.
func (s *Server) mountOperations(router *gin.Engine, public []httpx.Handler, steps ...httpx.Handler) {
	paths, withoutCredential := map[string]map[string]gin.HandlersChain{}, map[string]bool{}
	for _, op := range s.Contract.Operations() {
		own := steps
		if op.Public {
			own = public
		}
		for _, base := range bases {
			path := base + httpx.Path(op)
			if paths[path] == nil {
				paths[path] = map[string]gin.HandlersChain{}
			}
			withoutCredential[path] = op.Public
			paths[path][op.Method] = httpx.Steps(append([]httpx.Handler{s.route(op, base)}, own...)...)
			if op.Public && op.Method == http.MethodGet { // programs that subscribe first check the address with HEAD
				paths[path][http.MethodHead] = paths[path][op.Method]
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if withoutCredential[path] {
			mount(router, path, paths[path])
		} else {
			mount(router, path, paths[path], s.preflight)
		}
	}
}

// methods are the methods that the router knows.
var methods = [...]string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodHead, http.MethodOptions, http.MethodConnect, http.MethodTrace,
}

// mount registers a path. It also registers the other methods of the path, as 405. The router has a tree for each method, so
// otherwise a GET of /events/replay would match an id if only POST has that path. options handles OPTIONS, if it is given.
func mount(router *gin.Engine, path string, byMethod map[string]gin.HandlersChain, options ...func(allow string) httpx.Handler) {
	mountRefusing(router, path, byMethod, refuseMethod, options...)
}

func refuseMethod(allow string) httpx.Handler {
	return func(*gin.Context) error { return httpx.ErrMethod.WithHeader("Allow", allow) }
}

// mountRefusing is mount with a given response to the other methods.
func mountRefusing(
	router *gin.Engine, path string, byMethod map[string]gin.HandlersChain, refusal func(allow string) httpx.Handler, options ...func(allow string) httpx.Handler,
) {
	allow := strings.Join(slices.Sorted(maps.Keys(byMethod)), ", ")
	refuse := httpx.Steps(refusal(allow))
	for _, option := range options {
		byMethod[http.MethodOptions] = httpx.Steps(option(allow))
	}
	for _, method := range methods {
		if chain, ok := byMethod[method]; ok {
			router.Handle(method, path, chain...)
		} else {
			router.Handle(method, path, refuse...)
		}
	}
}

// knownMethods makes the router treat an unknown method like TRACE, which no path has.
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

// requestID assigns an id to the request. The client's own id is only logged.
func requestID(c *gin.Context) {
	id := ids.New[ids.RequestPrefix]().String()
	httpx.SetRequestID(c, id)
	ctx := c.Request.Context()
	obs.Add(ctx, slog.String("request_id", id))
	if client := c.Request.Header.Get("X-Request-Id"); client != "" {
		obs.Add(ctx, slog.String("client_request_id", client[:min(len(client), 128)]))
	}
}

// rejectFragment rejects a target with an unescaped #, because the service would not receive the part after it.
func rejectFragment(c *gin.Context) error {
	if strings.Contains(c.Request.RequestURI, "#") {
		return domain.ErrTarget
	}
	return nil
}

// rejectEmptySegment rejects a path with an empty segment, which the router would treat as an empty id.
func rejectEmptySegment(c *gin.Context) error {
	if strings.Contains(c.Request.URL.Path, "//") && strings.Contains(c.Request.URL.EscapedPath(), "//") {
		return domain.ErrNotFound
	}
	return nil
}

// route stores the operation that the router found.
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
