package prove

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/testservers"
)

// A guard lets one search for work pass each time, and everything that is no search.
func TestGuard(t *testing.T) {
	u, err := url.Parse(testservers.Getenv(t, "TEST_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	guard := &Guard{Pass: func(sql string) bool { return !strings.Contains(sql, "from ") }, Busy: func() bool { return false }}
	p, err := Listen(u.Host, guard.Intercept(func(*Round) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	u.Host = p.Address()
	conn := connect(t, u.String())
	if _, err := conn.Exec(t.Context(), "select 1"); err != nil {
		t.Fatal(err)
	}
	var searches atomic.Int32
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			var n int
			if conn.QueryRow(ctx, "select count(*)::int from pg_class where relname = $1", "work").Scan(&n) == nil {
				searches.Add(1)
			}
		}
	}()
	for want := range int32(3) {
		if got := searches.Load(); got != want {
			t.Errorf("%d searches passed, want %d", got, want)
		}
		within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := guard.Open(within, "relname = $1"); err != nil {
			t.Error(err)
		}
		cancel()
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := guard.Open(short, "from another table"); err == nil {
		t.Error("a search passed that does not exist")
	}
	stop() // the connection ends, and with it the round trip that waits
	<-ended
}
