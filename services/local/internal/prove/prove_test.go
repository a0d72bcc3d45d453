package prove

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/testservers"
)

// A world is a table with one counter, and a connection through a proxy for each of two participants.
type world struct {
	admin *pgx.Conn
	sched *Scheduler
	conns []*pgx.Conn
}

func newWorld(t *testing.T) *world {
	t.Helper()
	address := testservers.Getenv(t, "TEST_POSTGRES_URL")
	w := &world{admin: connect(t, address)}
	observer := connect(t, address)
	w.sched = &Scheduler{MaxWait: time.Second, Blocked: BlockedOn(observer)}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	for i := range 2 {
		p, err := Listen(server, w.sched.Intercept(i, "conn"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		u.Host = p.Address()
		w.conns = append(w.conns, connect(t, u.String()))
	}
	return w
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (w *world) exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Error(err)
	}
}

// increment reads a counter and writes it, in four round trips.
func (w *world) increment(t *testing.T, conn *pgx.Conn, table, lock string) func() {
	return func() {
		n := 0
		w.exec(t, conn, "begin")
		if err := conn.QueryRow(t.Context(), "select n from "+table+lock).Scan(&n); err != nil {
			t.Error(err)
		}
		w.exec(t, conn, "update "+table+" set n = $1", n+1)
		w.exec(t, conn, "commit")
	}
}

// Explore finds the order in which an increment without a lock is lost, and none with a lock.
func TestExploreFindsALostUpdate(t *testing.T) {
	w := newWorld(t)
	table := fmt.Sprintf("prove_%d", time.Now().UnixNano())
	w.exec(t, w.admin, "create table "+table+" (n int)")
	t.Cleanup(func() { _, _ = w.admin.Exec(context.Background(), "drop table "+table) })
	for _, conn := range w.conns { // prepares the statements
		w.exec(t, w.admin, "delete from "+table)
		w.exec(t, w.admin, "insert into "+table+" values (0)")
		w.increment(t, conn, table, "")()
		w.increment(t, conn, table, " for update")()
	}
	for _, c := range []struct {
		lock        string
		preemptions int
		independent Independent
		runs, lost  int // 0 runs: not checked
	}{
		{"", 0, nil, 2, 0},
		{"", 1, nil, 8, 4},
		{"", 1, ByTransaction(func(string) bool { return false }), 8, 4},
		{"", 1, ByTransaction(func(string) bool { return true }), 2, 0},
		{" for update", 1, nil, 8, 0},
		{" for update", 3, nil, 0, 0},
		{" for update", 3, ByTransaction(func(string) bool { return false }), 0, 0},
	} {
		var lost []Schedule
		runs, all, err := Explore(t.Context(), c.preemptions, c.independent, func(prefix Schedule) ([]Step, error) {
			w.exec(t, w.admin, "update "+table+" set n = 0")
			steps, err := w.sched.Run(t.Context(), prefix, nil, w.increment(t, w.conns[0], table, c.lock), w.increment(t, w.conns[1], table, c.lock))
			n := 0
			if err := w.admin.QueryRow(t.Context(), "select n from "+table).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n != 2 {
				lost = append(lost, ScheduleOf(steps))
			}
			return steps, err
		})
		t.Logf("lock %q, %d preemptions, all: %v: %d runs, %d lost: %v", c.lock, c.preemptions, c.independent == nil, runs, len(lost), lost)
		if err != nil || !all || len(lost) != c.lost || c.runs > 0 && runs != c.runs {
			t.Errorf("lock %q, %d preemptions: %d runs, all %v, lost %v, %v", c.lock, c.preemptions, runs, all, lost, err)
		}
	}
}

// Run returns an error if a write does not end in time, and waits for it.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	ended := false
	steps, err := (&Scheduler{}).Run(ctx, nil, nil, func() {
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond)
		ended = true
	})
	if err == nil || len(steps) > 0 || !ended {
		t.Errorf("%v, %v, ended: %v", steps, err, ended)
	}
}

// An effect outside of PostgreSQL depends on each round trip of its process, also on one that only reads.
func TestEffectsDependOnTheirProcess(t *testing.T) {
	independent := ByTransaction(func(string) bool { return false })
	effect := Step{process: "payments", Round: &Round{}}
	for process, want := range map[string]bool{"payments": false, "bookings": true} {
		read := Step{process: process, Round: &Round{PID: 1, SQL: []string{"select from bookings"}}}
		if independent(effect, read) != want || independent(read, effect) != want {
			t.Errorf("a read of %s and an effect on payments are independent: want %t", process, want)
		}
	}
}
