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
	"holdfast.dev/libs/ids"

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
	side := func(name string) func(int) error {
		return func(round int) error {
			order = append(order, name+string(rune('0'+round)))
			return nil
		}
	}
	if err := runRounds(side("a"), side("b")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a0", "b0", "a1", "b1", "a2", "b2"}; !slices.Equal(order, want) {
		t.Errorf("order %v", order)
	}
	boom := errors.New("boom")
	calls := 0
	err := runRounds(func(int) error { return boom }, func(int) error { calls++; return nil })
	if !errors.Is(err, boom) || calls != 0 {
		t.Errorf("%v after %d calls", err, calls)
	}
	for seconds, want := range map[int]time.Duration{1: time.Second, 3: time.Second, 10: 4 * time.Second} {
		if got := (&bench{settings: settings{Seconds: seconds}}).slice(); got != want {
			t.Errorf("a slice of %d s is %v, want %v", seconds, got, want)
		}
	}
}

// TestAFigureThatFailsIsNamed checks that a failed figure is reported with its error, that the others are measured and printed,
// and that the run ends with an error.
func TestAFigureThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	b := &bench{table: &report.Table{}, began: time.Now()}
	b.try(t.Context(), "bookings", "`POST /bookings`", func() error {
		return fmt.Errorf("pgbench: exit status 2\nERROR:  conflicting | key %s", strings.Repeat("x", 5000))
	})
	b.try(t.Context(), "list", "`GET /bookings`", func() error {
		b.table.Add(report.Row{Figure: "first page", Ours: "2 ms", Show: "list", Aim: report.Aim{Text: "any"}})
		return nil
	})
	var out strings.Builder
	err := b.result(&out, []string{"first page: worse"})
	if !errors.Is(err, errFailed) || !strings.HasPrefix(err.Error(), "1 figures") {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{
		"| `POST /bookings` | pgbench: exit status 2 ERROR: conflicting \\| key xxx", " … |  |  |  | **failed** | `BENCH_ONLY=bookings make bench` |\n",
		" … |  | **failed** |\n", "| first page | 2 ms |", "\nWorse than in earlier runs:\n\n- first page: worse\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if out.Len() > 3000 {
		t.Errorf("%d bytes are printed of a long error", out.Len())
	}
	fine := &bench{table: &report.Table{}, began: time.Now()}
	if err := fine.result(io.Discard, nil); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fine.try(ended, "cpu", "after the end", func() error { t.Error("it is still measured"); return nil })
}

