package prove

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A call that breaks before reaches nobody, one that breaks after reaches the process and has no response, and others pass.
func TestCalls(t *testing.T) {
	t.Parallel()
	var reached, hooks atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(target.Close)
	calls := &Calls{}
	address, stop, err := calls.Listen("bookings", strings.TrimPrefix(target.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	call := func() bool {
		res, err := http.Post("http://"+address, "text/plain", nil)
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		return res.StatusCode == http.StatusTeapot
	}
	for name, c := range map[string]struct {
		fault        *CallFault
		ok           [2]bool // of two calls
		reached, hit int32
	}{
		"no fault":           {nil, [2]bool{true, true}, 2, 0},
		"the first, before":  {&CallFault{Drop: Before}, [2]bool{false, true}, 1, 1},
		"the second, after":  {&CallFault{Call: 1, Drop: After}, [2]bool{true, false}, 2, 1},
		"to another process": {&CallFault{To: "payments", Drop: Before}, [2]bool{true, true}, 2, 0},
		"only a hook":        {&CallFault{To: "bookings"}, [2]bool{true, true}, 2, 1},
	} {
		reached.Store(0)
		hooks.Store(0)
		if c.fault != nil {
			c.fault.Then = func(process string) {
				if process == "bookings" {
					hooks.Add(1)
				}
			}
		}
		calls.Arm(c.fault)
		got := [2]bool{call(), call()}
		if got != c.ok || reached.Load() != c.reached || hooks.Load() != c.hit {
			t.Errorf("%s: %v, reached %d times, hook %d times", name, got, reached.Load(), hooks.Load())
		}
		if n := calls.Arm(nil); c.hit > 0 && n != 2 {
			t.Errorf("%s: %d calls counted", name, n)
		}
	}
}
