package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"

	"holdfast.dev/services/gateway/internal/domain"
)

// logRequest counts the request before its response, and adds it to the request log after it. A request without a credential belongs to no
// tenant and is neither counted nor logged, and nor is a message of an assistant: the requests of its tools are.
func (s *Server) logRequest(c *gin.Context) {
	w := &countingWriter{ResponseWriter: c.Writer, s: s, c: c, start: time.Now()}
	c.Writer = w
	defer s.addRequest(c, w) // also if the response is aborted
	c.Next()
}

func (s *Server) addRequest(c *gin.Context, w *countingWriter) {
	w.count()
	q := of(c)
	if !metered(q) {
		return
	}
	h := c.Writer.Header()
	if !s.Pipeline.Requests.Wants(c.Request.Method, c.Writer.Status()) {
		return
	}
	entry := domain.RequestLog{
		ID: q.id, Caller: &q.credential.Caller, Status: c.Writer.Status(), Method: c.Request.Method, Route: q.op.Path, Path: q.path,
		Query: c.Request.URL.RawQuery, Created: lastSegment(h.Get("Location")), Duration: time.Since(w.start), Address: q.address,
		UserAgent: c.Request.UserAgent(), IdempotencyKey: q.key, Replayed: len(h["Idempotent-Replayed"]) > 0,
	}
	if entry.Status >= http.StatusBadRequest {
		entry.Code, entry.Param = failure(c, q)
	}
	s.Pipeline.Requests.Add(&entry)
}

// metered reports whether the request belongs to a tenant.
func metered(q *request) bool { return q != nil && q.credential != nil && q.op != mcpOperation }

// countingWriter counts the request before the first byte of its response, so that a request whose client has the response is counted, even
// if the process is killed.
type countingWriter struct {
	gin.ResponseWriter

	s       *Server
	c       *gin.Context
	start   time.Time
	counted bool
}

func (w *countingWriter) count() {
	q := of(w.c)
	if w.counted || !metered(q) {
		return
	}
	w.counted = true
	class := domain.RequestClass(w.c.Request.Method, w.Status(), w.Header().Get("Content-Type"))
	w.s.Pipeline.Counts.Add(&q.credential.Caller, w.start, class)
}

// WriteHeaderNow implements gin.ResponseWriter.
func (w *countingWriter) WriteHeaderNow() {
	w.count()
	w.ResponseWriter.WriteHeaderNow()
}

// Write implements http.ResponseWriter.
func (w *countingWriter) Write(b []byte) (int, error) {
	w.count()
	return w.ResponseWriter.Write(b)
}

// WriteString implements io.StringWriter.
func (w *countingWriter) WriteString(b string) (int, error) {
	w.count()
	return w.ResponseWriter.WriteString(b)
}

// Flush implements http.Flusher.
func (w *countingWriter) Flush() {
	w.count()
	w.ResponseWriter.Flush()
}

// Unwrap gives http.ResponseController access to the connection.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// failure returns the code and the field of the response's error: of an error of the gateway, otherwise of the service's body.
func failure(c *gin.Context, q *request) (code, param string) {
	if last := c.Errors.Last(); last != nil {
		return apperr.As(last.Err).Code, httpx.Param(last.Err)
	}
	var body struct {
		Error struct{ Code, Param string }
	}
	_ = json.Unmarshal(q.failure, &body) // a body that is not an error of the contract has no code
	return body.Error.Code, body.Error.Param
}

// lastSegment returns the id at the end of a Location.
func lastSegment(location string) string { return location[strings.LastIndexByte(location, '/')+1:] }

// maxFailure is the maximum number of bytes of an error's body that are read for the log.
const maxFailure = 16 << 10

// failureWriter stores the beginning of the body of an error that is streamed.
type failureWriter struct {
	http.ResponseWriter

	q      *request
	failed bool
}

// WriteHeader implements http.ResponseWriter.
func (w *failureWriter) WriteHeader(status int) {
	w.failed = status >= http.StatusBadRequest
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *failureWriter) Write(b []byte) (int, error) {
	if room := maxFailure - len(w.q.failure); w.failed && room > 0 {
		w.q.failure = append(w.q.failure, b[:min(len(b), room)]...)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController access to the connection.
func (w *failureWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
