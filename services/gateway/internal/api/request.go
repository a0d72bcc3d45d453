package api

import (
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

const requestKey = "gateway.request"

// request is what the checks have found out about one request.
type request struct {
	op          *contract.Operation
	id          string
	path        string // escaped, relative to the base
	address     string // the client's
	credential  *app.Credential
	key         string // Idempotency-Key
	badKey      error  // the verdict on the key
	cached      []byte // the cached answer of the key
	body        []byte
	canonical   []byte // the body's canonical form, until the fingerprint is known
	fingerprint [32]byte
	held        int64 // bytes that are counted for this request
}

// of returns the request of c, which route has put there.
func of(c *gin.Context) *request {
	q, _ := c.Value(requestKey).(*request)
	return q
}

// caller is the credential's caller in this request.
func (q *request) caller() caller.Caller {
	from := q.credential.Caller
	from.RequestID = q.id
	return from
}

// call is what goes on to the service; no header of the client's but these.
func (q *request) call(r *http.Request) *domain.Call {
	call := &domain.Call{
		Caller: q.caller(), Encoded: q.credential.Encoded, Method: r.Method, Path: bases[0] + q.path, Query: r.URL.RawQuery,
		Body: q.body, ContentType: "application/json", Key: q.key,
		IfMatch: r.Header["If-Match"], IfNoneMatch: r.Header["If-None-Match"],
		Traceparent: obs.Traceparent(r.Context()), Address: q.address, Prefer: r.Header["Prefer"],
	}
	if q.key != "" {
		call.Fingerprint = q.fingerprint[:]
	}
	return call
}

// address is the client's: the connection's, or what the outermost trusted proxy has seen.
func (s *Server) address(r *http.Request) string {
	if s.Hops > 0 {
		seen := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
		if i := len(seen) - s.Hops; i >= 0 {
			if ip := net.ParseIP(strings.TrimSpace(seen[i])); ip != nil {
				return ip.String()
			}
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
