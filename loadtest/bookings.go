package main

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// bookings compares GET /bookings/{id} and POST /bookings with the same SQL in pgbench. A POST has a price, a deposit,
// a customer, a claim, an idempotency record, a stored response, and an event.
func (f *figure) bookings() {
	s := f.open()
	get := &side{name: "`GET /bookings/{id}`", target: s.reads()}
	f.send(get, warmUp) // also fills the caches of statements
	bareGet, sent := f.replayGet(s)
	f.compareSQL(get, bareGet)
	f.addRate("`GET /bookings/{id}` through gateway and service", get, "pgbench", bareGet.Rate(), report.Target{})
	f.addOwnSQL(get, bareGet, 0.3)
	f.addPrediction(get)
	const scripts = "cmdstat_evalsha:calls=%g,"
	before := f.redisInfo("commandstats", scripts)
	sample := f.send(get, warmUp)
	calls := report.Ratio(f.redisInfo("commandstats", scripts)-before, float64(sample.Requests))
	f.add(report.Row{
		Figure: get.name + ": round trips to Redis", Value: report.Quantity{Value: calls}, Target: report.Target{Most: 1.005},
	})
	trips := report.Quantity{Value: float64(sent.Trips)}
	f.add(report.Row{Figure: get.name + ": round trips to PostgreSQL", Value: trips, Target: report.Target{Most: 1}})

	post := &side{name: "`POST /bookings`", target: s.books(0)}
	f.send(post, warmUp)
	barePost := f.replayPost(s)
	f.compareSQL(post, barePost)
	f.booking = barePost.each()
	f.addRate(
		"`POST /bookings` with Idempotency-Key, through gateway and service", post, "pgbench", barePost.Rate(),
		report.Target{LeastRatio: 0.4},
	)
	f.addOwnSQL(post, barePost, 2.2)
	later := perRequest(post.used.afterCommit(), post.Requests)
	all := strings.Join(readers(), ", ")
	f.add(report.Row{
		Figure: "`POST /bookings`: CPU time after the commit (Kafka, and " + all + " with their databases)",
		Value:  later, Target: report.Target{Most: 0.6}, Baseline: "in pgbench: " + report.Milliseconds(f.booking).String(),
		Ratio: report.Ratio(later.Value, report.Milliseconds(f.booking).Value),
	})
	f.addPrediction(post)
}

// addOwnSQL adds the processor time of all processes, compared with that of PostgreSQL for the same SQL in pgbench.
func (f *figure) addOwnSQL(ours *side, bare *replayed, most float64) {
	all, sql := perRequest(ours.used.platform(), ours.Requests), report.Milliseconds(bare.each())
	f.add(report.Row{
		Figure: ours.name + ": CPU time of all processes", Value: all, Baseline: "in pgbench: " + sql.String(),
		Ratio: report.Ratio(all.Value, sql.Value), Target: report.Target{Most: most},
	})
}

// addPrediction compares the rate with the one that follows from the processor time of a request, if all processes and
// the load generator share the processors. `taskset -c 0 make bench` measures it on one processor.
func (f *figure) addPrediction(s *side) {
	all := s.used.platform() + s.used["loadtest"]
	than := fmt.Sprintf("predicted from %s of CPU time", perRequest(all, s.Requests))
	f.addRate(fmt.Sprintf("%s, all processes on %d of the processors", s.name, runtime.NumCPU()), s, than,
		report.Ratio(float64(runtime.NumCPU()*s.Requests), all.Seconds()), report.Target{LeastRatio: 0.75})
}

// redisInfo reads a number of a section of Redis's INFO, by the format of its line.
func (f *figure) redisInfo(section, format string) (value float64) {
	opt, err := redis.ParseURL(f.platform.Env["REDIS_URL"])
	f.check(err)
	c := redis.NewClient(opt)
	defer func() { _ = c.Close() }()
	info, err := c.Info(f.ctx, section).Result()
	f.check(err)
	for line := range strings.Lines(info) {
		_, _ = fmt.Sscanf(line, format, &value)
	}
	return value
}

