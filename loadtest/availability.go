package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

const (
	calendarUnits = 20 // of the requested calendar, each with eight slots a day
	calendarDays  = "from=2040-01-01&to=2040-03-02"
	shownBookings = 1000 // on these days, regardless of how many are stored
)

// storedBookings are the table sizes for which the response time is compared.
var storedBookings = []int{shownBookings, 50_000, 500_000}

// calendarRow returns the columns that differ in the n-th booking of the calendar. The first bookings are on the requested days,
// all others before them. No bookings overlap.
var calendarRow = func() map[string]string {
	at := fmt.Sprintf(`(timestamp '2040-01-01 09:00'
		+ case when n <= %[1]d then (n - 1) / %[2]d else -1 - (n - %[1]d - 1) / %[2]d / 8 end * interval '1 day'
		+ (n - 1) / %[2]d %% 8 * interval '1 hour') at time zone 'America/New_York'`, shownBookings, calendarUnits)
	return map[string]string{
		"id": "('fd000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid", "number": "'V-' || n", "status": "'confirmed'",
		"unit_id":   fmt.Sprintf("(select array_agg(u.id order by u.name) from units u where u.name like 'Calendar %%')[1 + (n - 1) %% %d]", calendarUnits),
		"starts_at": at, "ends_at": at + " + interval '1 hour'",
	}
}()

