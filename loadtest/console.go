package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// The operators' area: how many operators are signed in, each in a browser, how many pages each opens per second, and how many of
// them have a live page open.
const (
	browsers        = 50
	pace            = 2
	livePages       = 500
	monthUnits      = 50
	monthDays       = 31
	monthPerDay     = 4 // bookings of a unit
	monthRows       = 100_000
	monthAddress    = "calendar?view=month&date=2038-03-01&service_id="
	signInPath      = "/oauth/sign-in"
	consolePassword = "a long enough password"
	pagesPath       = "/admin/demo/test/"
)

// desk is the operators' area of the seeded tenant, with the cookies of the signed-in browsers.
type desk struct {
	*shop

	sessions []string // the cookies of each browser
	metrics  string   // address of the console's own figures
}

// console measures the pages of the operators' area through the gateway.
func (b *bench) console(ctx context.Context) error {
	s, err := b.openShop(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.admin.Close(context.WithoutCancel(ctx)) }()
	d := &desk{shop: s}
	settings, err := b.platform.Settings("console")
	if err != nil {
		return err
	}
	d.metrics = settings["METRICS_ADDR"]
	b.say("%d operators sign in", browsers)
	for n := range browsers {
		session, err := b.operator(ctx, d, n)
		if err != nil {
			return err
		}
		d.sessions = append(d.sessions, session)
	}
	b.try(ctx, "console", "live pages", func() error { return b.live(ctx, d) })
	b.try(ctx, "console", "console pages", func() error { return b.clicks(ctx, d) })
	b.try(ctx, "console", "calendar of a month", func() error { return b.month(ctx, d) })
	return nil
}

// operator invites the n-th operator of the seeded tenant, who sets a password, signs in like a browser, and opens a first page.
// It returns the cookies that the browser sends with the next request.
func (b *bench) operator(ctx context.Context, d *desk, n int) (string, error) {
	var invited struct {
		Email, Link string
	}
	name := fmt.Sprintf("console%d", n)
	if err := b.identity(ctx, &invited, "operator", "invite", name+"@example.com", "--tenant", "demo", "--role", "owner", "--name", name, "--json"); err != nil {
		return "", err
	}
	link, err := url.Parse(invited.Link)
	if err != nil {
		return "", err
	}
	jar, _ := cookiejar.New(nil) // it never returns an error
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page := ""
	for _, step := range []struct {
		method, path string
		form         url.Values
		status       int
	}{
		{http.MethodGet, link.Path, nil, http.StatusOK},
		{http.MethodPost, link.Path, url.Values{"password": {consolePassword}}, http.StatusOK},
		{http.MethodGet, signInPath, nil, http.StatusOK},
		{http.MethodPost, signInPath, url.Values{"email": {invited.Email}, "password": {consolePassword}}, http.StatusSeeOther},
		{http.MethodGet, pagesPath + "today", nil, http.StatusOK},
	} {
		if step.form != nil {
			fill(page, step.form)
		}
		if page, err = d.send(ctx, client, step.method, step.path, step.form, step.status); err != nil {
			return "", err
		}
	}
	var cookies []string
	for _, c := range jar.Cookies(&url.URL{Scheme: "http", Host: d.addr, Path: pagesPath}) {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	return strings.Join(cookies, "; "), nil
}

// send sends a browser's request through the gateway and returns the page in the response.
func (d *desk) send(ctx context.Context, client *http.Client, method, path string, form url.Values, status int) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+d.addr+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != status {
		err = fmt.Errorf("%w: %s %s returned %d: %.300s", errPage, method, path, res.StatusCode, text)
	}
	return string(text), err
}

// page returns the request for a page of the seeded tenant's test data.
func (d *desk) page(session int, path string) []byte {
	return load.Request(http.MethodGet, pagesPath+path, []string{"Cookie: " + d.sessions[session], "Accept-Encoding: gzip"}, "")
}

