package quota

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// place takes a place and fails the test if it has to wait for it.
func place(t *testing.T, p *Places, client string) (release func()) {
	t.Helper()
	if !p.TryAcquire(client) {
		t.Fatalf("%s has to wait", client)
	}
	return func() { p.Release(client) }
}

// refused fails the test unless a call of the client waits for a second in vain.
func refused(t *testing.T, p *Places, client string) {
	t.Helper()
	if p.TryAcquire(client) {
		t.Errorf("%s has a free place", client)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := p.Acquire(ctx, client); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v", client, err)
	}
}

// A client has some of the places, and its further calls wait for its own. Calls that have given up leave nothing behind.
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(3, 2)
		first, second := place(t, p, "a"), place(t, p, "a")
		refused(t, p, "a")
		other := place(t, p, "b")
		refused(t, p, "c") // all are taken
		refused(t, p, "b") // although it has one of its own
		first()
		place(t, p, "b")()
		first = place(t, p, "a")
		waiting := make(chan error)
		go func() { waiting <- p.Acquire(t.Context(), "a") }()
		synctest.Wait()
		first()
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		refused(t, p, "a")
		for _, release := range []func(){first, second, other} {
			release()
		}
		place(t, p, "a")()
		place(t, p, "c")()
		if len(p.clients.clients) != 0 || len(p.all) != 0 {
			t.Errorf("%d clients and %d places are left", len(p.clients.clients), len(p.all))
		}
		if all, each := p.Limits(); all != 3 || each != 2 {
			t.Errorf("limits %d, %d", all, each)
		}
	})
}
