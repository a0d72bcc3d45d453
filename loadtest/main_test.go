package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/archtest"

	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/sqlbench"
	"holdfast.dev/loadtest/internal/stack"
)

func TestSizes(t *testing.T) { archtest.Sizes(t) }

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name, value, wrong string
	}{
		{"BENCH_ONLY", "cpu,list", ""},
		{"BENCH_ONLY", "cpu,memory", "memory"},
		{"BENCH_SECONDS", "0", "BENCH_SECONDS"},
		{"BENCH_SECONDS", "301", "BENCH_SECONDS"},
		{"BENCH_ROWS", "9999", "BENCH_ROWS"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			_, err := readSettings()
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestSidesAlternate(t *testing.T) {
	t.Parallel()
	var order []string
	side := func(name string) func() { return func() { order = append(order, name) } }
	runRounds(side("a"), side("b"))
	if want := []string{"a", "b", "a", "b", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %v", order)
	}
	b, calls := &bench{table: &report.Table{}, began: time.Now()}, 0
	b.try(t.Context(), "list", func(f *figure) { runRounds(func() { f.check(io.ErrUnexpectedEOF) }, func() { calls++ }) })
	if b.table.Failed() != 1 || calls != 0 {
		t.Errorf("%d figures failed after %d calls", b.table.Failed(), calls)
	}
	for seconds, want := range map[int]time.Duration{1: time.Second, 3: time.Second, 10: 4 * time.Second} {
		if got := (&bench{settings: settings{Seconds: seconds}}).slice(); got != want {
			t.Errorf("a slice of %d s is %v, want %v", seconds, got, want)
		}
	}
}

// TestAFigureThatFailsIsNamed checks that a failed figure is reported with its error, that the others are measured and
// printed, and that the run ends with an error.
func TestAFigureThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	b := &bench{table: &report.Table{}, began: time.Now()}
	b.try(t.Context(), "bookings", func(f *figure) {
		f.check(fmt.Errorf("pgbench: exit status 2\nERROR:  conflicting | key %s", strings.Repeat("x", 5000)))
		t.Error("the figure goes on")
	})
	b.try(t.Context(), "list", func(f *figure) {
		f.add(report.Row{Figure: "first page", Value: report.Quantity{Value: 2}, Ours: "2 ms", Target: report.Target{Most: 1}})
	})
	var out strings.Builder
	err := b.result(&out, []string{"first page: worse"})
	if !errors.Is(err, errFailed) || !strings.HasPrefix(err.Error(), "1 figures") {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{
		"| bookings | pgbench: exit status 2 ERROR: conflicting \\| key xxx", " … |  |  |  | **failed** | `BENCH_ONLY=bookings make bench` |\n",
		"| first page | 2 ms |  |  | ≤ 1.00 | **miss** | `BENCH_ONLY=list make bench` |\n", "\nWorse than in earlier runs:\n\n- first page: worse\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if out.Len() > 2000 {
		t.Errorf("%d bytes are printed of a long error", out.Len())
	}
	fine := &bench{table: &report.Table{}, began: time.Now()}
	if err := fine.result(io.Discard, nil); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fine.try(ended, "cpu", func(*figure) { t.Error("it is still measured") })
}

// TestMissingPeersAreLeftOut checks that a program that is not installed costs only a line that says what to do, and
// that one that does not start counts as a failed figure.
func TestMissingPeersAreLeftOut(t *testing.T) {
	t.Parallel()
	b := &bench{table: &report.Table{}, platform: &stack.Platform{}, began: time.Now()}
	f, g := &figure{bench: b, name: "cpu"}, &gateways{}
	f.openPeer(g, "nginx-lua", func() (string, error) { return "", fmt.Errorf("%w; run `make packages`", stack.ErrMissing) })
	if len(g.peers) != 0 || b.table.Failed() != 0 {
		t.Errorf("opened: %v, failed: %d", g.peers, b.table.Failed())
	}
	f.openPeer(g, "nginx", func() (string, error) { return "", io.ErrUnexpectedEOF })
	if len(g.peers) != 0 || b.table.Failed() != 1 {
		t.Errorf("opened: %v, failed: %d", g.peers, b.table.Failed())
	}
	var out strings.Builder
	b.table.Print(&out)
	if want := "- nginx-lua was not measured: not installed; run `make packages`\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

func TestRequestedBookingsNeverOverlap(t *testing.T) {
	t.Parallel()
	s := &shop{}
	seen := map[string]bool{}
	for n := range 10 * units {
		body := s.nthBooking(n)
		if seen[body] {
			t.Fatalf("request %d has a slot that is taken: %s", n, body)
		}
		seen[body] = true
	}
	if a, b := s.nthBooking(0), s.nthBooking(units); !strings.Contains(a, "1970-01-01") || !strings.Contains(b, "1970-01-02") {
		t.Errorf("%s and %s", a, b)
	}
	last := firstDay.AddDate(0, 0, maxSeconds*17_000/units)
	if !last.Before(recordedDay.AddDate(-1, 0, 0)) {
		t.Errorf("a long run's last booking is on %s, after the template's day", last)
	}
	for n := range units {
		if strings.Contains(s.nthBooking(n), publicID("un", rowUUID(unitPrefix, raceUnit))) {
			t.Errorf("request %d has the unit of the race", n)
		}
	}
}

func TestIDsAreTheSameInGoAndSQL(t *testing.T) {
	t.Parallel()
	if got, want := uuidText(rowUUID(rowPrefix, 0x1234ab)), "fe000000-0000-7000-8000-0000001234ab"; got != want {
		t.Errorf("row %s, want %s", got, want)
	}
	const want = `('fe000000-0000-7000-8000-' || lpad(to_hex((n)::bigint), 12, '0'))::uuid`
	if got := rowSQL(rowPrefix, "n"); got != want {
		t.Errorf("SQL %s, want %s", got, want)
	}
	id := publicID("bk", rowUUID(rowPrefix, 7))
	if got, err := uuidOf(id); err != nil || got != rowUUID(rowPrefix, 7) || !strings.HasPrefix(id, "bk_") {
		t.Errorf("%s has the UUID %x, %v", id, got, err)
	}
	if _, err := uuidOf("bk_"); err == nil {
		t.Error("an id without a UUID is taken")
	}
}

func TestBeginsTrip(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"begin": true, "commit": false,
		"select set_config('app.tenant_id', $1, true)":                    false,
		"select fingerprint from idempotency_keys for update":             false,
		"select u.id from units u where u.id = $1 for no key update of u": true,
		"select p.id from packages p":                                     false,
		"with stamp as materialized (select 1) insert into":               true,
		"insert into unit_claims (booking_id)":                            false,
		"insert into outbox (tenant_id)":                                  true,
		"insert into idempotency_keys (tenant_id) values":                 false,
	} {
		if got := beginsTrip(sqlbench.Statement{}, sqlbench.Statement{SQL: sql}); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
	key := sqlbench.Statement{SQL: "select fingerprint from idempotency_keys for update"}
	if beginsTrip(key, sqlbench.Statement{SQL: "select u.id from units u where u.id = $1 for no key update of u"}) {
		t.Error("the first reads are sent with the lock of the key")
	}
}
