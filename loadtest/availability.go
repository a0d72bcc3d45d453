package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// calendar is a service whose units are booked by the hour. The first bookings, shown of them, are on the days of the
// calendar, all others on the days before.
type calendar struct {
	name, first       string // of its units; of the days
	idPrefix          string // of the bookings
	units, shown      int
	perDay, shownADay int // bookings of a unit on a day, before the calendar's days and on them
	service           string
	template          [16]byte
}

// createCalendar creates the service with its units, and the booking that is copied. hours is the rest of a unit in
// JSON.
func (f *figure) createCalendar(s *shop, c *calendar, hours string) {
	c.service = f.create(s.test, "/services", fmt.Sprintf(`{"name":%q,"duration_minutes":60}`, c.name))
	unit := ""
	for n := range c.units {
		unit = f.create(s.test, "/units", fmt.Sprintf(`{"name":"%s %02d","service_ids":[%q]%s}`, c.name, n, c.service, hours))
	}
	const body = `{"customer_id":%q,"service_id":%q,"unit_id":%q,"event_date":"2041-12-31","event_start_time":"16:00",` +
		`"status":"confirmed"}`
	c.template = f.template(s.test, "/bookings", fmt.Sprintf(body, s.customer, c.service, unit))
}

// fill stores the bookings from…to of a calendar. No bookings overlap.
func (f *figure) fill(c *calendar, from, to int) {
	day := fmt.Sprintf(
		"(date '%s' + case when n <= %[2]d then (n - 1) / %[3]d / %[4]d else -1 - (n - %[2]d - 1) / %[3]d / %[5]d end)",
		c.first, c.shown, c.units, c.shownADay, c.perDay)
	at := fmt.Sprintf("(%s + time '09:00' + (n - 1) / %d %% %d * interval '1 hour') at time zone 'America/New_York'",
		day, c.units, c.perDay)
	const nth = "(select array_agg(u.id order by u.name) from units u where u.name like '%s %%')[1 + (n - 1) %% %d]"
	unit := fmt.Sprintf(nth, c.name, c.units)
	f.copies("bookings", "bookings", c.template, from, to, map[string]string{
		"id": rowSQL(c.idPrefix, "n"), "number": fmt.Sprintf("'%.1s-' || n", c.name), "status": "'confirmed'",
		"unit_id": unit, "starts_at": at, "ends_at": at + " + interval '1 hour'", "event_day": day,
	})
}

// availability compares the service's time for the same 62 days with a growing number of stored bookings.
func (f *figure) availability() {
	s := f.open()
	c := &calendar{
		name: "Visit", first: "2040-01-01", idPrefix: "fd000000-0000-7000-8000-", units: 20, shown: 1000, perDay: 8,
		shownADay: 1,
	}
	var hours []string
	for _, day := range strings.Fields("mon tue wed thu fri sat sun") {
		hours = append(hours, fmt.Sprintf(`%q:[["09:00","17:00"]]`, day))
	}
	f.createCalendar(s, c, fmt.Sprintf(`,"opening_hours":{%s}`, strings.Join(hours, ",")))
	from, first := 1, time.Duration(0)
	for _, rows := range []int{c.shown, f.Rows / 20, f.Rows / 2} {
		if rows < from {
			continue
		}
		f.fill(c, from, rows)
		f.check(bulk.Insert(f.ctx, f.database("bookings"), "unit_claims", from, rows, `
			insert into unit_claims (tenant_id, livemode, booking_id, unit_id, starts_at, ends_at)
			select b.tenant_id, b.livemode, b.id, b.unit_id, b.starts_at, b.ends_at
			from generate_series($1::int, $2::int) n join bookings b on b.number = 'V-' || n`))
		from = rows + 1
		inside := f.insideService(s, "/availability?from=2040-01-01&to=2040-03-02&service_id="+c.service)
		row := report.Row{
			Figure: fmt.Sprintf("`GET /availability`, 62 days × 20 units, %d bookings stored: p50 in the service", rows),
			Value:  report.Milliseconds(inside), Target: report.Target{Most: 5},
		}
		if first > 0 {
			row.Baseline = fmt.Sprintf("of %d: %s", c.shown, report.Milliseconds(first))
			row.Ratio = report.Ratio(float64(inside), float64(first))
		} else {
			first = inside
		}
		f.add(row)
	}
}

// insideService repeats a GET on one connection and returns the median of the durations that the service logged.
func (f *figure) insideService(s *shop, path string) time.Duration {
	ours := &side{name: "GET " + path, target: s.test.target(same(path)), pace: load.Pace{Conns: 1}}
	f.send(ours, warmUp)
	since, done := f.platform.Follow("bookings"), f.profile(ours)
	f.send(ours, f.slice())
	done()
	log, err := since()
	f.check(err)
	route, _, _ := strings.Cut(path, "?")
	var all []float64
	for line := range strings.Lines(log) {
		var wide struct {
			Route  string  `json:"route"`
			Millis float64 `json:"duration_ms"`
		}
		if json.Unmarshal([]byte(line), &wide) == nil && wide.Route == route {
			all = append(all, wide.Millis)
		}
	}
	if len(all) == 0 {
		f.check(fmt.Errorf("%w: no log line of %s", errResult, route))
	}
	slices.Sort(all)
	return time.Duration(all[len(all)/2] * float64(time.Millisecond))
}

// pricing measures the processor time of a response with the largest number of prices and rules that the limits allow:
// 500 packages, 200 rules that all apply at the same time, 12 of them to some packages only, and 300 units. Different
// rules apply on each day.
func (f *figure) pricing() {
	s, service := f.open(), ids.New[ids.ServicePrefix]()
	for _, sql := range []string{
		`insert into services (tenant_id, livemode, id, name) values ($1, false, $2, 'Priced')`,
		`with u as (insert into units (tenant_id, livemode, id, name)
			select $1, false, gen_random_uuid(), 'Priced ' || n from generate_series(1, 300) n returning id)
			insert into unit_services (tenant_id, livemode, unit_id, service_id) select $1, false, id, $2 from u`,
		`insert into packages (tenant_id, livemode, id, service_id, name, currency, base_price)
			select $1, false, gen_random_uuid(), $2, 'Priced ' || n, 'USD', 100000 + n from generate_series(1, 500) n`,
		`with p as (select array_agg(id order by name) ids from packages where service_id = $2)
			insert into holiday_rules
				(tenant_id, livemode, id, name, date_from, date_to, multiplier_bps, stackable, service_ids, package_ids)
			select $1, false, gen_random_uuid(), 'Priced ' || n, date '2040-02-01', date '2040-04-02' - n % 62,
				case n % 2 when 0 then 20001 else 4999 end, true, case when n <= 12 then '{}' else array[$2::uuid] end,
				case when n > 12 then '{}'
					else (select array_agg(p.ids[1 + (k * (2 * n + 1) + 7 * n) % 500]) from generate_series(1, 100) k) end
			from p, generate_series(1, 200) n`,
	} {
		f.execute("bookings", sql, s.id, service.UUID())
	}
	f.execute("bookings", `analyze units, unit_services, packages, holiday_rules`)
	path := "/availability?from=2040-02-01&to=2040-04-02&service_id=" + service.String()
	ours := &side{
		name: "`GET /availability`, 62 days × 300 units, 500 packages, 200 stacking rules", target: s.test.target(same(path)),
		pace: load.Pace{Conns: 1},
	}
	f.alternate(ours)
	f.addCPU(ours.name, ours, 150)
	f.execute("bookings", `delete from holiday_rules where name like 'Priced %'`) // the other figures have their own
}
