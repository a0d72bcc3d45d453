package httpx

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
)

// MaxBody is the largest body of a request, in bytes.
const MaxBody = 1 << 20

const (
	// firstRead is the initial size of a body's buffer. The buffer doubles each time it is full, so that a client that only
	// declares a long body uses little memory.
	firstRead = 16 << 10
	maxKey    = 255
	ctxKey    = "holdfast.request"
)

// request contains the parts of a request that the steps have read.
type request struct {
	op      *contract.Operation
	raw     []byte         // the body as sent
	id      string         // the first path parameter
	body    *contract.Body // nil when an optional body is absent
	query   contract.Query
	ifMatch Match
	direct  bool // of an API that clients reach without the gateway
}

// Match is the If-Match of a request.
type Match struct {
	Version int64 // the expected version; 0, which no resource has, for an entity tag of another format
	Any     bool  // *
	Present bool
}

// Check returns apperr.ErrVersion if version is not the expected one.
func (m Match) Check(version int64) error {
	if m.Present && !m.Any && m.Version != version {
		return apperr.ErrVersion
	}
	return nil
}

func of(c *gin.Context) *request {
	r, _ := c.Value(ctxKey).(*request)
	if r == nil {
		return &request{}
	}
	return r
}

// Body decodes the validated body into a generated type. It returns the zero value when an optional body is absent.
func Body[T any](c *gin.Context) (T, error) {
	var v T
	r := of(c)
	if r.op == nil || r.body == nil {
		return v, nil
	}
	return v, r.op.Decode(r.body, &v)
}

// Query returns the validated query.
func Query(c *gin.Context) contract.Query { return of(c).query }

// IfMatch returns the request's If-Match.
func IfMatch(c *gin.Context) Match { return of(c).ifMatch }

// ReadBody reads the body of a request. It returns ErrTooLarge for a body over MaxBody, without reading it if its length is
// declared. The buffer grows as the body arrives. reserve, which may be nil, is called before each growth.
func ReadBody(c *gin.Context, reserve func(n int64) error) ([]byte, error) {
	req := c.Request
	if req.ContentLength > MaxBody {
		return nil, ErrTooLarge
	}
	if req.Body == nil || req.Body == http.NoBody || req.ContentLength == 0 {
		return nil, nil
	}
	if reserve == nil {
		reserve = func(int64) error { return nil }
	}
	limited := http.MaxBytesReader(c.Writer, req.Body, MaxBody)
	most := int64(MaxBody + 1) // one byte over the limit, so that the reader reports it
	if req.ContentLength > 0 {
		most = req.ContentLength
	}
	return readAll(limited, most, reserve)
}

// readAll reads to the end of r, at most `most` bytes.
func readAll(r io.Reader, most int64, reserve func(n int64) error) ([]byte, error) {
	size := min(most, firstRead)
	if err := reserve(size); err != nil {
		return nil, err
	}
	body := make([]byte, 0, size)
	for {
		if len(body) == cap(body) {
			if int64(len(body)) == most {
				return body, nil
			}
			size = min(most, 2*int64(cap(body)))
			if err := reserve(size - int64(cap(body))); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, readError(err)
		}
	}
}

// readError returns the error to send when a body cannot be read. The reader may return its own *apperr.Error.
func readError(err error) error {
	var tooLarge *http.MaxBytesError
	var apiErr *apperr.Error
	switch {
	case errors.As(err, &tooLarge):
		return ErrTooLarge
	case errors.As(err, &apiErr):
		return apiErr
	default:
		return contract.ErrMalformed.WithMessage("The body could not be read completely.").WithCause(err)
	}
}

// HasBody reports whether a request has a body. It returns ErrMediaType unless the body is JSON. Only an optional body can be
// absent.
func HasBody(op *contract.Operation, contentType string, body []byte) (bool, error) {
	if len(body) == 0 && !op.BodyRequired {
		return false, nil
	}
	return true, CheckMediaType(contentType)
}

// CheckMediaType returns ErrMediaType unless the body is JSON. A form, which curl sends by default, gets its own message.
func CheckMediaType(contentType string) error {
	const want = "application/json"
	if contentType == want {
		return nil
	}
	t, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return ErrMediaType
	case t == want:
		return nil
	case t == "application/x-www-form-urlencoded" || strings.HasPrefix(t, "multipart/"):
		return ErrMediaType.WithMessage("The body must be JSON with Content-Type: application/json, not a form (%.50s).", t)
	default:
		return ErrMediaType.WithMessage("The body must be JSON with Content-Type: application/json, not %.50q.", t)
	}
}

// strict reports whether a request prefers handling=strict (RFC 7240). If a preference is sent twice, the first one counts.
func strict(h http.Header) bool {
	for list := range strings.SplitSeq(strings.Join(h.Values("Prefer"), ","), ",") {
		one, _, _ := strings.Cut(list, ";")
		name, value, _ := strings.Cut(one, "=")
		if strings.EqualFold(strings.TrimSpace(name), "handling") {
			return strings.EqualFold(strings.Trim(strings.TrimSpace(value), `"`), "strict")
		}
	}
	return false
}

const (
	maxIgnored     = 10 // names in X-Ignored-Fields
	maxIgnoredName = 64 // characters of each, before they are percent-encoded
)

// ignoredFields returns the value of X-Ignored-Fields.
func ignoredFields(names []string) string {
	out := make([]string, min(len(names), maxIgnored))
	for i := range out {
		name := []rune(names[i])
		var b strings.Builder
		for _, c := range []byte(string(name[:min(len(name), maxIgnoredName)])) {
			if c == '_' || c == '.' || c == '-' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
		out[i] = b.String()
	}
	return strings.Join(out, ", ")
}

// IdempotencyKey returns the key, or "" if there is none. A key that is out of bounds is a 422.
func IdempotencyKey(h http.Header) (string, error) {
	const name = "Idempotency-Key"
	values := h.Values(name)
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", apperr.Field(name, "Must be sent only once.")
	}
	key := values[0]
	if n := utf8.RuneCountInString(key); n < 1 || n > maxKey || !utf8.ValidString(key) {
		return "", apperr.Field(name, "Must be 1 to %d characters.", maxKey)
	}
	return key, nil
}

// ParseIfMatch parses * or one entity tag of RFC 9110. It rejects lists.
func ParseIfMatch(h http.Header) (Match, error) {
	values := h.Values("If-Match")
	if len(values) == 0 {
		return Match{}, nil
	}
	v := strings.TrimSpace(values[0])
	if v == "*" && len(values) == 1 {
		return Match{Any: true, Present: true}, nil
	}
	tag, weak := strings.CutPrefix(v, "W/")
	if len(values) > 1 || len(tag) < 2 || tag[0] != '"' || strings.IndexByte(tag[1:], '"') != len(tag)-2 {
		return Match{}, apperr.Field("If-Match", `Must be one quoted version, such as "3", or *.`)
	}
	inner := tag[1 : len(tag)-1]
	n, err := strconv.ParseInt(inner, 10, 64)
	if weak || err != nil || n < 1 || strconv.FormatInt(n, 10) != inner {
		n = 0 // a well-formed entity tag that is not a version: it matches nothing
	}
	return Match{Version: n, Present: true}, nil
}

// Operation returns the request's operation in the contract, or nil outside the contract.
func Operation(c *gin.Context) *contract.Operation { return of(c).op }

// OperationID returns the operationId of the request in the contract.
func OperationID(c *gin.Context) string {
	if op := of(c).op; op != nil {
		return op.ID
	}
	return ""
}
