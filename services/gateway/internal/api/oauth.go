package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
)

// oauthPaths are the pages and endpoints of OAuth, which identity answers, with their methods. They are not in the contract: what they
// take and answer stands in RFCs, and in docs/oauth.md.
var oauthPaths = map[string][]string{
	"/oauth/authorize":     {http.MethodGet, http.MethodPost},
	"/oauth/token":         {http.MethodPost},
	"/oauth/revoke":        {http.MethodPost},
	"/oauth/par":           {http.MethodPost},
	"/oauth/sign-in":       {http.MethodGet, http.MethodPost},
	"/oauth/second-factor": {http.MethodGet, http.MethodPost},
	"/oauth/account":       {http.MethodGet, http.MethodPost},
	"/oauth/sign-out":      {http.MethodPost},
	"/oauth/link/:token":   {http.MethodGet, http.MethodPost},
	"/oauth/style.css":     {http.MethodGet},

	"/.well-known/oauth-authorization-server":      {http.MethodGet},
	"/.well-known/oauth-protected-resource":        {http.MethodGet},
	"/.well-known/oauth-protected-resource/api/v1": {http.MethodGet},
}

// crossOrigin are the paths to which scripts of apps' pages may send requests.
var crossOrigin = map[string]bool{"/oauth/token": true, "/oauth/revoke": true, "/oauth/par": true}

// browserHeaders are what identity gets of a browser's request besides what every service gets.
var browserHeaders = [...]string{"Accept-Language", "Authorization", "Cookie", "Origin", "Sec-Fetch-Site", "User-Agent"}

// mountOAuth registers the pages and endpoints of OAuth.
func (s *Server) mountOAuth(router *gin.Engine) {
	for path, methods := range oauthPaths {
		steps := httpx.Steps(func(c *gin.Context) error { return s.proxyOAuth(c, path) })
		byMethod := map[string]gin.HandlersChain{}
		for _, m := range methods {
			byMethod[m] = steps
		}
		if crossOrigin[path] {
			mount(router, path, byMethod, s.preflight)
		} else {
			mount(router, path, byMethod)
		}
	}
}

// proxyOAuth forwards a request to identity. Its rate and its bytes are counted by the client's network. Neither logs nor traces show its
// query or the token of a link: they name the route.
func (s *Server) proxyOAuth(c *gin.Context, route string) error {
	r := c.Request
	obs.SetRoute(r.Context(), route)
	address := s.address(r)
	holder := "oauth:" + domain.Network(address)
	if err := s.Pipeline.Count(r.Context(), holder, s.Pipeline.OAuth); err != nil {
		return err
	}
	held := int64(0)
	defer func() { s.Pipeline.Bodies.Free(holder, held) }()
	body, err := httpx.ReadBody(c, func(n int64) error {
		err := s.Pipeline.Bodies.Take(holder, n)
		if err == nil {
			held += n
		}
		return err
	})
	if err != nil {
		return err
	}
	from := caller.Service("gateway", ids.Tenant{}, "")
	from.RequestID = httpx.RequestID(c)
	encoded, err := caller.Encode(from)
	if err != nil {
		return err
	}
	passed := http.Header{}
	for _, name := range browserHeaders {
		if values := r.Header[name]; len(values) > 0 {
			passed[name] = values
		}
	}
	answer, err := s.Pipeline.Upstreams["identity"].Do(r.Context(), &domain.Call{
		Caller: from, Encoded: encoded, Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Body: body,
		ContentType: r.Header.Get("Content-Type"), Traceparent: obs.Traceparent(r.Context()), Address: address, Passed: passed,
	})
	if err != nil {
		return err
	}
	write(c.Writer, &answer)
	return nil
}
