package stack

import (
	"context"
	"testing"
	"time"
)

func TestByDatabaseAddsUpServerProcesses(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	ctx := t.Context()
	if _, err := query(ctx, p.Env["POSTGRES_URL"], "create database busy"); err == nil { // it returns no row
		t.Fatal("a row")
	}
	busy, err := p.Admin(ctx, "postgres://a:b@c/busy?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close(context.WithoutCancel(ctx)) }()
	pid, err := p.PID("postgres")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; {
		if _, err := busy.Exec(ctx, "select count(*) from generate_series(1, 200000)"); err != nil {
			t.Fatal(err)
		}
		used, err := ByDatabase(pid, []string{"busy", "none"})
		if err != nil {
			t.Fatal(err)
		}
		if used["busy"] >= 50*time.Millisecond && len(used) == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatal(used)
		}
	}
}

func TestDatabaseOfServerProcesses(t *testing.T) {
	t.Parallel()
	databases := []string{"holdfast_bookings", "holdfast_customers"}
	for title, want := range map[string]string{
		"postgres: holdfast_bookings_app holdfast_bookings 127.0.0.1(41234) idle\x00\x00\x00":         "holdfast_bookings",
		"postgres: holdfast_customers_worker holdfast_customers 127.0.0.1(41234) idle in transaction": "holdfast_customers",
		"postgres: autovacuum worker holdfast_bookings":                                               "holdfast_bookings",
		"postgres: postgres postgres 127.0.0.1(41234) idle":                                           "",
		"postgres: walwriter ": "",
		"":                     "",
	} {
		if got := databaseOf(title, databases); got != want {
			t.Errorf("%q serves %q, want %q", title, got, want)
		}
	}
}
