package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// smallList is the number of rows of the small list, with which the large one is compared.
const smallList = 10_000

// list holds the measurements of the small list. The cursor of the deep page was created when the list had half of its rows. Every
// later row is newer, so this page gets deeper.
type list struct {
	template bulk.Template // the booking that its rows copy
	deep     string
	booked   int // bookings that were created through the API
	small    map[string]timing
}

// rowUUID returns the id of the n-th row of the lists. rowSQL does the same with pgbench's :r.
func rowUUID(n int) (u [16]byte) {
	u[0], u[6], u[8] = 0xfe, 0x70, 0x80
	binary.BigEndian.PutUint32(u[12:], uint32(n))
	return u
}

const rowSQL = `('fe000000-0000-7000-8000-' || lpad(to_hex((:r)::bigint), 12, '0'))::uuid`

func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// smallList fills the live mode of the tenant with copies of a booking, and measures if it is selected.
func (b *bench) smallList(ctx context.Context, s *shop, template string) (*list, error) {
	id, err := ids.Parse[bookingPrefix](template)
	if err != nil {
		return nil, err
	}
	for _, table := range []string{"services", "units", "packages", "customers"} { // the copies refer to them
		_, err := s.admin.Exec(ctx, fmt.Sprintf(`insert into %[1]s
			select (jsonb_populate_record(t, '{"livemode": true}')).* from %[1]s t where tenant_id = $1 and not livemode`, table), s.tenant)
		if err != nil {
			return nil, err
		}
	}
	of := bulk.Template{Table: "bookings", ID: id.UUID()}
	if err := bulk.Copy(ctx, s.admin, of, 1, smallList/2, listed); err != nil {
		return nil, err
	}
	var page struct {
		Next string `json:"next_cursor"`
	}
	err = s.call(ctx, load.Request(http.MethodGet, firstPage, s.headers(s.live, ""), ""), http.StatusOK, &page)
	if err != nil {
		return nil, err
	}
	l := &list{template: of, deep: firstPage + "&cursor=" + url.QueryEscape(page.Next)}
	if err := bulk.Copy(ctx, s.admin, of, smallList/2+1, smallList, listed); err != nil {
		return nil, err
	}
	if err := bulk.VacuumAndCheckpoint(ctx, s.admin, "bookings"); err != nil || !b.wants("list") {
		return l, err
	}
	l.small, err = b.ofList(ctx, s, l, smallList)
	return l, err
}

const firstPage = "/api/v1/bookings?limit=25"

// listed contains the columns that differ in the n-th row of the list: each row is newer than the previous one.
var listed = map[string]string{
	"livemode": "true", "id": "('fe000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid", "number": "'L-' || n",
	"created_at": "timestamptz '2020-01-01' + n * interval '100 ms'", "updated_at": "timestamptz '2020-01-01' + n * interval '100 ms'",
}

// ofList returns the median times of a list with that many rows: its first page and the deep one, a read of one of its rows, and a
// write to it, each one request at a time.
func (b *bench) ofList(ctx context.Context, s *shop, l *list, rows int) (map[string]timing, error) {
	read := func(path string) load.Target {
		get := load.Request(http.MethodGet, path, s.headers(s.live, ""), "")
		return load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
	}
	times := map[string]timing{}
	for name, target := range map[string]load.Target{
		pageFigure: read(firstPage),
		deepFigure: read(l.deep),
		rowFigure: {Addr: s.addr, Status: http.StatusOK, Nth: func(n int) []byte {
			id := ids.FromUUID[bookingPrefix](rowUUID(n*rowStride%rows + 1)).String()
			return load.Request(http.MethodGet, "/api/v1/bookings/"+id, s.headers(s.live, ""), "")
		}},
		writeFigure: {Addr: s.addr, Status: http.StatusCreated, Nth: func(int) []byte {
			l.booked++ // one request at a time
			body := fmt.Sprintf(`{"customer_id":%q,"unit_id":%q,"event_date":%q}`, s.customer, s.units[l.booked%units],
				firstDay.AddDate(0, 0, l.booked/units).Format(time.DateOnly))
			return load.Request(http.MethodPost, "/api/v1/bookings", s.headers(s.live, fmt.Sprintf("bench-list-%d", l.booked)), body)
		}},
	} {
		t, err := b.medianOf(ctx, s, target)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		b.say("%s of %d rows: p50 %s", name, rows, report.Millis(t.page))
		times[name] = t
	}
	return times, nil
}

// The figures of the list.
const (
	pageFigure  = "`GET /bookings?limit=25`, first page"
	deepFigure  = "`GET /bookings?limit=25`, page of the cursor"
	rowFigure   = "`GET /bookings/{id}`, any"
	writeFigure = "`POST /bookings`, one client, to a list"
)