// plain returns the request for a page without compression.
func (d *desk) plain(path string) []byte {
	return load.Request(http.MethodGet, pagesPath+path, []string{"Cookie: " + d.sessions[0]}, "")
}

// clicks makes all browsers open pages at a constant rate, whether or not the previous pages have loaded.
func (b *bench) clicks(ctx context.Context, d *desk) error {
	id, err := d.book(ctx, "console", recordedDay.AddDate(-2, 0, 0))
	if err != nil {
		return err
	}
	paths := []string{"today", "calendar?view=month", "bookings", "bookings/" + id, "customers", "invoices"}
	var requests [][]byte
	for i := range browsers * len(paths) {
		requests = append(requests, d.page(i%browsers, paths[i/browsers]))
	}
	target := load.Target{Addr: d.addr, Nth: func(n int) []byte { return requests[n*7%len(requests)] }, Status: http.StatusOK}
	if _, err := load.Closed(ctx, target, 2, warmUp); err != nil {
		return err
	}
	before := b.processors()
	sample, err := load.Open(ctx, target, load.Schedule{Rate: browsers * pace}, time.Duration(b.Seconds)*time.Second)
	if err != nil {
		return err
	}
	used := b.processors().since(before)
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("Console page, %d operators × %d pages/s (today, month, lists, a booking): p50, p95", browsers, pace),
		Value:  report.Milliseconds(sample.Percentile(50)),
		Ours:   report.Millis(sample.Percentile(50)) + ", " + report.Millis(sample.Percentile(95)), Show: "console",
	})
	b.table.Add(report.Row{
		Figure: "Console page: CPU time of the console", Value: perRequest(used["console"], sample.Requests), Show: "console",
	})
	all := perRequest(used.platform(), sample.Requests)
	b.table.Add(report.Row{Figure: "Console page: CPU time of all processes", Value: all, Aim: report.AtMost(all, 6), Show: "console"})
	b.table.Note("console pages, CPU µs per page: %s", used.per(float64(sample.Requests)))
	return nil
}

// month measures the calendar of a month of many units, with many bookings stored.
func (b *bench) month(ctx context.Context, d *desk) error {
	service, template, err := d.monthOf(ctx)
	if err != nil {
		return err
	}
	b.say("storing %d bookings", monthRows)
	err = bulk.WithoutIndexes(ctx, d.admin, "bookings", func() error {
		return bulk.Copy(ctx, d.admin, bulk.Template{Table: "bookings", ID: template}, 1, monthRows, monthRow)
	})
	if err != nil {
		return err
	}
	if err := bulk.VacuumAndCheckpoint(ctx, d.admin, "bookings"); err != nil {
		return err
	}
	target := load.Target{Addr: d.addr, Nth: func(int) []byte { return d.page(0, monthAddress+service) }, Status: http.StatusOK}
	whole, err := load.Once(ctx, load.Target{Addr: d.addr, Nth: func(int) []byte { return d.plain(monthAddress + service) }, Status: http.StatusOK})
	if err != nil {
		return err
	}
	shown, more := strings.Count(string(whole), `class="slot`), 0
	for _, left := range leftOut.FindAllSubmatch(whole, -1) {
		n, err := strconv.Atoi(string(left[1]))
		if err != nil {
			return err
		}
		more += n
	}
	if want := monthUnits * monthDays * monthPerDay; shown+more != want || shown < monthUnits*monthDays {
		return fmt.Errorf("%w: the calendar shows %d bookings and reports %d more, of %d", errResult, shown, more, want)
	}
	if _, err := load.Closed(ctx, target, 1, warmUp); err != nil {
		return err
	}
	sample, err := load.Closed(ctx, target, 1, time.Duration(b.Seconds)*time.Second)
	if err != nil {
		return err
	}
	p95 := sample.Percentile(95)
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("Calendar page, %d units × %d days with %d bookings (%d shown, %d stored): p50, p95", monthUnits, monthDays, shown+more, shown, monthRows),
		Value:  report.Milliseconds(p95),
		Ours:   report.Millis(sample.Percentile(50)) + ", " + report.Millis(p95), Aim: report.Aim{Text: "p95 < 300 ms", Value: millis(p95), AtMost: 300}, Show: "console",
	})
	return nil
}

