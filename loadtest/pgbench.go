package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/sqlbench"
	"holdfast.dev/loadtest/internal/stack"
)

// replayed counts the transactions of pgbench so far.
type replayed struct {
	script string
	url    string // of the database, with the service's own role
	// start returns where :i starts; nil if nothing is written.
	start        func(ctx context.Context, db *pgx.Conn) (int, error)
	transactions float64
	elapsed      time.Duration
	used         time.Duration // of PostgreSQL
}

// Rate returns the transactions per second.
func (r *replayed) Rate() float64 { return report.Ratio(r.transactions, r.elapsed.Seconds()) }

// each returns the processor time of PostgreSQL for each transaction.
func (r *replayed) each() time.Duration {
	return time.Duration(report.Ratio(float64(r.used), r.transactions))
}

// compareSQL alternates rounds of the platform, and of pgbench on its PostgreSQL while everything else is stopped.
func (f *figure) compareSQL(ours *side, bare *replayed) {
	runRounds(func() { f.serve(ours) }, func() {
		f.check(f.platform.Drain(f.ctx))
		f.check(f.platform.Alone(f.ctx, func() error { return f.replay(bare) }))
	})
	f.noteCPU(ours)
	f.table.Note("%s in pgbench, CPU µs of PostgreSQL for each: %d", ours.name, bare.each().Microseconds())
}

// replay runs one round of pgbench. It deletes the events, so that no service reads them.
func (f *figure) replay(r *replayed) error {
	pid, err := f.platform.PID(postgres)
	if err != nil {
		return err
	}
	db := f.databases["bookings"]
	if _, err := r.run(f.ctx, db, warmUp); err != nil {
		return err
	}
	before, err := stack.CPU(pid)
	if err != nil {
		return err
	}
	rate, err := r.run(f.ctx, db, f.slice())
	if err != nil {
		return err
	}
	after, err := stack.CPU(pid)
	f.say("pgbench, %s: %.0f/s", filepath.Base(r.script), rate)
	r.used += after - before
	r.transactions, r.elapsed = r.transactions+rate*f.slice().Seconds(), r.elapsed+f.slice()
	discard := "delete from outbox where id >= '" + eventPrefix + "000000000000'"
	for _, sql := range []string{discard, "vacuum outbox, bookings", "checkpoint"} {
		if err == nil {
			_, err = db.Exec(f.ctx, sql)
		}
	}
	return err
}

// run runs the script for d and returns the transactions per second.
func (r *replayed) run(ctx context.Context, admin *pgx.Conn, d time.Duration) (rate float64, err error) {
	base := 0
	if r.start != nil {
		if base, err = r.start(ctx, admin); err != nil {
			return 0, err
		}
	}
	return sqlbench.Run(ctx, r.url, r.script, d, base)
}

// freeSlots returns a start of :i for which :n is larger than in every earlier booking of pgbench.
func (s *shop) freeSlots(ctx context.Context, admin *pgx.Conn) (int, error) {
	var last string
	err := admin.QueryRow(ctx, `select coalesce((select right(id::text, 12) from bookings
		where tenant_id = $1 and not livemode and id between $2 and $3 order by id desc limit 1), '0')`,
		s.id, barePrefix+"000000000000", barePrefix+"ffffffffffff").Scan(&last)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(last, 16, 64)
	return int(n) / sqlbench.Clients, err
}

// record sends one request to the service bookings and returns what it sent to PostgreSQL, and the response.
func (f *figure) record(s *shop, route string, request []byte) (sent *sqlbench.Recording, body []byte) {
	statements, lines := f.platform.Follow(postgres), f.platform.Follow("bookings")
	url := f.settingsOf("bookings")["DATABASE_URL"]
	sent, err := sqlbench.Record(f.ctx, f.database("bookings"), url, route, statements, lines, func() (err error) {
		body, err = load.Once(f.ctx, s.test.addr, request)
		return err
	})
	f.check(err)
	return sent, body
}

// replayGet records a GET of the small list's first row and returns its SQL for pgbench, which reads any of the rows.
func (f *figure) replayGet(s *shop) (*replayed, *sqlbench.Recording) {
	sent, _ := f.record(s, "/bookings/{id}", s.reads().Nth(0))
	return f.script("get", sent, sqlbench.Vary{
		Setup:  []string{fmt.Sprintf("\\set r random(1, %d)", smallList)},
		Values: map[string]string{uuidText(rowUUID(rowPrefix, 1)): rowSQL(rowPrefix, ":r")},
	}), sent
}