// availability compares the service's time for the same 62 days with a growing number of stored bookings.
func (b *bench) availability(ctx context.Context, s *shop) error {
	service, template, err := s.calendar(ctx)
	if err != nil {
		return err
	}
	get := load.Request(http.MethodGet, "/api/v1/availability?"+calendarDays+"&service_id="+service, s.headers(s.key, ""), "")
	target := load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
	var first time.Duration
	from := 1
	for _, rows := range storedBookings {
		if err := bulk.WithoutIndexes(ctx, s.admin, "bookings", func() error { return s.fill(ctx, template, from, rows) }); err != nil {
			return err
		}
		from = rows + 1
		if err := bulk.VacuumAndCheckpoint(ctx, s.admin, "bookings"); err != nil {
			return err
		}
		if _, err := load.Closed(ctx, target, 1, warmUp); err != nil {
			return err
		}
		since := b.platform.Follow("bookings")
		done, err := b.profileServices(ctx, fmt.Sprintf("availability-%d", rows))
		if err != nil {
			return err
		}
		sample, err := load.Closed(ctx, target, 1, b.slice())
		if err != nil {
			return err
		}
		done()
		log, err := since()
		if err != nil {
			return err
		}
		inside, err := medianOf(log, "/availability")
		if err != nil {
			return err
		}
		b.say("availability with %d bookings stored: p50 %s in the service, %s in all", rows, report.Millis(inside), report.Millis(sample.Percentile(50)))
		row := report.Row{
			Figure: fmt.Sprintf("`GET /availability`, 62 days × %d units, %d bookings stored: p50 in the service", calendarUnits, rows),
			Value:  report.Milliseconds(inside), Aim: report.AtMost(report.Milliseconds(inside), 5), Show: "availability",
		}
		if first == 0 {
			first = inside
		} else {
			row.Baseline, row.Ratio = fmt.Sprintf("of %d: %s", shownBookings, report.Millis(first)), report.Ratio(float64(inside), float64(first))
		}
		b.table.Add(row)
	}
	return nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// calendar creates a service with its units, and a booking that is copied to fill them.
func (s *shop) calendar(ctx context.Context) (service string, template [16]byte, err error) {
	var created struct {
		ID string `json:"id"`
	}
	if err := s.post(ctx, "/services", "bench-calendar", `{"name":"Calendar","duration_minutes":60}`, &created); err != nil {
		return "", template, err
	}
	service = created.ID
	hours := make([]string, 0, 7)
	for _, day := range strings.Fields("mon tue wed thu fri sat sun") {
		hours = append(hours, fmt.Sprintf(`%q:[["09:00","17:00"]]`, day))
	}
	for n := range calendarUnits {
		body := fmt.Sprintf(`{"name":"Calendar %02d","service_ids":[%q],"opening_hours":{%s}}`, n, service, strings.Join(hours, ","))
		if err := s.post(ctx, "/units", fmt.Sprint("bench-calendar-", n), body, &created); err != nil {
			return "", template, err
		}
	}
	body := fmt.Sprintf(`{"service_id":%q,"unit_id":%q,"event_date":"2041-12-31","event_start_time":"16:00","status":"confirmed"}`, service, created.ID)
	if err := s.post(ctx, "/bookings", "bench-calendar-booking", body, &created); err != nil {
		return "", template, err
	}
	id, err := ids.Parse[bookingPrefix](created.ID)
	return service, id.UUID(), err
}

// fill stores the bookings from…to of the calendar, with their claims.
func (s *shop) fill(ctx context.Context, template [16]byte, from, to int) error {
	if err := bulk.Copy(ctx, s.admin, bulk.Template{Table: "bookings", ID: template}, from, to, calendarRow); err != nil {
		return err
	}
	tx, err := s.admin.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "set local session_replication_role = replica"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into unit_claims (tenant_id, livemode, booking_id, unit_id, starts_at, ends_at)
		select b.tenant_id, b.livemode, b.id, b.unit_id, b.starts_at, b.ends_at
		from generate_series($1::int, $2::int) n join bookings b on b.number = 'V-' || n`, from, to); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	_, err = s.admin.Exec(ctx, "vacuum (analyze) unit_claims")
	return err
}

// medianOf returns the median of the durations that the service logged for a route.
func medianOf(log, route string) (time.Duration, error) {
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
		return 0, fmt.Errorf("%w: no log line of %s", errResult, route)
	}
	slices.Sort(all)
	return time.Duration(all[len(all)/2] * float64(time.Millisecond)), nil
}

const racers = 40

// race makes clients compete for one unit's whole day, day after day. One of them books it.
func (b *bench) race(ctx context.Context, s *shop) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: racers}}
	defer client.CloseIdleConnections()
	var times []time.Duration
	for day := firstDay; len(times) < 10*b.Seconds; day = day.AddDate(0, 0, 1) {
		body := s.bookingBody(raceUnit, day)
		statuses, began := make([]int, racers), time.Now()
		var field sync.WaitGroup
		for i := range racers {
			field.Go(func() { statuses[i] = s.attempt(ctx, client, body) })
		}
		field.Wait()
		times = append(times, time.Since(began))
		slices.Sort(statuses)
		if statuses[0] != http.StatusCreated || statuses[1] != http.StatusConflict || statuses[racers-1] != http.StatusConflict {
			return fmt.Errorf("%w: a race ended in %v", errResult, statuses)
		}
	}
	slices.Sort(times)
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("%d clients request the same day of one unit, until all get a response; in each of %d races one books it: p50", racers, len(times)),
		Value:  report.Milliseconds(times[len(times)/2]), Show: "race",
	})
	b.say("%d races of %d: p50 %s", len(times), racers, report.Millis(times[len(times)/2]))
	return nil
}

// attempt returns the status of one create; 0 without a response.
func (s *shop) attempt(ctx context.Context, client *http.Client, body string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/api/v1/bookings", strings.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "handling=strict")
	res, err := client.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// The largest catalogue of one response: every price on every day.
const (
	pricedPackages = 500
	pricedRules    = 200 // all of them apply at the same time
	ownRules       = 12  // rules for some packages only, so that most packages have a different set of rules
	pricedUnits    = 300
	pricedDays     = "from=2040-02-01&to=2040-04-02" // 62 days, with other rules on each
)

// pricing measures the processor time of a response with the largest number of prices and rules that the caps allow.
func (b *bench) pricing(ctx context.Context, s *shop) error {
	service := ids.New[servicePrefix]()
	if err := s.price(ctx, service.UUID()); err != nil {
		return err
	}
	defer s.unprice(context.WithoutCancel(ctx), service.UUID())
	get := load.Request(http.MethodGet, "/api/v1/availability?"+pricedDays+"&service_id="+service.String(), s.headers(s.key, ""), "")
	target := load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
	if _, err := load.Once(ctx, target); err != nil {
		return err
	}
	before := b.processors()
	sample, err := load.Closed(ctx, target, 1, b.slice())
	if err != nil {
		return err
	}
	used := b.processors().since(before)
	all := perRequest(used.platform(), sample.Requests)
	b.say("pricing: %s of processor time in all, p50 %s", all, report.Millis(sample.Percentile(50)))
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("`GET /availability`, 62 days × %d units, %d packages, %d stacking rules: CPU time of all processes", pricedUnits, pricedPackages, pricedRules),
		Value:  all, Aim: report.AtMost(all, 150), Show: "pricing",
	})
	b.table.Note("prices of the largest catalogue, CPU µs per request: %s", used.per(float64(sample.Requests)))
	return nil
}

// price stores the catalogue under one service.
func (s *shop) price(ctx context.Context, service [16]byte) error {
	for _, sql := range []string{
		`insert into services (tenant_id, livemode, id, name) values ($1, false, $2, 'Priced')`,
		`with u as (insert into units (tenant_id, livemode, id, name)
			select $1, false, gen_random_uuid(), 'Priced ' || n from generate_series(1, ` + fmt.Sprint(pricedUnits) + `) n returning id)
			insert into unit_services (tenant_id, livemode, unit_id, service_id) select $1, false, id, $2 from u`,
		`insert into packages (tenant_id, livemode, id, service_id, name, currency, base_price)
			select $1, false, gen_random_uuid(), $2, 'Priced ' || n, 'USD', 100000 + n from generate_series(1, ` + fmt.Sprint(pricedPackages) + `) n`,
		`with p as (select array_agg(id order by name) ids from packages where service_id = $2)
		insert into holiday_rules (tenant_id, livemode, id, name, date_from, date_to, multiplier_bps, stackable, service_ids, package_ids)
			select $1, false, gen_random_uuid(), 'Priced ' || n, date '2040-02-01', date '2040-04-02' - n % 62,
				case n % 2 when 0 then 20001 else 4999 end, true,
				case when n <= ` + fmt.Sprint(ownRules) + ` then '{}' else array[$2::uuid] end,
				case when n <= ` + fmt.Sprint(ownRules) + ` then (select array_agg(p.ids[1 + (k * (2 * n + 1) + 7 * n) % ` + fmt.Sprint(pricedPackages) + `])
					from generate_series(1, 100) k) else '{}' end
			from p, generate_series(1, ` + fmt.Sprint(pricedRules) + `) n`,
	} {
		if _, err := s.admin.Exec(ctx, sql, s.tenant, service); err != nil {
			return err
		}
	}
	_, err := s.admin.Exec(ctx, `analyze units, unit_services, packages, holiday_rules`)
	return err
}

// unprice removes the catalogue, because the next measurement has its own.
func (s *shop) unprice(ctx context.Context, service [16]byte) {
	for _, sql := range []string{
		`delete from holiday_rules where name like 'Priced %' and tenant_id = $1 and $2::uuid is not null`,
		`delete from packages where tenant_id = $1 and service_id = $2`,
		`delete from unit_services where tenant_id = $1 and service_id = $2`,
		`delete from units where name like 'Priced %' and tenant_id = $1 and $2::uuid is not null`,
		`delete from services where tenant_id = $1 and id = $2`,
	} {
		_, _ = s.admin.Exec(ctx, sql, s.tenant, service)
	}
}
