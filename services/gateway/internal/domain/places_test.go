package domain

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// acquire takes a place and fails the test if it has to wait for it.
func acquire(t *testing.T, p *Places, client string) (release func()) {
	t.Helper()
	if !p.Free(client) {
		t.Fatalf("%s has to wait", client)
	}
	release, err := p.Acquire(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// refused fails the test unless a call of the client waits for a second in vain.
func refused(t *testing.T, p *Places, client string) {
	t.Helper()
	if p.Free(client) {
		t.Errorf("%s has a free place", client)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := p.Acquire(ctx, client); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v", client, err)
	}
}

// A client has some of the places, and its further calls wait for its own. Calls that have given up leave nothing behind.
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(3, 2)
		first, second := acquire(t, p, "a"), acquire(t, p, "a")
		refused(t, p, "a")
		other := acquire(t, p, "b")
		refused(t, p, "c") // all are taken
		refused(t, p, "b") // although it has one of its own
		first()
		acquire(t, p, "b")()
		first = acquire(t, p, "a")
		waiting := make(chan func())
		go func() {
			release, err := p.Acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			waiting <- release
		}()
		synctest.Wait()
		first()
		third := <-waiting
		refused(t, p, "a")
		for _, release := range []func(){second, third, other} {
			release()
		}
		acquire(t, p, "a")()
		acquire(t, p, "c")()
		if len(p.own) != 0 || len(p.all) != 0 {
			t.Errorf("%d clients and %d places are left", len(p.own), len(p.all))
		}
		if all, each := p.Limits(); all != 3 || each != 2 {
			t.Errorf("limits %d, %d", all, each)
		}
	})
}
