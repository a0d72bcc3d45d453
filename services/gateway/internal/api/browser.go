package api

import (
	"crypto/sha256"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
)

// oauthPaths are the pages and endpoints of OAuth, which identity serves, with their methods. They are not in the contract: RFCs
// and docs/guides/oauth.md specify their requests and responses.
var oauthPaths = map[string][]string{
	"/oauth/authorize":       {http.MethodGet, http.MethodPost},
	"/oauth/token":           {http.MethodPost},
	"/oauth/revoke":          {http.MethodPost},
	"/oauth/par":             {http.MethodPost},
	"/oauth/register":        {http.MethodPost},
	"/oauth/sign-in":         {http.MethodGet, http.MethodPost},
	"/oauth/forgot-password": {http.MethodGet, http.MethodPost},
	"/oauth/second-factor":   {http.MethodGet, http.MethodPost},
	"/oauth/account":         {http.MethodGet, http.MethodPost},
	"/oauth/sign-out":        {http.MethodPost},
	"/oauth/link/:token":     {http.MethodGet, http.MethodPost},
	"/oauth/style.css":       {http.MethodGet},

	"/.well-known/oauth-authorization-server":      {http.MethodGet},
	"/.well-known/oauth-protected-resource":        {http.MethodGet},
	"/.well-known/oauth-protected-resource/api/v1": {http.MethodGet},
	"/.well-known/oauth-protected-resource/mcp":    {http.MethodGet},
	"/.well-known/oauth-protected-resource/mcp/":   {http.MethodGet},
}

// consolePaths are the pages of the operators' area, which the console serves.
var consolePaths = map[string][]string{
	"/admin":       {http.MethodGet},
	"/admin/*page": {http.MethodGet, http.MethodPost},
}

// crossOrigin are the paths to which scripts of apps' pages may send requests.
var crossOrigin = map[string]bool{"/oauth/token": true, "/oauth/revoke": true, "/oauth/par": true}

// browserHeaders are the headers of a browser's request that only services with pages receive, in addition to those that every
// service receives.
var browserHeaders = [...]string{"Accept-Encoding", "Accept-Language", "Authorization", "Cookie", "Hx-Request", "Origin", "Sec-Fetch-Site", "User-Agent"}

const (
	livePages   = "/live" // suffix of a path whose response lasts as long as its page is open
	exportPages = ".csv"  // suffix of a path whose response can have any size
)

// mountBrowser registers the pages and endpoints that browsers use.
func (s *Server) mountBrowser(router *gin.Engine) {
	s.mountPages(router, "identity", oauthPaths)
	s.mountPages(router, "console", consolePaths)
}

func (s *Server) mountPages(router *gin.Engine, service string, paths map[string][]string) {
	for path, methods := range paths {
		proxy := func(c *gin.Context) error { return s.proxyPage(c, service, path) }
		if crossOrigin[path] {
			proxy = s.readable(proxy)
		}
		byMethod := map[string]gin.HandlersChain{}
		for _, m := range methods {
			byMethod[m] = httpx.Steps(proxy)
		}
		if !crossOrigin[path] {
			mount(router, path, byMethod)
			continue
		}
		refusal := func(allow string) httpx.Handler { return s.readable(refuseMethod(allow)) }
		mountRefusing(router, path, byMethod, refusal, s.preflight)
	}
}

// proxyPage forwards a browser's request to a service with pages. Its rate and its bytes are counted per client network. Logs and
// traces contain the route, but never the query or the token of a link.
func (s *Server) proxyPage(c *gin.Context, service, route string) error {
	r := c.Request
	obs.SetRoute(r.Context(), route)
	if hasDotSegment(r.URL.EscapedPath()) {
		return httpx.ErrNotFound
	}
	address := s.address(r)
	holder := service + ":" + domain.Network(address)
	if err := s.Pipeline.Count(r.Context(), holder, s.Pipeline.Browsers); err != nil {
		return err
	}
	call, free, err := s.ownCall(c, holder, address)
	defer free()
	if err != nil {
		return err
	}
	passed := http.Header{}
	for _, name := range browserHeaders {
		if values := r.Header[name]; len(values) > 0 {
			passed[name] = values
		}
	}
	call.Path, call.Query, call.ContentType, call.Passed = r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), passed
	if strings.HasSuffix(route, "/*page") && r.Method == http.MethodGet && (strings.HasSuffix(call.Path, livePages) || strings.HasSuffix(call.Path, exportPages)) {
		return s.streamPage(c, service, call)
	}
	response, err := s.Pipeline.Upstreams[service].Do(r.Context(), call)
	if err != nil {
		return err
	}
	if origin := http.Header(response.Passed).Get("Access-Control-Allow-Origin"); crossOrigin[route] && origin != "" {
		s.Pipeline.Origins.Note(origin)
	}
	s.write(c, &response)
	return nil
}

// ownCall reads a request without a credential and returns a call of the gateway itself, without a path. The bytes of its body count
// for holder until free is called, also after an error.
func (s *Server) ownCall(c *gin.Context, holder, address string) (call *domain.Call, free func(), err error) {
	held := int64(0)
	free = func() { s.Pipeline.Bodies.Free(holder, held) }
	body, err := httpx.ReadBody(c, func(n int64) error {
		err := s.Pipeline.Bodies.Take(holder, n)
		if err == nil {
			held += n
		}
		return err
	})
	if err != nil {
		return nil, free, err
	}
	from := caller.Service("gateway", ids.Tenant{}, "")
	from.RequestID = httpx.RequestID(c)
	encoded, err := caller.Encode(from)
	if err != nil {
		return nil, free, err
	}
	return &domain.Call{
		Caller: from, Encoded: encoded, Method: c.Request.Method, Body: body, Traceparent: obs.Traceparent(c.Request.Context()), Address: address,
	}, free, nil
}

// sessionCookies are the names of the session cookie, with and without encrypted connections.
var sessionCookies = [...]string{"__Host-holdfast_session", "holdfast_session"}

// streamPage forwards a response while it arrives. A session can have as many streams as one credential, regardless of the
// browser's other requests. Without a session the service responds immediately. The service also counts the streams of a session
// and of an operator, because only the service knows them.
func (s *Server) streamPage(c *gin.Context, service string, call *domain.Call) error {
	holder := "network:" + domain.Network(call.Address)
	for _, name := range sessionCookies {
		if session, err := c.Request.Cookie(name); err == nil {
			sum := sha256.Sum256([]byte(session.Value))
			holder = "session:" + string(sum[:])
			break
		}
	}
	call.Whole, call.Accept = strings.HasSuffix(call.Path, exportPages), c.Request.Header.Get("Accept")
	return s.Pipeline.StreamFor(c.Request.Context(), c.Writer, service, holder, call)
}

// hasDotSegment reports whether a path contains a segment that a client, a proxy or a service could resolve in different ways.
func hasDotSegment(escaped string) bool {
	for segment := range strings.SplitSeq(strings.ToLower(escaped), "/") {
		if segment = strings.ReplaceAll(segment, "%2e", "."); segment == "." || segment == ".." || strings.Contains(segment, "%2f") || strings.Contains(segment, "%5c") {
			return true
		}
	}
	return false
}
