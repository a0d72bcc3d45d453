package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/record"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/sqlbench"
)

// read compares GET /bookings/{id} with the same SQL in pgbench, both over the small list's rows.
func (b *bench) read(ctx context.Context, s *shop) error {
	nth := func(n int) []byte {
		id := ids.FromUUID[bookingPrefix](rowUUID(n%smallList + 1)).String()
		return load.Request(http.MethodGet, "/api/v1/bookings/"+id, s.headers(s.live, ""), "")
	}
	ours := &served{name: "GET /bookings/{id}", target: load.Target{Addr: s.addr, Nth: nth, Status: http.StatusOK}}
	if _, err := ours.send(ctx, connections, warmUp); err != nil { // also fills the caches of statements
		return err
	}
	one := ours.target
	one.Nth = func(int) []byte { return nth(0) }
	sent := &record.Recording{Service: "bookings", Route: "/bookings/{id}"}
	err := record.All(ctx, b.platform, s.admin, func() error {
		_, err := load.Once(ctx, one)
		return err
	}, sent)
	if err != nil {
		return err
	}
	vary := sqlbench.Vary{
		Setup:  []string{fmt.Sprintf("\\set r random(1, %d)", smallList)},
		Values: map[string]string{uuidText(rowUUID(1)): rowSQL},
	}
	script, err := b.script("get", sent, vary, beginsTrip)
	if err != nil {
		return err
	}
	redis, err := redisCalls(ctx, b.platform.Env["REDIS_URL"])
	if err != nil {
		return err
	}
	first, same := ours.sent, &replayed{script: script, url: s.app}
	if err := b.alternate(ctx, b.serve(ctx, ours), same); err != nil {
		return err
	}
	after, err := redisCalls(ctx, b.platform.Env["REDIS_URL"])
	if err != nil {
		return err
	}
	b.table.Add(rateRow("`GET /bookings/{id}` through gateway and service", ours.Rate(), same.Rate(), 0))
	all := perRequest(ours.used.platform(), ours.Requests)
	b.table.Add(report.Row{Figure: "`GET /bookings/{id}`: CPU time of all processes", Value: all, Aim: report.AtMost(all, 0.3), Show: "bookings"})
	b.noteCosts(ours, same)
	scripts := report.Ratio(float64(after-redis), float64(ours.sent-first))
	b.table.Add(tripRow("Redis", scripts))
	b.table.Add(tripRow("PostgreSQL", float64(sent.Trips)))
	return nil
}

// maxTrips is the largest average number of round trips to one server. It allows for a few requests that are counted on one side only.
const maxTrips = 1.005

func tripRow(where string, n float64) report.Row {
	return report.Row{
		Figure: "`GET /bookings/{id}`: round trips to " + where, Value: report.Quantity{Value: n},
		Aim: report.Aim{Text: "≤ 1", Value: n, AtMost: maxTrips}, Show: "bookings",
	}
}

func rateRow(figure string, ours, bare, least float64) report.Row {
	ratio := report.Ratio(ours, bare)
	r := report.Row{Figure: figure, Value: report.PerSecond(ours), Baseline: fmt.Sprintf("pgbench: %.0f/s", bare), Ratio: ratio, Show: "bookings"}
	if least > 0 {
		r.Aim = report.Aim{Text: fmt.Sprintf("≥ %.0f %%", 100*least), Value: ratio, Least: least}
	}
	return r
}

// create compares POST /bookings with the same transaction in pgbench. Each books a different unit or day, with price, deposit,
// customer, claim, idempotency record, stored response, and event.
func (b *bench) create(ctx context.Context, s *shop) error {
	ours := &served{name: "POST /bookings", target: load.Target{
		Addr: s.addr, Status: http.StatusCreated,
		Nth: func(n int) []byte {
			headers := s.headers(s.key, fmt.Sprintf("bench-%d", n))
			return load.Request(http.MethodPost, "/api/v1/bookings", headers, nthBooking(s, n))
		},
	}}
	if _, err := ours.send(ctx, connections, warmUp); err != nil {
		return err
	}
	script, err := b.createScript(ctx, s)
	if err != nil {
		return err
	}
	same := &replayed{script: script, url: s.app, start: s.freeSlots}
	if err := b.alternate(ctx, b.serve(ctx, ours), same); err != nil {
		return err
	}
	b.table.Add(rateRow("`POST /bookings` with Idempotency-Key, through gateway and service", ours.Rate(), same.Rate(), 0.4))
	all, later := perRequest(ours.used.platform(), ours.Requests), perRequest(ours.used.afterCommit(), ours.Requests)
	b.table.Add(report.Row{Figure: "`POST /bookings`: CPU time of all processes", Value: all, Aim: report.AtMost(all, 2.2), Show: "bookings"})
	b.table.Add(report.Row{
		Figure: "`POST /bookings`: CPU time after the commit (Kafka, and " + strings.Join(readers(), ", ") + " with their databases)",
		Value:  later, Aim: report.AtMost(later, 0.6), Show: "bookings",
	})
	b.noteCosts(ours, same)
	return nil
}

// nthBooking returns the body for the n-th slot: all units of a day in turn, then those of the next day.
func nthBooking(s *shop, n int) string {
	return s.bookingBody(n%units, firstDay.AddDate(0, 0, n/units))
}

// The ids of pgbench's bookings begin with bareBooking. bareSQL is the SQL of an id from :n.
const (
	bareBooking = "ffffffff-0001-7000-8000-"
	bareSQL     = `('ffffffff-%s-7000-8000-' || lpad(to_hex((:n)::bigint), 12, '0'))::uuid`
)

