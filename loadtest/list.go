package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// rowStride is a prime number, so that consecutive reads are far from each other and no row is read twice.
const rowStride = 7_368_787

// timing is the median time of a request, and that of a plain read in alternation with it. The small list and the large
// one are measured minutes apart, and the machine's speed changes in between.
type timing struct{ page, plain time.Duration }

func (t timing) String() string {
	return fmt.Sprintf("%s (plain read %s)", report.Milliseconds(t.page), report.Milliseconds(t.plain))
}

func (t timing) reads() float64 { return report.Ratio(float64(t.page), float64(t.plain)) }

// list compares requests to a list of BENCH_ROWS bookings with the same requests to a small one, both relative to the
// plain read that was measured with them.
func (f *figure) list() {
	s := f.open()
	small := f.listTimes(s, smallList)
	if f.Rows > smallList {
		f.copies("bookings", "bookings", s.template, smallList+1, f.Rows, listed("number"))
	}
	large := f.listTimes(s, f.Rows)
	for _, what := range slices.Sorted(maps.Keys(large)) {
		f.add(report.Row{
			Figure: fmt.Sprintf("%s of %d rows, p50", what, f.Rows), Value: report.Milliseconds(large[what].page),
			Ours:     large[what].String(),
			Baseline: fmt.Sprintf("of %d rows: %s", smallList, small[what]),
			Ratio:    report.Ratio(large[what].reads(), small[what].reads()),
			Target:   report.Target{MostRatio: 1.2},
		})
	}
}

// listTimes returns the times of a list with that many rows: its first page and the deep one, a read of one of its
// rows, and a write to it, each one request at a time.
func (f *figure) listTimes(s *shop, rows int) map[string]timing {
	times := map[string]timing{}
	for what, target := range map[string]load.Target{
		"`GET " + firstPage + "`, first page":         s.live.target(same(firstPage)),
		"`GET " + firstPage + "`, page of the cursor": s.live.target(same(s.deep)),
		"`GET /bookings/{id}`, any": s.live.target(
			func(n int) string { return bookingPath(rowPrefix, n*rowStride%rows+1) },
		),
		"`POST /bookings`, one client, to a list": s.live.post(func(n int) (path, key, body string) {
			s.listed++ // one request at a time
			unit, day := publicID("un", rowUUID(unitPrefix, s.listed%units)), firstDay.AddDate(0, 0, s.listed/units)
			body = fmt.Sprintf(`{"customer_id":%q,"unit_id":%q,"event_date":%q}`, s.customer, unit, day.Format(time.DateOnly))
			return "/bookings", fmt.Sprintf("bench-list-%d", s.listed), body
		}),
	} {
		page := &side{name: what, target: target, pace: load.Pace{Conns: 1}, timed: true}
		plain := &side{
			name: "plain read", target: s.live.target(same("/services?limit=1")), pace: load.Pace{Conns: 1}, timed: true,
		}
		f.alternate(page, plain)
		times[what] = timing{page: page.Percentile(50), plain: plain.Percentile(50)}
	}
	return times
}

// searches are the searches among BENCH_ROWS customers.
var searches = []struct {
	what, q string
	most    float64 // milliseconds; 0: no target
}{
	{"one letter", "a", 50},
	{"a word of all", "example.com", 50},
	{"two common words", "a+gm", 50},
	{"a rare word", "name777777", 50},
	{"no match", "zzzz", 50},
	{"a word of the oldest tenth", "legacy", 0},
}

// search fills the live mode of the tenant with customers and searches among them, one request at a time.
func (f *figure) search() {
	s := f.open()
	f.fillCustomers(s)
	for _, one := range searches {
		ours := &side{
			name:   fmt.Sprintf("`GET /customers?q=%s` of %d (%s)", one.q, f.Rows, one.what),
			target: s.live.target(same("/customers?q=" + one.q)), pace: load.Pace{Conns: 1}, timed: true,
		}
		f.alternate(ours)
		f.add(report.Row{
			Figure: ours.name + ", p50", Value: report.Milliseconds(ours.Percentile(50)), Baseline: "p99 " + p(ours.Sample, 99),
			Target: report.Target{Most: one.most},
		})
	}
}

// fillCustomers stores BENCH_ROWS customers, each with six different words.
func (f *figure) fillCustomers(s *shop) {
	id, err := uuidOf(s.customer)
	f.check(err)
	own := listed()
	own["first_name"], own["email"] = "'Name' || n", "'n' || n || '@example.com'"
	own["email_lower"] = own["email"]
	f.copies("customers", "customers", id, 1, f.Rows, own)
	f.check(bulk.Insert(f.ctx, f.database("customers"), "customer_words", 1, f.Rows, fmt.Sprintf(`
		insert into customer_words (tenant_id, livemode, word, customer_id)
		select tenant_id, true, w, %s from customers c, generate_series($1::int, $2::int) n,
			unnest(array['name' || n, 'n' || n || '@example.com', 'example.com', 'com', chr(97 + n %% 2) || 'nna' || n %% 1000,
				case when n <= %d then 'legacy' else 'gmail' || n %% 7 end]) w
		where c.id = '%x' and not c.livemode`, rowSQL(rowPrefix, "n"), f.Rows/10, id)))
}
