package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"

	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

// What scripts of other origins may send, and which response headers they may read (CORS protocol of the Fetch standard).
const (
	sentHeaders = "Authorization, Content-Type, Accept, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Mcp-Protocol-Version, Prefer, X-Request-Id"
	readHeaders = "X-Request-Id, X-Service-Scope, RateLimit, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, " +
		"Service-Should-Retry, Location, ETag, Idempotent-Replayed, X-Ignored-Fields, Preference-Applied, WWW-Authenticate"
	preflightMaxAge = "600" // seconds
)

// preflight responds to a browser's preflight request for a path that has these methods. The response is 204 for an origin that an
// app registered, and 405 for any other OPTIONS request.
func (s *Server) preflight(allow string) httpx.Handler {
	return func(c *gin.Context) error {
		r := c.Request
		refused := httpx.ErrMethod.WithHeader("Allow", allow)
		origin := r.Header.Get("Origin")
		if origin == "" || r.Header.Get("Access-Control-Request-Method") == "" {
			return refused
		}
		if err := s.Pipeline.Count(r.Context(), "identity:"+domain.Network(s.address(r)), s.Pipeline.Browsers); err != nil {
			return err
		}
		registered, err := s.Pipeline.Origins.Registered(r.Context(), origin)
		if err != nil {
			return err
		}
		h := c.Writer.Header()
		h.Set("Vary", "Origin")
		if !registered {
			return refused
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Methods", allow)
		h.Set("Access-Control-Allow-Headers", sentHeaders)
		h.Set("Access-Control-Max-Age", preflightMaxAge)
		c.Status(http.StatusNoContent)
		return nil
	}
}

// readable lets scripts of registered origins read the errors of h. The service itself does the same for its own responses.
func (s *Server) readable(h httpx.Handler) httpx.Handler {
	return func(c *gin.Context) error {
		err := h(c)
		if err == nil {
			return nil
		}
		header := c.Writer.Header()
		header.Set("Vary", "Origin")
		if origin := c.Request.Header.Get("Origin"); origin != "" && s.Pipeline.Origins.Known(c.Request.Context(), origin) {
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Expose-Headers", readHeaders)
		}
		return err
	}
}

// allowOrigin lets scripts of the app's own pages read the response to a request with an access token. An API key allows no origin.
func allowOrigin(c *gin.Context, credential *app.Credential) {
	origin := c.Request.Header.Get("Origin")
	if origin == "" || credential == nil || credential.Caller.Kind != domain.KindOAuth {
		return
	}
	h := c.Writer.Header()
	h.Set("Vary", "Origin")
	if !slices.Contains(credential.Origins, origin) {
		h.Del("Access-Control-Allow-Origin") // the app has removed the origin in the meantime
		h.Del("Access-Control-Expose-Headers")
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", readHeaders)
}
