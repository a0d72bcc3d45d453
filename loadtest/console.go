package main

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

const (
	browsers  = 50  // operators that are signed in
	pages     = 2   // that each opens per second
	livePages = 500 // that are open at the same time
	pagesPath = "/admin/demo/test/"
)

// desk is the operators' area of the demo tenant, with the cookies of the signed-in browsers.
type desk struct {
	*shop

	sessions []string
}

// console measures the pages of the operators' area.
func (f *figure) console() {
	d := &desk{shop: f.open()}
	for _, one := range f.openBrowsers()[:browsers] {
		f.check(one.signIn(f.ctx))
		_, _, err := one.send(f.ctx, http.MethodGet, pagesPath+"today", nil, http.StatusOK)
		f.check(err)
		var cookies []string
		for _, c := range one.Jar.Cookies(&url.URL{Scheme: "http", Host: d.test.addr, Path: pagesPath}) {
			cookies = append(cookies, c.Name+"="+c.Value)
		}
		d.sessions = append(d.sessions, strings.Join(cookies, "; "))
	}
	f.live(d)
	f.clicks(d)
	f.month(d)
}

// page returns the request for a page of the demo tenant's test data.
func (d *desk) page(session int, path string, headers ...string) []byte {
	return load.Request(http.MethodGet, pagesPath+path, append(headers, "Cookie: "+d.sessions[session]), "")
}

const compressed = "Accept-Encoding: gzip"

// live measures the memory that the console uses for each live page.
func (f *figure) live(d *desk) {
	addr := f.settingsOf("console")["METRICS_ADDR"]
	before := f.held(addr)
	for i := range livePages {
		req, err := http.NewRequestWithContext(f.ctx, http.MethodGet, "http://"+d.test.addr+pagesPath+"live", nil)
		f.check(err)
		req.Header.Set("Cookie", d.sessions[i%browsers])
		res, err := http.DefaultClient.Do(req)
		f.check(err)
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			f.check(fmt.Errorf("%w: a live page returned %d", errResult, res.StatusCode))
		}
	}
	f.add(report.Row{
		Figure: fmt.Sprintf("Console memory per live page, %d open", livePages),
		Value:  report.Quantity{Value: (f.held(addr) - before) / livePages / 1024, Unit: "KiB"},
	})
}

// clicks makes all browsers open pages at a constant rate, whether or not the previous pages have loaded.
func (f *figure) clicks(d *desk) {
	id := f.create(d.test, "/bookings", d.bookingBody(0, recordedDay.AddDate(-2, 0, 0)))
	paths := []string{"today", "calendar?view=month", "bookings", "bookings/" + id, "customers", "invoices"}
	var requests [][]byte
	for i := range browsers * len(paths) {
		requests = append(requests, d.page(i%browsers, paths[i/browsers], compressed))
	}
	ours := &side{
		name: "Console page", pace: load.Pace{Conns: openConnections, Rate: browsers * pages},
		target: load.Target{Addr: d.test.addr, Nth: func(n int) []byte { return requests[n*7%len(requests)] }},
	}
	f.alternate(ours)
	f.add(report.Row{
		Figure: fmt.Sprintf(
			"Console page, %d operators × %d pages/s (today, month, lists, a booking): p50, p95", browsers, pages,
		),
		Value: report.Milliseconds(ours.Percentile(50)), Ours: p(ours.Sample, 50) + ", " + p(ours.Sample, 95),
	})
	own := perRequest(ours.used["console"], ours.Requests)
	f.add(report.Row{Figure: "Console page: CPU time of the console", Value: own})
	f.addCPU("Console page", ours, 6)
}

// leftOut matches the number of bookings for which a calendar has no room.
var leftOut = regexp.MustCompile(`data-more="(\d+)"`)

// month measures the calendar of a month of 50 units with four bookings a day, out of many bookings. The run fails
// unless the page shows them and says, for each day, how many do not fit.
func (f *figure) month(d *desk) {
	const monthUnits, days, perDay, stored = 50, 31, 4, 100_000
	c := &calendar{
		name: "Month", first: "2038-03-01", idPrefix: "fd000000-0000-7000-8001-", units: monthUnits,
		shown:  monthUnits * days * perDay,
		perDay: perDay, shownADay: perDay,
	}
	f.createCalendar(d.shop, c, "")
	f.fill(c, 1, stored)
	path := "calendar?view=month&date=2038-03-01&service_id=" + c.service
	whole, err := load.Once(f.ctx, d.test.addr, d.page(0, path))
	f.check(err)
	shown, more := strings.Count(string(whole), `class="slot`), 0
	for _, left := range leftOut.FindAllSubmatch(whole, -1) {
		n, _ := strconv.Atoi(string(left[1])) // the expression matches only digits
		more += n
	}
	if shown+more != c.shown || shown < monthUnits*days {
		f.check(fmt.Errorf("%w: the calendar shows %d bookings and reports %d more, of %d", errResult, shown, more, c.shown))
	}
	ours := &side{name: "calendar of a month", timed: true, pace: load.Pace{Conns: 1}, target: load.Target{
		Addr: d.test.addr, Nth: func(int) []byte { return d.page(0, path, compressed) },
	}}
	f.alternate(ours)
	f.add(report.Row{
		Figure: fmt.Sprintf(
			"Calendar page, %d units × %d days with %d bookings (%d shown, %d stored): p50, p95", monthUnits, days, c.shown,
			shown, stored,
		),
		Value: report.Milliseconds(ours.Percentile(95)), Ours: p(ours.Sample, 50) + ", " + p(ours.Sample, 95),
		Target: report.Target{Most: 300},
	})
}
