package httpx

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idem"
	"holdfast.dev/proto/api"
)

// Headers from a service to the gateway, which removes them: the expiry of the idempotency record (Unix seconds), and "no" for a
// response that must not be cached because it contains a secret or personal data.
const (
	HeaderIdempotencyExpires = "X-Internal-Idem-Expires"
	HeaderIdempotencyCache   = "X-Internal-Idem-Cache"
)

// Headers that name unknown fields of the body: the ignored fields, and the applied preference. A replay has neither.
const (
	HeaderIgnored = "X-Ignored-Fields"
	HeaderApplied = "Preference-Applied"
)

// Send responds to a write with the stored bytes of its response.
func Send(c *gin.Context, r idem.Response) error {
	h := c.Writer.Header()
	if r.Location != "" {
		h.Set("Location", r.Location)
	}
	if r.Replayed {
		h.Del(HeaderIgnored)
		h.Del(HeaderApplied)
		h.Set("Idempotent-Replayed", "true")
	}
	if of(c).direct {
		return JSON(c, r.Status, r.ETag, r.Body)
	}
	if !r.ExpiresAt.IsZero() {
		h.Set(HeaderIdempotencyExpires, strconv.FormatInt(r.ExpiresAt.Unix(), 10))
	}
	if op := of(c).op; r.Secret || op != nil && !op.Cacheable() {
		h.Set(HeaderIdempotencyCache, "no")
	}
	return JSON(c, r.Status, r.ETag, r.Body)
}

// JSON responds with body unchanged. etag, if not empty, is the header's value with its quotes. A 204 has no body.
func JSON(c *gin.Context, status int, etag string, body []byte) error {
	return respond(c, status, etag, "application/json", body)
}

// PDF responds with a PDF document.
func PDF(c *gin.Context, body []byte) error {
	return respond(c, http.StatusOK, "", "application/pdf", body)
}

// Text responds with a document of a media type with the entity tag of its content. It responds with 304 when the client already
// has the document. Clients may cache it, but must revalidate it each time.
func Text(c *gin.Context, contentType, etag string, body []byte) error {
	status := http.StatusOK
	if noneMatch(c.Request.Header.Values("If-None-Match"), etag) {
		status, body = http.StatusNotModified, nil
	}
	c.Writer.Header().Set("Cache-Control", "private, no-cache")
	return respond(c, status, etag, contentType, body)
}

// noneMatch reports whether an If-None-Match contains the entity tag, using the weak comparison of RFC 9110.
func noneMatch(values []string, etag string) bool {
	for given := range strings.SplitSeq(strings.Join(values, ","), ",") {
		given = strings.TrimSpace(given)
		if given == "*" || strings.TrimPrefix(given, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

func respond(c *gin.Context, status int, etag, contentType string, body []byte) error {
	h := c.Writer.Header()
	if etag != "" {
		h.Set("ETag", etag)
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	if status == http.StatusNoContent || len(body) == 0 {
		c.Writer.WriteHeader(status)
		c.Writer.WriteHeaderNow()
		return nil
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body) // fails when the client is gone
	return nil
}

// Resource responds with one resource in its public form, with its version as the entity tag.
func Resource(c *gin.Context, version int64, v any) error {
	body, err := contract.Encode(v)
	if err != nil {
		return err
	}
	return JSON(c, http.StatusOK, ETag(version), body)
}

// ListBody returns a list's body. next is ignored on the last page.
func ListBody(data []json.RawMessage, hasMore bool, next string) []byte {
	out := []byte(`{"data":[`)
	for i, item := range data {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	out = append(out, `],"has_more":`...)
	out = strconv.AppendBool(out, hasMore)
	out = append(out, `,"next_cursor":`...)
	if !hasMore {
		return append(out, `null}`...)
	}
	return append(append(out, encode(next)...), '}')
}

// Mode returns the caller's mode as the contract defines it.
func Mode(ctx context.Context) api.Mode { return api.Mode(caller.FromContext(ctx).Mode) }
