package peer_test

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/peer/peertest"
)

// lonely responds and closes the connection, so that the next call opens a new one.
func lonely(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Connection", "close")
	_, _ = io.WriteString(w, `{"ok":true}`)
}

// If one of the processes behind an address has vanished, each call reaches a running one. This includes writes, which are never
// sent twice.
func TestAVanishedProcessCostsNoCall(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	handled := 0
	address := peertest.Dropping(t, 3, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		handled++
		mu.Unlock()
		lonely(w, r)
	}))
	c := client(t, nil)
	c.BaseURL = "http://" + address
	const calls = 40
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			method := http.MethodPost
			if i%2 == 0 {
				method = http.MethodGet
			}
			if err := c.Do(ctx(), method, "/x", map[string]int{}, nil); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		})
	}
	all.Go(func() {
		res, err := c.Open(ctx(), "/x")
		if err != nil {
			t.Errorf("open: %v", err)
			return
		}
		_ = res.Body.Close()
	})
	all.Wait()
	if handled != calls+1 {
		t.Errorf("%d calls were handled %d times", calls+1, handled)
	}
}

// An address without a running process is unavailable, not late, within the call's time-out, whether it refuses or drops
// connections.
func TestUnreachableAddressIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"dropping": peertest.Dropping(t, 0, nil), "refusing": peertest.Refusing(t)} {
		c := client(t, nil)
		c.BaseURL, c.Timeout = "http://"+address, 600*time.Millisecond
		if err := c.Do(ctx(), http.MethodGet, "/x", nil, nil); !errors.Is(err, apperr.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.Open(ctx(), "/x"); !errors.Is(err, apperr.ErrUnavailable) {
			t.Errorf("%s, opened: %v", name, err)
		}
	}
}