// TestMissingPeersAreLeftOut checks that a program that is not installed costs only a line that says what to do, and that one that
// does not start counts as a failed figure.
func TestMissingPeersAreLeftOut(t *testing.T) {
	t.Parallel()
	b := &bench{table: &report.Table{}, platform: &stack.Platform{}, began: time.Now()}
	_, missing := b.openPeer(t.Context(), "nginx with Lua", func() (*stack.Process, string, error) {
		return nil, "", fmt.Errorf("%w; run `make nginx`", stack.ErrMissing)
	})
	if missing || b.table.Failed() != 0 {
		t.Errorf("opened: %v, failed: %d", missing, b.table.Failed())
	}
	_, broken := b.openPeer(t.Context(), "nginx", func() (*stack.Process, string, error) { return nil, "", io.ErrUnexpectedEOF })
	if broken || b.table.Failed() != 1 {
		t.Errorf("opened: %v, failed: %d", broken, b.table.Failed())
	}
	var out strings.Builder
	b.table.Print(&out)
	if want := "- nginx with Lua was not measured: not installed; run `make nginx`\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

func TestRequestedBookingsNeverOverlap(t *testing.T) {
	t.Parallel()
	s := &shop{}
	for i := range s.units {
		s.units[i] = ids.FromUUID[unitPrefix](unitUUID(i)).String()
	}
	seen := map[string]bool{}
	for n := range 10 * units {
		body := nthBooking(s, n)
		if seen[body] {
			t.Fatalf("request %d has a slot that is taken: %s", n, body)
		}
		seen[body] = true
	}
	if a, b := nthBooking(s, 0), nthBooking(s, units); !strings.Contains(a, "1970-01-01") || !strings.Contains(b, "1970-01-02") {
		t.Errorf("%s and %s", a, b)
	}
	last := firstDay.AddDate(0, 0, maxSeconds*17_000/units)
	if !last.Before(recordedDay.AddDate(-1, 0, 0)) {
		t.Errorf("a long run's last booking is on %s, after the template's day", last)
	}
	if slices.Contains(s.units[:units], s.units[raceUnit]) {
		t.Error("the race's unit is booked besides")
	}
}

func TestIDsAreTheSameInGoAndSQL(t *testing.T) {
	t.Parallel()
	if got, want := uuidText(rowUUID(0x1234ab)), "fe000000-0000-7000-8000-0000001234ab"; got != want || !strings.Contains(rowSQL, "fe000000-0000-7000-8000-") {
		t.Errorf("row %s, want %s", got, want)
	}
	if got, want := uuidText(unitUUID(63)), "ff000000-0000-7000-8000-00000000003f"; got != want || !strings.Contains(unitSQL, "ff000000-0000-7000-8000-") {
		t.Errorf("unit %s, want %s", got, want)
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

func TestBeginsAcceptTrip(t *testing.T) {
	t.Parallel()
	trips := 0
	var before sqlbench.Statement
	for _, sql := range []string{ // one line per round trip
		"select set_config('app.tenant_id', $1, true)", "select fingerprint from idempotency_keys",
		"begin", "select set_config('app.tenant_id', $1, true)",
		"select pg_advisory_xact_lock(hashtextextended('idempotency key' || $1", "insert into idempotency_keys as k",
		"select q.id from quotes q for update",
		"update quotes set accept_attempt = $1", "update idempotency_keys set resource_id = $5", "commit",
		"begin", "select set_config('app.tenant_id', $1, true)",
		"select pg_advisory_xact_lock(hashtextextended('idempotency key' || $1", "select fingerprint from idempotency_keys for update",
		"select q.id from quotes q for update",
		"select b.id from bookings b",
		"update quotes q set status = $1", "delete from quote_metadata",
		"select c.id from customers c",
		"select pg_advisory_xact_lock($1)", "insert into bookings as b", "select pg_advisory_xact_lock($1)", "with counter as (insert into invoice_counters",
		"insert into outbox", "insert into outbox", "insert into idempotency_keys", "commit",
	} {
		s := sqlbench.Statement{SQL: sql}
		if before.SQL == "" || beginsAcceptTrip(before, s) {
			trips++
		}
		before = s
	}
	if trips != 10 {
		t.Errorf("%d round trips, want 10", trips)
	}
}

func TestBeginsFlowTrip(t *testing.T) {
	t.Parallel()
	trips := 0
	var before sqlbench.Statement
	for _, sql := range []string{ // one line per round trip
		"select set_config('app.tenant_id', $1, true)", "select data from operator_sessions where hash = $1",
		"select set_config('app.tenant_id', $1, true)", "select tenant_id from app_by_client_id($1)",
		"begin", "select set_config('app.tenant_id', $1, true)",
		"select tenant_id from tenants where tenant_id = $1 for no key update",
		"insert into oauth_grants (tenant_id)",
		"select tenant_id, seq from audit_heads where tenant_id = $1 for update",
		"insert into audit_log (tenant_id)", "update audit_heads set seq = $1", "commit",
		"begin",
		"update operator_sessions set data = $1", "commit",
	} {
		s := sqlbench.Statement{SQL: sql}
		if before.SQL == "" || beginsFlowTrip(before, s) {
			trips++
		}
		before = s
	}
	if trips != 9 {
		t.Errorf("%d round trips, want 9", trips)
	}
}
