package app_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
)

// enter makes a lookup that takes duration, and returns how long it waited, or -1 if it was rejected.
func enter(t *testing.T, l *app.Lookups, address string, duration time.Duration, unknown bool) time.Duration {
	t.Helper()
	start := time.Now()
	if err := l.Enter(address); err != nil {
		if !errors.Is(err, domain.ErrGuessing) || time.Since(start) > time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		return -1
	}
	waited := time.Since(start)
	time.Sleep(duration)
	l.Leave(unknown)
	return waited
}

// Only the number of parallel lookups limits valid credentials, regardless of how many arrive.
func TestLookupsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := app.NewLookups(4, 10)
		var mu sync.Mutex
		var wg sync.WaitGroup
		running, most := 0, 0
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		for range 200 {
			wg.Go(func() {
				if err := l.Enter("1.1.1.1"); err != nil {
					t.Error(err)
					return
				}
				add(1)
				time.Sleep(10 * time.Millisecond)
				add(-1)
				l.Leave(false)
			})
		}
		wg.Wait()
		if most != 4 {
			t.Errorf("%d at once", most)
		}
	})
}

func TestUnknownLookupsPerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := app.NewLookups(4, 10)
		for second := range 4 {
			var mu sync.Mutex
			var wg sync.WaitGroup
			passed := 0
			for range 50 {
				wg.Go(func() {
					if enter(t, l, "1.1.1.1", time.Millisecond, true) >= 0 {
						mu.Lock()
						passed++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			// Each round lasts a second; the first begins with a full second's allowance.
			if want := 10; passed < want-1 || passed > want+1 && second > 0 || passed > 2*want+1 {
				t.Errorf("second %d: %d passed", second, passed)
			}
		}
	})
}

// A client at another address waits for at most one lookup, regardless of how many lookups of one address are waiting.
func TestAddressesAreServedFairly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := app.NewLookups(4, 10)
		var wg sync.WaitGroup
		stop := time.Now().Add(10 * time.Second)
		refused := 0
		var mu sync.Mutex
		for i := range 500 {
			wg.Go(func() {
				for time.Now().Before(stop) {
					// All of one /64, so that they count as one client.
					if enter(t, l, fmt.Sprintf("2001:db8::%x", i), time.Millisecond, true) < 0 {
						mu.Lock()
						refused++
						mu.Unlock()
					}
				}
			})
		}
		for range 8 {
			time.Sleep(time.Second)
			if waited := enter(t, l, "2001:db8:0:1::1", time.Millisecond, false); waited < 0 || waited > 300*time.Millisecond {
				t.Errorf("another address waited %s", waited)
			}
		}
		wg.Wait()
		if refused < 3000 {
			t.Errorf("%d guesses were refused", refused)
		}
	})
}

// If the queue of an address is full, more lookups are rejected immediately. Lookups that time out leave the queue.
func TestAQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := app.NewLookups(1, 10)
		if err := l.Enter("2.2.2.2"); err != nil { // does not call Leave, so that all later look-ups wait
			t.Fatal(err)
		}
		start := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var atOnce, later int
		for range 1100 {
			wg.Go(func() {
				err := l.Enter("1.1.1.1")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					t.Error("entered")
				case time.Since(start) == 0:
					atOnce++
				default:
					later++
				}
			})
		}
		wg.Wait()
		if atOnce != 76 || later != 1024 {
			t.Errorf("%d refused at once, %d later", atOnce, later)
		}
		l.Leave(false)
		if waited := enter(t, l, "1.1.1.1", 0, false); waited != 0 {
			t.Errorf("waited %s for a place that was free", waited)
		}
	})
}
