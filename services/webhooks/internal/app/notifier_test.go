package app_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
)

// woken reports whether the listener has been woken since the last call.
func woken(l *app.Listener) bool {
	synctest.Wait()
	select {
	case <-l.C:
		return true
	default:
		return false
	}
}

func listen(t *testing.T, n *app.Notifier, of app.Audience) *app.Listener {
	t.Helper()
	l, err := n.Listen(of)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The first broadcast wakes the listeners immediately. Further broadcasts within MinInterval wake them once when it is over. No
// other tenant or mode is woken.
func TestNotifierWakesOncePerInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &app.Notifier{MinInterval: 100 * time.Millisecond, MaxStreams: 10}
		of := app.Audience{Tenant: ids.New[ids.TenantPrefix]()}
		mine, too := listen(t, n, of), listen(t, n, of)
		live := listen(t, n, app.Audience{Tenant: of.Tenant, Livemode: true})
		other := listen(t, n, app.Audience{Tenant: ids.New[ids.TenantPrefix]()})
		n.Broadcast(of)
		if !woken(mine) || !woken(too) {
			t.Fatal("the first broadcast wakes no stream")
		}
		wakes := 0
		for range 1000 { // within 1 s
			n.Broadcast(of)
			time.Sleep(time.Millisecond)
			if woken(mine) {
				wakes++
			}
		}
		if wakes < 9 || wakes > 10 {
			t.Errorf("1,000 broadcasts in a second woke a stream %d times", wakes)
		}
		n.Broadcast(of)
		time.Sleep(100 * time.Millisecond)
		if !woken(mine) {
			t.Error("the last broadcast of a burst is lost")
		}
		time.Sleep(time.Hour)
		if woken(mine) {
			t.Error("a stream is woken without a broadcast")
		}
		if woken(live) || woken(other) {
			t.Error("the other mode, or another tenant, is woken")
		}
		for _, l := range []*app.Listener{mine, too, live, other} {
			l.Close()
		}
		n.Broadcast(of) // without listeners
	})
}

// A tenant can have MaxStreams open streams, in both modes.
func TestNotifierBoundsTheStreamsOfATenant(t *testing.T) {
	t.Parallel()
	n := &app.Notifier{MinInterval: time.Second, MaxStreams: 3}
	of := app.Audience{Tenant: ids.New[ids.TenantPrefix]()}
	live := app.Audience{Tenant: of.Tenant, Livemode: true}
	first := listen(t, n, of)
	listen(t, n, of)
	listen(t, n, live)
	for _, full := range []app.Audience{of, live} {
		_, err := n.Listen(full)
		var refused *apperr.Error
		if !errors.Is(err, domain.ErrStreams) || !errors.As(err, &refused) || refused.RetryAfter <= 0 {
			t.Errorf("one more stream: %v", err)
		}
	}
	listen(t, n, app.Audience{Tenant: ids.New[ids.TenantPrefix]()})
	first.Close()
	listen(t, n, live)
}
