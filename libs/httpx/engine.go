package httpx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/obs"
)

// Errors that every HTTP server returns.
var (
	ErrNotFound  = apperr.New(apperr.NotFound, "not_found", "This path does not exist.")
	ErrMethod    = apperr.New(apperr.MethodNotAllowed, "method_not_allowed", "This path does not support this method. The Allow header lists the supported methods.")
	ErrTooLarge  = apperr.New(apperr.TooLarge, "request_too_large", "The body must be at most 1 MiB.")
	ErrMediaType = apperr.New(apperr.BadRequest, "missing_content_type", "A request with a body requires Content-Type: application/json.")
	ErrCaller    = apperr.New(apperr.Unauthenticated, "invalid_credential", "The credential is not valid.")
)

// NewRouter returns a gin engine with safe settings: it trusts no proxies, never redirects, responds to a wrong method with 405 and
// to an unknown path with notFound. publicURL is the URL at which clients reach the gateway. The doc_url of each error begins with
// it.
func NewRouter(publicURL string, notFound error) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ForwardedByClientIP = false
	e.UseRawPath = true          // an id can contain an escaped slash
	_ = e.SetTrustedProxies(nil) // nil cannot fail
	e.Use(func(c *gin.Context) { c.Set(publicKey, publicURL) })
	e.NoRoute(func(c *gin.Context) { Fail(c, notFound) })
	e.NoMethod(func(c *gin.Context) { Fail(c, ErrMethod) }) // gin already set Allow
	return e
}

// publicKey is the key of the gateway's public URL in a gin.Context.
const publicKey = "holdfast.public"

// NewEngine returns the engine of a service behind the gateway.
func NewEngine(publicURL string) *gin.Engine {
	e := NewRouter(publicURL, ErrNotFound)
	e.Use(Recover)
	return e
}

// Recover turns a panic into internal_error. When the response has already begun, the connection is closed.
func Recover(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler || c.Writer.Written() { //nolint:errorlint // a panic value
			panic(p)
		}
		obs.Add(c.Request.Context(), slog.String("stack", string(debug.Stack())))
		Fail(c, fmt.Errorf("panic: %v", p))
	}()
	c.Next()
}

// Steps converts the steps of a request to gin handlers. The first error is the response, and no later step runs. A step
// that has written the response itself calls c.Abort.
func Steps(steps ...Handler) gin.HandlersChain {
	chain := make(gin.HandlersChain, len(steps))
	for i, step := range steps {
		chain[i] = func(c *gin.Context) {
			if err := step(c); err != nil {
				Fail(c, err)
			}
		}
	}
	return chain
}

// Fail ends a request with an error: it adds the error to the log line and to c.Errors, and writes the response.
func Fail(c *gin.Context, err error) {
	e := apperr.As(err)
	if e.Kind == apperr.Internal {
		e = outside(err, e)
	}
	attrs := []slog.Attr{slog.String("code", e.Code)}
	if cause := errors.Unwrap(e); cause != nil || StatusOf(e.Kind) >= http.StatusInternalServerError {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	obs.Add(c.Request.Context(), attrs...)
	_ = c.Error(e) // returns its argument
	WriteError(c.Writer, c.GetString(publicKey), RequestID(c), e)
	c.Abort()
}

const headerRequestID = "X-Request-Id"

// SetRequestID makes id the request id of the response.
func SetRequestID(c *gin.Context, id string) { c.Writer.Header()[headerRequestID] = []string{id} }

// RequestID returns the request id that SetRequestID set.
func RequestID(c *gin.Context) string { return c.Writer.Header().Get(headerRequestID) }

// outside distinguishes a failure of a dependency of the service from an internal error. libs/pg marks its errors with
// Unavailable.
func outside(err error, internal *apperr.Error) *apperr.Error {
	var dependency interface{ Unavailable() bool }
	switch {
	case errors.As(err, &dependency) && dependency.Unavailable():
		return apperr.ErrUnavailable.WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return apperr.ErrTimeout.WithCause(err)
	default:
		return internal
	}
}