// freeSlots returns a start of :i for which :n is larger than in every earlier booking of pgbench.
func (s *shop) freeSlots(ctx context.Context, db *pgx.Conn) (int, error) {
	return nextBare(ctx, db, "bookings", s.tenant, bareBooking)
}

// nextBare returns a start of :i for which :n is larger than in every earlier row of pgbench, whose ids begin with prefix.
func nextBare(ctx context.Context, admin *pgx.Conn, table string, tenant [16]byte, prefix string) (int, error) {
	var last string
	err := admin.QueryRow(ctx, `select coalesce((select right(id::text, 12) from `+table+`
		where tenant_id = $1 and not livemode and id between $2 and $3 order by id desc limit 1), '0')`,
		tenant, prefix+"000000000000", prefix+"ffffffffffff").Scan(&last)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(last, 16, 64)
	return int(n) / sqlbench.Clients, err
}

// createScript records one POST and creates a script from it.
func (b *bench) createScript(ctx context.Context, s *shop) (string, error) {
	return b.recordedCreate(ctx, s, "post", func(key string, try int) (string, error) {
		return s.book(ctx, key, recordedOn(try))
	}, func(v sqlbench.Vary) sqlbench.Vary { return v })
}

// recordedCreate records one POST, which book sends and whose booking it returns, and creates a script from it. change changes the
// differences between two bookings of the script.
func (b *bench) recordedCreate(
	ctx context.Context, s *shop, name string, book func(key string, try int) (string, error), change func(sqlbench.Vary) sqlbench.Vary,
) (string, error) {
	for try := 0; ; try++ {
		key := fmt.Sprintf("bench-recorded-%s-%d", name, try)
		var id string
		sent := &record.Recording{Service: "bookings", Route: "/bookings"}
		err := record.All(ctx, b.platform, s.admin, func() error {
			var err error
			id, err = book(key, try)
			return err
		}, sent)
		if err != nil {
			return "", err
		}
		if reservesNumbers(sent) && try < 4 {
			continue // one request in sixteen also reserves numbers for the next ones
		}
		vary, err := s.varyCreate(ctx, id, key)
		if err != nil {
			return "", err
		}
		return b.script(name, sent, change(vary), beginsTrip)
	}
}

// recordedOn returns the day of an attempt. Later attempts book later days. pgbench books from the day after the last one, so no
// day conflicts.
func recordedOn(try int) time.Time { return recordedDay.AddDate(0, 0, try) }

func reservesNumbers(r *record.Recording) bool {
	for _, s := range r.Statements {
		if strings.Contains(s.SQL, "booking_counters") {
			return true
		}
	}
	return false
}

// varyCreate returns the differences between two bookings in the recorded POST: ids, number, key, unit, and day.
func (s *shop) varyCreate(ctx context.Context, id, key string) (v sqlbench.Vary, err error) {
	booking, err := ids.Parse[bookingPrefix](id)
	if err != nil {
		return v, err
	}
	var number string
	if err := s.admin.QueryRow(ctx, "select number from bookings where id = $1", booking.UUID()).Scan(&number); err != nil {
		return v, err
	}
	return sqlbench.Vary{
		Setup: []string{fmt.Sprintf("\\set u :n %% %d", units), fmt.Sprintf("\\set d :n / %d + 1", units)},
		Values: map[string]string{
			uuidText(booking.UUID()): fmt.Sprintf(bareSQL, "0001"),
			uuidText(unitUUID(0)):    unitSQL,
			id:                       `('bk_' || (:n)::bigint)`,
			number:                   `('P-' || (:n)::bigint)`,
			key:                      `('pgbench-' || (:n)::bigint)`,
		},
		Special: func(st sqlbench.Statement, i int) string {
			if strings.HasPrefix(st.SQL, "insert into outbox") && i == 3 {
				return fmt.Sprintf(bareSQL, "0002")
			}
			return laterDay(st.Params[i-1].Text)
		},
	}, nil
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

var errTrips = errors.New("the recorded statements make another number of round trips than the service has counted: update beginsTrip")

// script writes a pgbench script to the folder of the platform's data and checks its number of round trips.
func (b *bench) script(name string, r *record.Recording, v sqlbench.Vary, begins func(before, s sqlbench.Statement) bool) (string, error) {
	text, n := sqlbench.Script(r.Statements, v, begins)
	path := filepath.Join(b.platform.Dir, name+".pgbench")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	if b.Profile != "" {
		if err := os.WriteFile(filepath.Join(b.Profile, name+".pgbench"), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	if n != r.Trips {
		return "", fmt.Errorf("%w: %d, not %d\n%s", errTrips, n, r.Trips, text)
	}
	return path, nil
}

// beginsTrip reports whether the service waits before it sends the statement: PostgreSQL's log does not show which statements were
// sent in one batch. The number of round trips is compared with the service's own count.
func beginsTrip(before, s sqlbench.Statement) bool {
	sql := strings.TrimSpace(s.SQL)
	switch {
	case sql == "begin", strings.HasPrefix(sql, "with stamp"), strings.Contains(sql, "from unit_claims") && strings.HasSuffix(sql, "for update"),
		strings.HasPrefix(sql, "insert into outbox"): // sent with the stored response and the commit
		return true
	case strings.HasPrefix(sql, "select") && strings.Contains(sql, "for no key update"):
		return !strings.Contains(before.SQL, "from idempotency_keys") // the first reads are sent with the lock of the key
	default:
		return false
	}
}