// sizeSlots is the number of the first slot that size books, after those of bookings.
const sizeSlots = 2_000_000

const relationSize = `select coalesce(sum(pg_total_relation_size(oid)), 0)::float from pg_class
	where relkind = 'r' and relname ~ '`

// sizes are what a booking adds, in bytes unless the unit is empty.
func (f *figure) sizes() []struct {
	what, unit string
	read       func() float64
} {
	inDatabase := func(sql string) func() float64 {
		return func() (size float64) {
			f.check(f.database("bookings").QueryRow(f.ctx, sql).Scan(&size))
			return size
		}
	}
	row, record := inDatabase(relationSize+`^(bookings|unit_claims)$'`), inDatabase(relationSize+`^idempotency'`)
	return []struct {
		what, unit string
		read       func() float64
	}{
		{"its row and its claim in PostgreSQL, with their indexes", "KiB", row},
		{"the record of its Idempotency-Key, kept for 24 hours", "KiB", record},
		{"write-ahead log of all databases", "KiB", inDatabase("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float")},
		{"its event in Kafka, with the other events that follow", "KiB", func() float64 {
			bytes, err := f.platform.TopicBytes(f.ctx)
			f.check(err)
			return float64(bytes)
		}},
		{"its cached response and counters in Redis", "KiB", func() float64 {
			return f.redisInfo("memory", "used_memory_dataset:%g")
		}},
		{"commands that Redis runs", "", func() float64 { return f.redisInfo("stats", "total_commands_processed:%g") }},
	}
}

// size measures what a booking adds to PostgreSQL, Kafka and Redis, and the memory of the processes.
func (f *figure) size() {
	s, sizes := f.open(), f.sizes()
	f.check(f.platform.Drain(f.ctx))
	before := make([]float64, len(sizes))
	for i, one := range sizes {
		before[i] = one.read()
	}
	sample := f.send(&side{name: "size", target: s.books(sizeSlots)}, f.slice())
	f.check(f.platform.Drain(f.ctx))
	for i, one := range sizes {
		each := report.Quantity{Value: report.Ratio(one.read()-before[i], float64(sample.Requests)), Unit: one.unit}
		if one.unit == "KiB" {
			each.Value /= 1024
		}
		f.add(report.Row{Figure: "a booking: " + one.what, Value: each})
	}
	var parts []string
	own, _ := f.platform.PIDs()
	for name, pid := range own {
		if now, _, err := stack.Resident(pid); err == nil && name != postgres { // PostgreSQL's processes share their memory
			parts = append(parts, fmt.Sprintf("%s %.0f", name, now/mebi))
		}
	}
	slices.Sort(parts)
	f.table.Note("resident memory after the bookings, MiB: %s", strings.Join(parts, ", "))
}

const mebi = 1 << 20

// race makes clients compete for one unit's whole day, day after day. One of them books it.
func (f *figure) race() {
	s := f.open()
	const clients = 40
	races := 10 * f.Seconds
	took := make([]time.Duration, races)
	for n := range took {
		statuses, began := make([]int, clients), time.Now()
		request := s.test.request(http.MethodPost, "/bookings", "", s.bookingBody(raceUnit, firstDay.AddDate(0, 0, n)))
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() { statuses[i] = load.Status(f.ctx, s.test.addr, request) })
		}
		all.Wait()
		took[n] = time.Since(began)
		slices.Sort(statuses)
		won, lost, last := statuses[0], statuses[1], statuses[clients-1]
		if won != http.StatusCreated || lost != http.StatusConflict || last != http.StatusConflict {
			f.check(fmt.Errorf("%w: a race ended in %v", errResult, statuses))
		}
	}
	slices.Sort(took)
	f.add(report.Row{
		Figure: fmt.Sprintf(
			"%d clients request the same day of one unit, until all get a response; in each of %d races one books it: p50",
			clients, races,
		),
		Value: report.Milliseconds(took[races/2]),
	})
}
