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
	"holdfast.dev/libs/pg"
)

// Errors of the door itself.
var (
	ErrNotFound  = apperr.New(apperr.NotFound, "not_found", "There is nothing at this path.")
	ErrMethod    = apperr.New(apperr.MethodNotAllowed, "method_not_allowed", "This path does not take this method; Allow names those it takes.")
	ErrTooLarge  = apperr.New(apperr.TooLarge, "request_too_large", "The body must be at most 1 MiB.")
	ErrMediaType = apperr.New(apperr.BadRequest, "missing_content_type", "A request with a body needs Content-Type: application/json.")
	ErrCaller    = apperr.New(apperr.Unauthenticated, "invalid_credential", "The credential is not valid.")
)

// NewEngine returns a gin engine without gin's surprises: no trusted proxies, no redirects, wrong methods
// are 405, and every error, a panic included, comes in the public envelope.
func NewEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ForwardedByClientIP = false
	e.UseRawPath = true          // an id may hold an escaped slash
	_ = e.SetTrustedProxies(nil) // nil cannot fail
	e.Use(recovery)
	e.NoRoute(func(c *gin.Context) { fail(c, ErrNotFound) })
	e.NoMethod(func(c *gin.Context) { fail(c, ErrMethod) }) // gin has set Allow
	return e
}

// recovery turns a panic into internal_error. Once the answer has begun it can only be cut off.
func recovery(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler || c.Writer.Written() { //nolint:errorlint,err113 // a panic value
			panic(p)
		}
		obs.Add(c.Request.Context(), slog.String("stack", string(debug.Stack())))
		fail(c, fmt.Errorf("panic: %v", p))
	}()
	c.Next()
}

// fail is where a handler's error ends: on the wide log line, and in the answer.
func fail(c *gin.Context, err error) {
	e := apperr.As(err)
	if e.Kind == apperr.Internal {
		e = outside(err, e)
	}
	attrs := []slog.Attr{slog.String("code", e.Code)}
	if cause := errors.Unwrap(e); cause != nil || StatusOf(e.Kind) >= http.StatusInternalServerError {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	obs.Add(c.Request.Context(), attrs...)
	WriteError(c.Writer, requestID(c), e)
	c.Abort()
}

// outside tells what is nobody's fault here from an internal error.
func outside(err error, internal *apperr.Error) *apperr.Error {
	switch {
	case pg.Unavailable(err):
		return apperr.ErrUnavailable.With(err)
	case errors.Is(err, context.DeadlineExceeded):
		return apperr.ErrTimeout.With(err)
	default:
		return internal
	}
}
