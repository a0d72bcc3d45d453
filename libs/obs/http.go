package obs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// RED records rate, errors and duration of requests by method, route template and status.
type RED struct{ seconds *prometheus.HistogramVec }

// NewRED registers http_request_duration_seconds for the service.
func NewRED(reg prometheus.Registerer, service string) *RED {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:        "http_request_duration_seconds",
		Help:        "Time to respond to a request, by route template.",
		ConstLabels: prometheus.Labels{"service": service},
		Buckets:     []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "route", "status"})
	reg.MustRegister(h)
	return &RED{seconds: h}
}

// Observe counts one request; route is a template or "", never a raw path.
func (r *RED) Observe(method, route string, status int, d time.Duration) {
	if r == nil {
		return
	}
	if route == "" {
		route = "none"
	}
	r.seconds.WithLabelValues(knownMethod(method), route, strconv.Itoa(status)).Observe(d.Seconds())
}

// knownMethod maps unknown methods to one label value, because clients can send any method.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return m
	default:
		return "other"
	}
}

// Handler wraps next as the outermost handler: it adds a log line and a trace to the context. When next has returned, it writes the
// line and counts the request. Code that finds the route calls SetRoute, and code that verifies the caller calls AddCaller. A panic
// is logged and closes the connection.
func Handler(log *slog.Logger, red *RED, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx, line := WithLine(WithTrace(r.Context(), r.Header))
		ctx, end := Span(ctx, r.Method, trace.SpanKindServer)
		rec := &recorder{ResponseWriter: w}
		defer func() {
			var err error
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // a panic value
				err = fmt.Errorf("panic: %v", p)
				line.Add(slog.String("error", err.Error()), slog.String("stack", string(debug.Stack())))
				rec.status = http.StatusInternalServerError
				defer panic(http.ErrAbortHandler)
			} else if p != nil {
				defer panic(p)
			}
			write(ctx, log, red, line, r.Method, rec, start)
			end(err)
		}()
		next.ServeHTTP(rec, r.WithContext(ctx))
	})
}

func write(ctx context.Context, log *slog.Logger, red *RED, line *Line, method string, rec *recorder, start time.Time) {
	d := time.Since(start)
	status := rec.status
	if status == 0 {
		status = http.StatusOK
	}
	route := line.Route()
	red.Observe(method, route, status, d)
	level, span := slog.LevelInfo, trace.SpanFromContext(ctx)
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
		var end func()
		span, end = failed(ctx, start)
		defer end()
		span.SetStatus(codes.Error, "")
	}
	if span.IsRecording() {
		span.SetName(method + " " + route)
		span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
	}
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", method), slog.String("route", route), slog.Int("status", status),
		slog.Float64("duration_ms", float64(d.Microseconds())/1000), slog.Int64("bytes", rec.bytes),
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		attrs = append(attrs, slog.String("trace_id", sc.TraceID().String()))
	}
	log.LogAttrs(ctx, level, "request", append(attrs, line.Attrs()...)...)
}

type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader records the first final status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes of the body.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher, which streams need.
func (r *recorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap gives http.ResponseController access to the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
