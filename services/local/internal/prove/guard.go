package prove

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// A Guard stands between the workers of a participant and PostgreSQL. It stops them at the statements that look for work, until Open
// lets one pass.
type Guard struct {
	// Pass reports which statements are no search for work, such as those that check a connection.
	Pass func(sql string) bool
	// Busy reports whether the worker does what it found.
	Busy func() bool

	mu       sync.Mutex
	expected string        // part of the statement that may pass
	passed   bool          // it has passed
	again    chan struct{} // closed when it comes again
	moved    chan struct{} // closed when expected changes
}

// Open lets the next statement pass that contains the text, and returns when the worker makes it again: it has then done what
// it found.
func (g *Guard) Open(ctx context.Context, text string) error {
	g.mu.Lock()
	again := make(chan struct{})
	g.expected, g.passed, g.again = text, false, again
	if g.moved != nil {
		close(g.moved)
	}
	g.moved = make(chan struct{})
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.expected = ""
	}()
	select {
	case <-again:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no worker looks for work by %q: %w", text, context.Cause(ctx))
	}
}

// Intercept returns a function that stops round trips, and then calls next.
func (g *Guard) Intercept(next func(*Round)) func(*Round) {
	return func(r *Round) {
		if sql := strings.Join(r.SQL, "\n"); !r.Within && !g.Pass(sql) {
			for admitted, moved := g.admit(sql); !admitted; admitted, moved = g.admit(sql) {
				select {
				case <-moved:
				case <-r.Gone:
					r.Break()
					return
				}
			}
		}
		next(r)
	}
}

// admit reports whether a statement may pass. If not, moved is closed when it may be different.
func (g *Guard) admit(sql string) (ok bool, moved <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.moved == nil {
		g.moved = make(chan struct{})
	}
	if g.expected == "" || !strings.Contains(sql, g.expected) {
		return false, g.moved
	}
	if g.passed && g.Busy() { // it looks for more
		return true, nil
	}
	if g.passed {
		close(g.again)
		g.expected = ""
		return false, g.moved
	}
	g.passed = true
	return true, nil
}