// leftOut matches the number of bookings for which a calendar has no room.
var leftOut = regexp.MustCompile(`data-more="(\d+)"`)

// monthRow returns the columns that differ in the n-th booking. The first bookings fill the month, all others the days before it.
var monthRow = func() map[string]string {
	day := fmt.Sprintf(`(date '2038-03-01' + case when n <= %[1]d then (n - 1) / %[2]d / %[3]d else -1 - (n - %[1]d - 1) / %[2]d / %[3]d end)`,
		monthUnits*monthDays*monthPerDay, monthUnits, monthPerDay)
	at := fmt.Sprintf(`(%s + time '09:00' + (n - 1) / %d %% %d * interval '1 hour') at time zone 'America/New_York'`, day, monthUnits, monthPerDay)
	return map[string]string{
		"id": "('fd000000-0000-7000-8001-' || lpad(to_hex(n), 12, '0'))::uuid", "number": "'M-' || n", "status": "'confirmed'",
		"unit_id":   fmt.Sprintf("(select array_agg(u.id order by u.name) from units u where u.name like 'Month %%')[1 + (n - 1) %% %d]", monthUnits),
		"starts_at": at, "ends_at": at + " + interval '1 hour'", "event_day": day,
	}
}()

// monthOf creates a service with its units, and a booking that is copied to fill them.
func (d *desk) monthOf(ctx context.Context) (service string, template [16]byte, err error) {
	var created struct {
		ID string `json:"id"`
	}
	if err := d.post(ctx, "/services", "bench-month", `{"name":"Month","duration_minutes":60}`, &created); err != nil {
		return "", template, err
	}
	service = created.ID
	for n := range monthUnits {
		body := fmt.Sprintf(`{"name":"Month %02d","service_ids":[%q]}`, n, service)
		if err := d.post(ctx, "/units", fmt.Sprint("bench-month-", n), body, &created); err != nil {
			return "", template, err
		}
	}
	body := fmt.Sprintf(`{"customer_id":%q,"service_id":%q,"unit_id":%q,"event_date":"2041-12-30","event_start_time":"16:00","status":"confirmed"}`, d.customer, service, created.ID)
	if err := d.post(ctx, "/bookings", "bench-month-booking", body, &created); err != nil {
		return "", template, err
	}
	id, err := ids.Parse[bookingPrefix](created.ID)
	return service, id.UUID(), err
}

// live measures the memory that the console uses for each live page.
func (b *bench) live(ctx context.Context, d *desk) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	before, err := held(ctx, d.metrics)
	if err != nil {
		return err
	}
	for i := range livePages {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.addr+pagesPath+"live", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Cookie", d.sessions[i%browsers])
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%w: a live page returned %d", errResult, res.StatusCode)
		}
	}
	after, err := held(ctx, d.metrics)
	if err != nil {
		return err
	}
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("Console memory per live page, %d open", livePages), Value: report.Quantity{Value: float64(after-before) / livePages / 1024, Unit: "KiB"}, Show: "console",
	})
	return nil
}

// held returns how many bytes a process uses in its heap and its stacks after a garbage collection, according to its own metrics.
// The rest of its memory is reserved for later use.
func held(ctx context.Context, addr string) (int64, error) {
	if _, err := get(ctx, "http://"+addr+"/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	text, err := get(ctx, "http://"+addr+"/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		var bytes float64
		for _, name := range []string{"go_memstats_heap_alloc_bytes", "go_memstats_stack_inuse_bytes"} {
			if n, _ := fmt.Sscanf(line, name+" %g", &bytes); n == 1 {
				sum += bytes
			}
		}
	}
	if sum == 0 {
		return 0, fmt.Errorf("%w: %s has no figures of its memory", errResult, addr)
	}
	return int64(sum), nil
}
