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

// request contains what the checks know about one request.
type request struct {
	op          *contract.Operation
	id          string
	path        string          // escaped, relative to the base
	address     string          // of the client
	credential  *app.Credential // nil for an operation without one
	key         string          // Idempotency-Key
	badKey      error           // the error of an invalid key
	cached      []byte          // the cached response of the key
	body        []byte
	canonical   []byte // the body's canonical form, until the fingerprint is computed
	fingerprint [32]byte
	held        int64  // bytes counted for this request
	failure     []byte // the body of the service's error
}

// of returns the request of c, which route has stored there.
func of(c *gin.Context) *request {
	q, _ := c.Value(requestKey).(*request)
	return q
}

// caller returns the credential's caller with the id of this request.
func (q *request) caller() caller.Caller {
	from := q.credential.Caller
	from.RequestID = q.id
	return from
}

// call returns the call to the service. No other header of the client is sent.
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

// address returns the client's address: that of the connection, or the one that the outermost trusted proxy added.
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
