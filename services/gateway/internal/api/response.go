package api

import (
	"maps"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"

	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

// setRateLimitHeaders sets the headers of every authenticated response. It writes their names as the drafts spell them;
// http.Header.Set would change the spelling.
func setRateLimitHeaders(h http.Header, v *app.Verdict) {
	limit, policy := v.Rates.Header(v.Limit())
	values := [...]string{
		v.Credential.Scopes, strconv.FormatInt(v.Rates.Credential.Limit, 10), strconv.FormatInt(v.Rates.Credential.Remaining, 10),
		strconv.FormatInt(v.Rates.Credential.Reset, 10), limit, policy,
	}
	h["X-Service-Scope"] = values[0:1:1]
	h["RateLimit-Limit"] = values[1:2:2]
	h["RateLimit-Remaining"] = values[2:3:3]
	h["RateLimit-Reset"] = values[3:4:4]
	h["RateLimit"] = values[4:5:5]
	h["RateLimit-Policy"] = values[5:6:6]
}

// write sends a service's response, compressed if possible. It does not change Location, which begins with /api/v1 for every base.
func (s *Server) write(c *gin.Context, a *domain.Response) {
	h := c.Writer.Header()
	s.Compressor.compress(h, c.Request, a)
	set := func(name, value string) {
		if value != "" {
			h[name] = []string{value}
		}
	}
	maps.Copy(h, a.Passed)
	set("Content-Type", a.ContentType)
	set("Location", a.Location)
	set("Etag", a.ETag)
	set("Cache-Control", a.CacheControl)
	set("Www-Authenticate", a.WWWAuthenticate)
	set("Retry-After", a.RetryAfter)
	set(httpx.HeaderShouldRetry, a.ShouldRetry)
	set(httpx.HeaderIgnored, a.IgnoredFields)
	set(httpx.HeaderApplied, a.Applied)
	if a.Replayed {
		set("Idempotent-Replayed", "true")
	}
	if a.Status != http.StatusNoContent && a.Status != http.StatusNotModified {
		set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	c.Writer.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		_, _ = c.Writer.Write(a.Body)
	}
}