// rowStride is a prime number, so that consecutive reads are far from each other and no row is read twice.
const rowStride = 7_368_787

// timing is the median time of a page, and that of a plain read in alternation with it. The small list and the large one are
// measured minutes apart, and the machine's speed changes in between.
type timing struct{ page, plain time.Duration }

// plainRead is a list to which no measurement adds rows.
const plainRead = "/api/v1/services?limit=1"

// median returns the median times of a GET in live mode and of the plain read, one request at a time.
func (b *bench) median(ctx context.Context, s *shop, path string) (timing, error) {
	get := load.Request(http.MethodGet, path, s.headers(s.live, ""), "")
	return b.medianOf(ctx, s, load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK})
}

// medianOf returns the median times of the requests and of the plain read, one request at a time.
func (b *bench) medianOf(ctx context.Context, s *shop, target load.Target) (timing, error) {
	get := load.Request(http.MethodGet, plainRead, s.headers(s.live, ""), "")
	plain := load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
	var samples [2]load.Sample
	var all []func(int) error
	for i, one := range []*served{{target: target}, {target: plain}} {
		if _, err := one.send(ctx, 1, warmUp); err != nil {
			return timing{}, err
		}
		all = append(all, func(int) error {
			sample, err := one.send(ctx, 1, b.slice()/rounds)
			samples[i] = load.Join(samples[i], sample)
			return err
		})
	}
	err := runRounds(all...)
	return timing{page: samples[0].Percentile(50), plain: samples[1].Percentile(50)}, err
}

// largeList grows the list to BENCH_ROWS and compares the same pages.
func (b *bench) largeList(ctx context.Context, s *shop, l *list) error {
	if err := bulk.Grow(ctx, s.admin, l.template, smallList+1, b.Rows, listed, b.say); err != nil {
		return err
	}
	large, err := b.ofList(ctx, s, l, b.Rows)
	if err != nil {
		return err
	}
	for _, name := range []string{pageFigure, deepFigure, rowFigure, writeFigure} {
		b.addRatio(fmt.Sprintf("%s of %d rows, p50", name, b.Rows), "list", large[name], l.small[name])
	}
	if b.Rows < csvRows {
		return nil
	}
	const oldest = "bookings?created_before=2020-01-01T02:46:40.050Z" // the rows are 100 ms apart
	return b.csv(ctx, s, asCSV{service: "bookings", list: oldest, show: "list"})
}

// addRatio adds the time of a page of the large list compared with the small one, both relative to the plain read that was
// measured with them.
func (b *bench) addRatio(figure, show string, large, small timing) {
	times := func(t timing) string {
		return fmt.Sprintf("%s (plain read %s)", report.Millis(t.page), report.Millis(t.plain))
	}
	reads := func(t timing) float64 { return report.Ratio(float64(t.page), float64(t.plain)) }
	ratio := report.Ratio(reads(large), reads(small))
	b.table.Add(report.Row{
		Figure: figure, Value: report.Milliseconds(large.page), Ours: times(large), Baseline: fmt.Sprintf("of %d rows: %s", smallList, times(small)),
		Ratio: ratio, Aim: report.Aim{Text: "≤ 1.2 ×", Value: ratio, AtMost: 1.2}, Show: show,
	})
}

// csvRows is the maximum number of rows of a list as CSV.
const csvRows = 100_000

// resources are the other lists, with the body that creates a row and the other columns that differ in the copies.
var resources = map[string]struct {
	body func(customer string) string
	own  map[string]string
}{
	"leads": {func(string) string {
		return `{"first_name":"Lea","last_name":"Martin","email":"lea@example.com","source":"website","message":"A day on the water for ten."}`
	}, nil},
	"quotes": {func(customer string) string {
		return fmt.Sprintf(`{"customer_id":%q,"event_date":"2030-05-04","line_items":[%s]}`, customer, invoiceLine)
	}, map[string]string{"number": "'L-' || n"}},
	"invoices": {func(customer string) string { return invoice(customer, 1) }, nil},
}

// rareCustomer is the customer of one row in a hundred.
var rareCustomer = ids.FromUUID[ids.CustomerPrefix]([16]byte{0: 0xfc, 6: 0x70, 8: 0x80})