// replayPost records a POST and returns its SQL for pgbench, which books a different unit or day each time.
func (f *figure) replayPost(s *shop) *replayed {
	for try := 0; ; try++ {
		key := fmt.Sprintf("bench-recorded-%d", try)
		sent, body := f.record(
			s, "/bookings", s.test.request(http.MethodPost, "/bookings", key, s.bookingBody(0, recordedOn(try))),
		)
		reserves := func(st sqlbench.Statement) bool { return strings.Contains(st.SQL, "booking_counters") }
		if try < 4 && slices.ContainsFunc(sent.Statements, reserves) {
			continue // one request in sixteen also reserves numbers for the next ones
		}
		var created struct{ ID, Number string }
		f.check(json.Unmarshal(body, &created))
		vary, err := varyPost(created.ID, created.Number, key)
		f.check(err)
		bare := f.script("post", sent, vary)
		bare.start = s.freeSlots
		return bare
	}
}

// recordedOn returns the day of an attempt. Later attempts book later days. pgbench books from the day after the last
// one, so no day conflicts.
func recordedOn(try int) time.Time { return recordedDay.AddDate(0, 0, try) }

var errTrips = errors.New(
	"the recorded statements make another number of round trips than the service has counted: update beginsTrip",
)

// script writes a pgbench script to the folder of the platform's data and checks its number of round trips.
func (f *figure) script(name string, r *sqlbench.Recording, v sqlbench.Vary) *replayed {
	text, n := sqlbench.Script(r.Statements, v, beginsTrip)
	if n != r.Trips {
		f.check(fmt.Errorf("%w: %d, not %d\n%s", errTrips, n, r.Trips, text))
	}
	for _, dir := range []string{f.Profile, f.platform.Dir} {
		if dir != "" {
			f.check(os.WriteFile(filepath.Join(dir, name+".pgbench"), []byte(text), 0o600))
		}
	}
	direct, _, err := f.platform.URLs(f.settingsOf("bookings")["DATABASE_URL"])
	f.check(err)
	return &replayed{script: filepath.Join(f.platform.Dir, name+".pgbench"), url: direct.String()}
}

// varyPost returns the differences between two bookings in the recorded POST: ids, number, key, unit, and day.
func varyPost(id, number, key string) (sqlbench.Vary, error) {
	booking, err := uuidOf(id)
	return sqlbench.Vary{
		Setup: []string{fmt.Sprintf("\\set u :n %% %d", units), fmt.Sprintf("\\set d :n / %d + 1", units)},
		Values: map[string]string{
			uuidText(booking):                rowSQL(barePrefix, ":n"),
			uuidText(rowUUID(unitPrefix, 0)): rowSQL(unitPrefix, ":u"),
			id:                               `('bk_' || (:n)::bigint)`,
			number:                           `('P-' || (:n)::bigint)`,
			key:                              `('pgbench-' || (:n)::bigint)`,
		},
		Special: func(st sqlbench.Statement, i int) string {
			if strings.HasPrefix(st.SQL, "insert into outbox") && i == 3 {
				return rowSQL(eventPrefix, ":n")
			}
			return laterDay(st.Params[i-1].Text)
		},
	}, err
}

// laterDay returns the SQL of a recorded day or time, :d days later; "" for another value.
func laterDay(text string) string {
	switch {
	case !strings.HasPrefix(text, "2199-"):
		return ""
	case len(text) == len(time.DateOnly):
		return fmt.Sprintf("(date '%s' + (:d)::int)", text)
	default:
		return fmt.Sprintf("(timestamptz E'%s' + (:d)::int * interval '1 day')", strings.ReplaceAll(text, ":", `\x3a`))
	}
}

// beginsTrip reports whether the service waits before it sends the statement: PostgreSQL's log does not show which
// statements were sent in one batch. The number of round trips is compared with the service's own count.
func beginsTrip(before, s sqlbench.Statement) bool {
	sql := strings.TrimSpace(s.SQL)
	switch {
	case sql == "begin", strings.HasPrefix(sql, "with stamp"),
		strings.Contains(sql, "from unit_claims") && strings.HasSuffix(sql, "for update"),
		strings.HasPrefix(sql, "insert into outbox"): // sent with the stored response and the commit
		return true
	case strings.HasPrefix(sql, "select") && strings.Contains(sql, "for no key update"):
		return !strings.Contains(before.SQL, "from idempotency_keys") // the first reads are sent with the lock of the key
	default:
		return false
	}
}
