package pg_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/secret"
)

// scrape returns a function that returns the value of a series of the process's metrics, as Prometheus reads it; "" if there is none.
func scrape(t *testing.T, p *process) func(series string) string {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(p.metrics...)
	srv := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	t.Cleanup(srv.Close)
	return func(series string) string {
		res, err := http.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(body)) {
			if value, ok := strings.CutPrefix(line, series+" "); ok {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
}

func managed(t *testing.T, p *process, url string, opt pg.Options) *pg.DB {
	t.Helper()
	db, err := pg.OpenManaged(t.Context(), p, "postgres", secret.New(url), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// The metrics of each pool show its connections, who waits for one now, and who waited.
func TestMetricsOfPools(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	var p process
	app := managed(t, &p, db.AppURL, pg.Options{MaxConns: 1, AcquireTimeout: time.Minute})
	managed(t, &p, db.WorkerURL, pg.Options{MaxConns: 3, Background: true})
	value := scrape(t, &p)
	before := value(`postgres_pool_waits_total{pool="app"}`)
	occupied, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 2)
	go func() {
		done <- app.SystemTx(t.Context(), func(context.Context, pg.Tx) error { close(occupied); <-release; return nil })
	}()
	<-occupied
	go func() { done <- app.SystemTx(t.Context(), func(context.Context, pg.Tx) error { return nil }) }()
	until(t, "the second transaction waits", func() bool { return value(`postgres_pool_waiting{pool="app"}`) == "1" })
	for series, want := range map[string]string{
		`postgres_pool_connections{pool="app",state="acquired"}`: "1", `postgres_pool_connections{pool="app",state="idle"}`: "0",
		`postgres_pool_connections{pool="app",state="constructing"}`: "0", `postgres_pool_max_connections{pool="app"}`: "1",
		`postgres_pool_max_connections{pool="worker"}`: "3", `postgres_pool_waiting{pool="worker"}`: "0",
		`postgres_pool_connections{pool="worker",state="acquired"}`: "0", `postgres_pool_canceled_total{pool="app"}`: "0",
	} {
		if got := value(series); got != want {
			t.Errorf("%s is %q, want %s", series, got, want)
		}
	}
	close(release)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	until(t, "the connection is idle", func() bool { return value(`postgres_pool_connections{pool="app",state="idle"}`) == "1" })
	if got := value(`postgres_pool_waits_total{pool="app"}`); got == before || got == "" {
		t.Errorf("the number of waits stayed %q", got)
	}
	if got := value(`postgres_pool_wait_seconds_total{pool="app"}`); slices.Contains([]string{"", "0"}, got) {
		t.Errorf("the time of waits is %q", got)
	}
}

// A request that gets no connection in time is counted.
func TestMetricsOfCanceledWaits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	var p process
	app := managed(t, &p, db.AppURL, pg.Options{MaxConns: 1, AcquireTimeout: time.Millisecond})
	value := scrape(t, &p)
	until(t, "a connection is free", func() bool {
		return app.SystemTx(t.Context(), func(ctx context.Context, _ pg.Tx) error {
			before := value(`postgres_pool_canceled_total{pool="app"}`)
			err := app.SystemTx(ctx, func(context.Context, pg.Tx) error { return nil })
			if got := value(`postgres_pool_canceled_total{pool="app"}`); err == nil || got == before {
				t.Errorf("%v, and %s canceled waits, before %s", err, got, before)
			}
			return nil
		}) == nil
	})
}
