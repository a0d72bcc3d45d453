// Package obs makes a service observable: one wide log line per request or message, RED metrics by route template, and traces. They
// never contain bodies, secrets or full keys.
package obs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"holdfast.dev/libs/caller"
)

// Line collects the attributes and sums of one wide log line. It is safe for concurrent use. All methods accept a nil
// Line and do nothing, so that callers need not check for one.
type Line struct {
	mu    sync.Mutex
	route string
	attrs []slog.Attr
	sums  []sum
}

type sum struct {
	name  string
	value float64
	whole bool
}

type lineKey struct{}

// WithLine returns ctx with a new line. The handler that calls it writes the line at the end.
func WithLine(ctx context.Context) (context.Context, *Line) {
	l := &Line{attrs: make([]slog.Attr, 0, 16), sums: make([]sum, 0, 8)}
	return context.WithValue(ctx, lineKey{}, l), l
}

// LineFrom returns the line of ctx, or nil if there is none.
func LineFrom(ctx context.Context) *Line {
	l, _ := ctx.Value(lineKey{}).(*Line)
	return l
}

// Add adds attributes to the line of ctx. A later attribute replaces an earlier one with the same name.
func Add(ctx context.Context, attrs ...slog.Attr) { LineFrom(ctx).Add(attrs...) }

// AddCaller adds the caller to the line: tenant, mode, credential id, request id.
func AddCaller(ctx context.Context, c caller.Caller) {
	Add(ctx, slog.String("tenant", c.Tenant.String()), slog.String("mode", string(c.Mode)),
		slog.String("credential", c.Credential), slog.String("request_id", c.RequestID))
}

// SetRoute sets the route template, such as "/customers/{id}", for the line and the metrics.
func SetRoute(ctx context.Context, template string) {
	if l := LineFrom(ctx); l != nil {
		l.mu.Lock()
		l.route = template
		l.mu.Unlock()
	}
}

// Since adds the milliseconds since start to the sum with the given name, such as "postgres_ms".
func Since(ctx context.Context, name string, start time.Time) {
	LineFrom(ctx).sum(name, float64(time.Since(start).Microseconds())/1000, false)
}

// Count adds n to the integer sum with the given name, such as "postgres_calls".
func Count(ctx context.Context, name string, n int) { LineFrom(ctx).sum(name, float64(n), true) }

// Add adds attributes to the line. A later attribute replaces an earlier one with the same name.
func (l *Line) Add(attrs ...slog.Attr) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range attrs {
		l.put(a)
	}
}

func (l *Line) put(a slog.Attr) {
	for i := range l.attrs {
		if l.attrs[i].Key == a.Key {
			l.attrs[i] = a
			return
		}
	}
	l.attrs = append(l.attrs, a)
}

func (l *Line) sum(name string, v float64, whole bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.sums {
		if l.sums[i].name == name {
			l.sums[i].value += v
			return
		}
	}
	l.sums = append(l.sums, sum{name: name, value: v, whole: whole})
}

// Route returns the template passed to SetRoute, or "" if there is none.
func (l *Line) Route() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.route
}

// Attrs returns the collected attributes, sums last.
func (l *Line) Attrs() []slog.Attr {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]slog.Attr, 0, len(l.attrs)+len(l.sums))
	out = append(out, l.attrs...)
	for _, s := range l.sums {
		if s.whole {
			out = append(out, slog.Int64(s.name, int64(s.value)))
		} else {
			out = append(out, slog.Float64(s.name, s.value))
		}
	}
	return out
}

// NewLogger returns a logger that writes JSON lines with the service's name. level is debug, info, warn or error.
func NewLogger(w io.Writer, service, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	h := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})
	return slog.New(h).With(slog.String("service", service)), nil
}
