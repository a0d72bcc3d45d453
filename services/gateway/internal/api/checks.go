package api

import (
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
)

// rejectQueryKey rejects an API key in the query, even if the request has a valid Bearer token.
func rejectQueryKey(c *gin.Context) error {
	if domain.HasQueryKey(c.Request.URL.RawQuery) {
		return domain.ErrQueryKey
	}
	return nil
}

// authenticate finds the credential.
func (s *Server) authenticate(c *gin.Context) error {
	q, ctx := of(c), c.Request.Context()
	token, err := domain.Bearer(c.Request.Header["Authorization"])
	if err != nil {
		return err
	}
	found, err := s.Pipeline.Principals.Find(ctx, token, q.address)
	allowOrigin(c, found)
	q.credential = found
	if err != nil {
		return err
	}
	obs.AddCaller(ctx, q.caller())
	return nil
}

// limitRate counts the request. The same round trip checks whether the credential was revoked and whether the response to the
// Idempotency-Key is cached. The state of the tenant comes with the credential, so it is checked here, where the credential is new.
// A message of an assistant passes while the tenant is closing: the requests of its tools are checked here too.
func (s *Server) limitRate(c *gin.Context) error {
	q := of(c)
	if httpx.Writes(c.Request.Method) {
		q.key, q.badKey = httpx.IdempotencyKey(c.Request.Header)
	}
	look := ""
	if q.credential.Allows(q.op.Scopes) == nil {
		look = q.key
	}
	verdict, err := s.Pipeline.Admit(c.Request.Context(), q.credential, look)
	if err != nil {
		return err
	}
	q.credential, q.cached = verdict.Credential, verdict.Response
	allowOrigin(c, q.credential)
	setRateLimitHeaders(c.Writer.Header(), &verdict)
	if err := q.credential.Active(q.op != mcpOperation && q.op.Method != http.MethodGet); err != nil {
		return err
	}
	if verdict.Passed {
		return nil
	}
	s.Pipeline.Metrics.Limited.Inc()
	if name := verdict.Limit(); name != domain.LimitDefault {
		s.Pipeline.Metrics.CountTenantLimit(name)
		obs.Add(c.Request.Context(), slog.String("limit", name))
	}
	return verdict.Refusal()
}

// authorize rejects a credential without the operation's scopes.
func authorize(c *gin.Context) error {
	q := of(c)
	return q.credential.Allows(q.op.Scopes)
}

// readBody reads the body of a write, and counts its bytes until the response is sent. It does not read a body whose
// declared length is too large, nor the body of a GET or DELETE, which is ignored.
func (s *Server) readBody(c *gin.Context) (err error) {
	q, r := of(c), c.Request
	switch {
	case r.Method == http.MethodGet:
		return nil
	case r.ContentLength > httpx.MaxBody:
		return httpx.ErrTooLarge
	case r.Method == http.MethodDelete:
		return nil
	}
	defer func() { s.Pipeline.Bodies.Free(q.credential.Caller.Credential, q.held) }()
	if q.body, err = httpx.ReadBody(c, func(n int64) error { return s.hold(q, n) }); err != nil {
		return err
	}
	c.Next()
	return nil
}

// hold counts n more bytes of the request's body until its response is sent. The first call also counts the bytes of the cached
// response.
func (s *Server) hold(q *request, n int64) error {
	if q.held == 0 {
		n += int64(len(q.cached))
	}
	if err := s.Pipeline.Bodies.Take(q.credential.Caller.Credential, n); err != nil {
		return err
	}
	q.held += n
	return nil
}

// parseBody checks the media type of a write's body, then its syntax.
func parseBody(c *gin.Context) error {
	q := of(c)
	if !httpx.Writes(c.Request.Method) {
		return nil
	}
	found, err := httpx.HasBody(q.op, c.Request.Header.Get("Content-Type"), q.body)
	if !found || err != nil {
		return err
	}
	q.canonical, err = contract.Canonical(q.body)
	return err
}

// checkIdempotencyKey returns the error of an invalid key, and computes the fingerprint of a request with a valid key.
func checkIdempotencyKey(c *gin.Context) error {
	q, r := of(c), c.Request
	if q.key != "" {
		q.fingerprint = idem.Fingerprint(r.Method, q.path, r.URL.RawQuery, q.canonical)
	}
	q.canonical = nil
	return q.badKey
}

// replay responds with the cached response to the same request, and rejects another request with the same key.
func (s *Server) replay(c *gin.Context) error {
	q := of(c)
	response, err := s.Pipeline.Replay(q.cached, q.op.Service, q.fingerprint)
	if q.key != "" {
		s.Pipeline.Metrics.Replays.WithLabelValues(replayResult(response, err)).Inc()
	}
	if err != nil || response == nil {
		return err
	}
	obs.Add(c.Request.Context(), slog.String("idempotency", "redis"))
	s.write(c, response)
	c.Abort()
	return nil
}

func replayResult(response *domain.Response, err error) string {
	switch {
	case err != nil:
		return "mismatch"
	case response != nil:
		return "hit"
	default:
		return "miss"
	}
}

// proxy forwards the request to the service. It forwards streams and downloads while they arrive.
func (s *Server) proxy(c *gin.Context) error {
	q := of(c)
	call := q.call(c.Request)
	if q.op.Stream {
		call.Accept, call.LastEventID = c.Request.Header.Get("Accept"), c.Request.Header.Get("Last-Event-Id")
		return s.Pipeline.Stream(c.Request.Context(), &failureWriter{ResponseWriter: c.Writer, q: q}, q.op, q.credential, call)
	}
	if httpx.AcceptsCSV(q.op, c.Request.Header) {
		obs.SetRoute(c.Request.Context(), httpx.CSVRoute(q.op))
		call.Accept, call.Whole = httpx.CSVType, true
	}
	if q.op.Download {
		call.Whole = true
	}
	if call.Whole {
		return s.Pipeline.Stream(c.Request.Context(), &failureWriter{ResponseWriter: c.Writer, q: q}, q.op, q.credential, call)
	}
	response, err := s.Pipeline.Forward(c.Request.Context(), q.op, call, q.fingerprint)
	if err != nil {
		return err
	}
	if response.Status >= http.StatusBadRequest {
		q.failure = response.Body
	}
	s.write(c, &response)
	return nil
}
