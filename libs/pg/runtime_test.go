package pg_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/secret"
)

// process is a Runtime that records what was registered.
type process struct {
	stops, checks []func(context.Context) error
	metrics       []prometheus.Collector
}

func (p *process) OnStop(_ string, stop func(context.Context) error) { p.stops = append(p.stops, stop) }

func (p *process) Ready(_ string, run func(context.Context) error) { p.checks = append(p.checks, run) }

func (p *process) Register(c prometheus.Collector) { p.metrics = append(p.metrics, c) }

// A process can start before its database, and becomes ready when the database responds. A wrong login is an error immediately.
func TestOpenManagedWaitsForAnUnreachableServer(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	var p process
	pool, err := pg.OpenManaged(t.Context(), &p, "postgres", secret.New("postgres://unknown@127.0.0.1:1/none"), pg.Options{})
	if err != nil || len(p.checks) != 1 || len(p.stops) != 1 {
		t.Fatalf("unreachable: %v, %d checks, %d stops", err, len(p.checks), len(p.stops))
	}
	defer pool.Close()
	if p.checks[0](t.Context()) == nil {
		t.Error("a process without its database is ready")
	}
	u, err := url.Parse(db.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]func(u *url.URL){
		"password": func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wrong") },
		"database": func(u *url.URL) { u.Path = "/nowhere" },
	} {
		wrong := *u
		broken(&wrong)
		if _, err := pg.OpenManaged(t.Context(), &p, "postgres", secret.New(wrong.String()), pg.Options{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("wrong %s: %v", name, err)
		}
	}
}
