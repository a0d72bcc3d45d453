package api

import (
	"net"
	"net/http"
	"strings"
	"unicode/utf8"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

const maxKey = 255

// request is what the door has found out about one request.
type request struct {
	op          *contract.Operation
	id          string
	path        string   // escaped, relative to the base
	address     string   // the client's
	arrival     *arrival // of the body, nil without one
	body        []byte
	canonical   []byte // the body's canonical form, until the fingerprint is known
	key         string
	badKey      error // the verdict on the key
	fingerprint [32]byte
	held        int64 // bytes that the gate has counted for this request
}

// writes reports whether a body and an Idempotency-Key mean something: those of a GET or DELETE do not.
func writes(method string) bool { return method != http.MethodGet && method != http.MethodDelete }

// takeKey notes the key of a write, or the verdict on it, which waits for those on the body.
func (q *request) takeKey(r *http.Request) {
	if writes(r.Method) {
		q.key, q.badKey = idempotencyKey(r.Header["Idempotency-Key"])
	}
}

// read takes the body of a write and returns the first verdict on size, type, form and key. A body that is declared
// too long is not read, nor is that of a DELETE or GET, which means nothing.
func (q *request) read(r *http.Request, take func(n int64) error) error {
	if r.Method == http.MethodGet {
		return nil
	}
	if r.ContentLength > maxBody {
		return domain.ErrTooLarge
	}
	if r.Method == http.MethodDelete {
		return nil
	}
	if r.ContentLength != 0 {
		var err error
		if q.body, err = readBody(q.arrival, r.ContentLength, take); err != nil {
			return err
		}
	}
	if err := q.checkBody(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	if q.key != "" {
		q.fingerprint = idem.Fingerprint(r.Method, q.path, r.URL.RawQuery, q.canonical)
	}
	q.canonical = nil
	return q.badKey
}

// checkBody is the 400 of a body: its type, then its form. Only an optional body may be absent.
func (q *request) checkBody(contentType string) (err error) {
	if len(q.body) == 0 && !q.op.BodyRequired {
		return nil
	}
	if err := httpx.CheckMediaType(contentType); err != nil {
		return err //nolint:wrapcheck // the answer
	}
	q.canonical, err = contract.Canonical(q.body)
	return err //nolint:wrapcheck // the answer
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
	call := &domain.Call{
		Caller: q.caller(c), Encoded: c.Encoded, Method: r.Method, Path: base + q.path, Query: r.URL.RawQuery,
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