// resource compares pages of a list of the live mode, with BENCH_ROWS and with few rows, and reads it as CSV in between.
func (b *bench) resource(ctx context.Context, c *chain, name string) error {
	created, err := c.create(ctx, c.key, "/"+name, resources[name].body(c.customer))
	if err != nil {
		return err
	}
	_, text, _ := strings.Cut(created, "_")
	id, err := ids.Parse[ids.CustomerPrefix]("cu_" + text)
	if err != nil {
		return err
	}
	of, own := bulk.Template{Table: name, ID: id.UUID()}, maps.Clone(listed)
	delete(own, "number")
	maps.Copy(own, resources[name].own)
	own["customer_id"] = fmt.Sprintf("case when n %% 100 = 0 then '%s'::uuid else t.customer_id end", uuidText(rareCustomer.UUID()))
	if err := bulk.Copy(ctx, c.db, of, 1, smallList, own); err != nil {
		return err
	}
	if err := bulk.VacuumAndCheckpoint(ctx, c.db, name); err != nil {
		return err
	}
	pages := map[string]string{"first page": "?limit=20", "one customer's page": "?limit=20&customer_id=" + rareCustomer.String()}
	small, err := b.each(ctx, c, name, pages)
	if err != nil {
		return err
	}
	if err := bulk.Copy(ctx, c.db, of, smallList+1, csvRows, own); err != nil {
		return err
	}
	if err := bulk.VacuumAndCheckpoint(ctx, c.db, name); err != nil {
		return err
	}
	b.try(ctx, name, fmt.Sprintf("`GET /%s` as CSV", name), func() error {
		return b.csv(ctx, &c.shop, asCSV{service: "customers", list: name, show: name})
	})
	large := max(b.Rows, csvRows)
	if err := bulk.Grow(ctx, c.db, of, csvRows+1, large, own, b.say); err != nil {
		return err
	}
	big, err := b.each(ctx, c, name, pages)
	if err != nil {
		return err
	}
	for _, what := range slices.Sorted(maps.Keys(pages)) {
		b.addRatio(fmt.Sprintf("`GET /%s?limit=20`, %s of %d rows, p50", name, what, large), name, big[what], small[what])
	}
	return nil
}

// each returns the median time of each page of a list.
func (b *bench) each(ctx context.Context, c *chain, name string, pages map[string]string) (map[string]timing, error) {
	times := map[string]timing{}
	for what, query := range pages {
		t, err := b.median(ctx, &c.shop, "/api/v1/"+name+query)
		if err != nil {
			return nil, err
		}
		b.say("%s, %s: p50 %s", name, what, report.Millis(t.page))
		times[what] = t
	}
	return times, nil
}

// asCSV is a list of csvRows rows: its service, its path with a filter, and the name of its figure.
type asCSV struct{ service, list, show string }

// csv reads a list as CSV, one request at a time, and measures the memory that the first request uses.
func (b *bench) csv(ctx context.Context, s *shop, l asCSV) error {
	name, _, _ := strings.Cut(l.list, "?")
	pid, err := b.platform.PID(l.service)
	if err != nil {
		return err
	}
	if err := stack.ResetPeak(pid); err != nil {
		return err
	}
	before, _, err := stack.Resident(pid)
	if err != nil {
		return err
	}
	var rates []float64
	var peak int64
	for n := range rounds {
		begin := time.Now()
		if err := s.readCSV(ctx, "/api/v1/"+l.list); err != nil {
			return err
		}
		rates = append(rates, csvRows/time.Since(begin).Seconds())
		if n == 0 {
			if _, peak, err = stack.Resident(pid); err != nil {
				return err
			}
		}
		b.say("%s as CSV: %.0f rows/s", name, rates[n])
	}
	slices.Sort(rates)
	const mega = 1 << 20
	more := float64(peak-before) / mega
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("`GET /%s` as CSV, %d rows", name, csvRows), Value: report.Quantity{Value: rates[len(rates)/2], Unit: "rows/s"}, Show: l.show,
	})
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("`GET /%s` as CSV, %d rows: the service's memory", name, csvRows),
		Value:  report.Quantity{Value: more, Unit: "MiB"},
		Ours:   fmt.Sprintf("%.1f MiB more", more), Baseline: fmt.Sprintf("before: %.1f MiB", float64(before)/mega),
		Aim: report.Aim{Text: "< 64 MiB more", Value: more, AtMost: 64}, Show: l.show,
	})
	return nil
}

// readCSV reads a whole list as CSV and checks its number of rows.
func (s *shop) readCSV(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.live)
	req.Header.Set("Accept", "text/csv")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return fmt.Errorf("%s as CSV: %s: %s", path, res.Status, text)
	}
	lines, part := 0, make([]byte, 64<<10)
	for err == nil {
		var n int
		n, err = res.Body.Read(part)
		lines += bytes.Count(part[:n], []byte{'\n'})
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if lines != csvRows+1 {
		return fmt.Errorf("%s as CSV: %d lines, want %d", path, lines, csvRows+1)
	}
	return nil
}
