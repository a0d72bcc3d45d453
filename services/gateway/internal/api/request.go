package api

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"unicode/utf8"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

const (
	maxBody = 1 << 20
	maxKey  = 255
	// eager is the longest body that gets its memory before it arrives: longer ones get theirs as they come,
	// so that a client who only declares them holds little.
	eager = 16 << 10
)

// request is what the door has found out about one request.
type request struct {
	op          *contract.Operation
	id          string
	path        string // escaped, relative to the base
	address     string // the client's
	body        []byte
	key         string
	fingerprint [32]byte
	refused     error // the first of the verdicts on size, type, form and key
}

// read takes the body and the key of a write and notes the first verdict against them. A body that is
// declared too long is not read, nor is that of a DELETE or GET, which means nothing.
func (q *request) read(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		return
	}
	if r.ContentLength > maxBody {
		q.refused = domain.ErrTooLarge
		return
	}
	if r.Method == http.MethodDelete {
		return
	}
	if q.refused = q.readBody(w, r); q.refused != nil {
		return
	}
	if q.refused = q.checkBody(r.Header.Get("Content-Type")); q.refused != nil {
		return
	}
	if q.key, q.refused = idempotencyKey(r.Header["Idempotency-Key"]); q.key != "" {
		q.fingerprint = idem.Fingerprint(r.Method, q.path, r.URL.RawQuery, q.body)
	}
}

func (q *request) readBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > 0 && r.ContentLength <= eager {
		q.body = make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, q.body)
		return unread(err)
	}
	var err error
	q.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return domain.ErrTooLarge
	}
	return unread(err)
}

func unread(err error) error {
	if err == nil {
		return nil
	}
	return contract.ErrMalformed.Saying("The body could not be read to its end.").With(err)
}

// checkBody is the 400 of a body: its type, then its form. Only an optional body may be absent.
func (q *request) checkBody(contentType string) error {
	if len(q.body) == 0 && !q.op.BodyRequired {
		return nil
	}
	if contentType != "application/json" {
		if t, _, err := mime.ParseMediaType(contentType); err != nil || t != "application/json" {
			return domain.ErrMediaType
		}
	}
	return contract.CheckJSON(q.body) //nolint:wrapcheck // the answer
}

// idempotencyKey returns the key, "" when there is none; out of bounds it is a 422.
func idempotencyKey(values []string) (string, error) {
	const name = "Idempotency-Key"
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", apperr.Field(name, "Must be given once.")
	}
	key := values[0]
	if n := utf8.RuneCountInString(key); n < 1 || n > maxKey || !utf8.ValidString(key) {
		return "", apperr.Field(name, "Must be 1 to %d characters.", maxKey)
	}
	return key, nil
}

// caller is the credential's caller in this request.
func (q *request) caller(c *app.Credential) caller.Caller {
	from := c.Caller
	from.RequestID = q.id
	return from
}

// call is what goes on to the service; no header of the client's but these.
func (q *request) call(r *http.Request, c *app.Credential) *domain.Call {
	return &domain.Call{
		Caller: q.caller(c), Encoded: c.Encoded, Method: r.Method, Path: base + q.path, Query: r.URL.RawQuery,
		Body: q.body, ContentType: "application/json", Key: q.key,
		IfMatch: r.Header["If-Match"], IfNoneMatch: r.Header["If-None-Match"],
		Traceparent: obs.Traceparent(r.Context()), Address: q.address,
	}
}

// address is the client's: the connection's, or what the outermost trusted proxy has seen.
func (d *Door) address(r *http.Request) string {
	if d.Hops > 0 {
		seen := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
		if i := len(seen) - d.Hops; i >= 0 {
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
