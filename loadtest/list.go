package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// smallList is the number of rows of the small list, with which the large one is compared.
const smallList = 10_000

// list holds the measurements of the small list. The cursor of the deep page was made when the list had half of its
// rows: every later row is newer, so the same page becomes deeper.
type list struct {
	template            [16]byte // the booking that its rows copy
	deep                string
	firstTime, deepTime time.Duration
}

// rowUUID returns the id of the n-th row of the lists. rowSQL does the same with pgbench's :r.
func rowUUID(n int) (u [16]byte) {
	u[0], u[6], u[8] = 0xfe, 0x70, 0x80
	binary.BigEndian.PutUint32(u[12:], uint32(n)) //nolint:gosec // a few millions
	return u
}

const rowSQL = `('fe000000-0000-7000-8000-' || lpad(to_hex((:r)::bigint), 12, '0'))::uuid`

func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// smallList fills the live mode of the tenant with copies of a booking, and measures when it is selected.
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
	if err := s.copies(ctx, id.UUID(), 1, smallList/2, listed); err != nil {
		return nil, err
	}
	var page struct {
		Next string `json:"next_cursor"`
	}
	err = s.call(ctx, load.Request(http.MethodGet, firstPage, s.headers(s.live, ""), ""), http.StatusOK, &page)
	if err != nil {
		return nil, err
	}
	l := &list{template: id.UUID(), deep: firstPage + "&cursor=" + url.QueryEscape(page.Next)}
	if err := s.copies(ctx, id.UUID(), smallList/2+1, smallList, listed); err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil || !b.wants("list") {
		return l, err
	}
	if l.firstTime, l.deepTime, err = b.pages(ctx, s, l); err != nil {
		return nil, err
	}
	return l, nil
}

const firstPage = "/api/v1/bookings?limit=25"

// listed is what differs in the n-th row of the list: each row is newer than the one before.
var listed = map[string]string{
	"livemode": "true", "id": "('fe000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid", "number": "'L-' || n",
	"created_at": "timestamptz '2020-01-01' + n * interval '100 ms'", "updated_at": "timestamptz '2020-01-01' + n * interval '100 ms'",
}

// copies inserts copies n = from…to of a booking. own has the SQL of the columns that differ. Triggers are off, because
// the rows that a copy refers to were checked with the booking itself.
func (s *shop) copies(ctx context.Context, template [16]byte, from, to int, own map[string]string) error {
	rows, err := s.admin.Query(ctx, `select attname from pg_attribute
		where attrelid = 'bookings'::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`)
	if err != nil {
		return err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	values := make([]string, len(columns))
	for i, name := range columns {
		columns[i] = pgx.Identifier{name}.Sanitize()
		if values[i] = own[name]; values[i] == "" {
			values[i] = "b." + columns[i]
		}
	}
	tx, err := s.admin.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "set local session_replication_role = replica"); err != nil {
		return err
	}
	insert := fmt.Sprintf(`insert into bookings (%s) select %s from bookings b, generate_series($2::int, $3::int) n
		where b.id = $1 and not b.livemode`, strings.Join(columns, ", "), strings.Join(values, ", "))
	if _, err := tx.Exec(ctx, insert, template, from, to); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// settle updates the planner's statistics and the visibility map, and finishes the writes of the loading, so that they
// do not slow down the next measurement.
func (s *shop) settle(ctx context.Context) error {
	for _, sql := range []string{"vacuum (analyze) bookings", "checkpoint"} {
		if _, err := s.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// pages returns the median time of the first page and of the deep one, one request at a time.
func (b *bench) pages(ctx context.Context, s *shop, l *list) (first, deep time.Duration, err error) {
	for _, p := range []struct {
		path string
		p50  *time.Duration
	}{{firstPage, &first}, {l.deep, &deep}} {
		get := load.Request(http.MethodGet, p.path, s.headers(s.live, ""), "")
		target := load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
		if _, err := load.Closed(ctx, target, 1, warmUp); err != nil {
			return 0, 0, err
		}
		sample, err := load.Closed(ctx, target, 1, b.slice())
		if err != nil {
			return 0, 0, err
		}
		*p.p50 = sample.Percentile(50)
	}
	b.say("a page of 25: first p50 %s, deep p50 %s", report.Millis(first), report.Millis(deep))
	return first, deep, nil
}

// largeList grows the list to BENCH_ROWS and compares the same pages.
func (b *bench) largeList(ctx context.Context, s *shop, l *list) error {
	if err := s.withoutIndexes(ctx, func() error { return b.grow(ctx, s, l) }); err != nil {
		return err
	}
	b.say("indexes are built")
	if err := s.settle(ctx); err != nil {
		return err
	}
	first, deep, err := b.pages(ctx, s, l)
	if err != nil {
		return err
	}
	b.addPage("first page", first, l.firstTime)
	b.addPage(fmt.Sprintf("page after %d rows", b.Rows-smallList/2+25), deep, l.deepTime)
	return nil
}

// grow inserts the additional rows of the large list.
func (b *bench) grow(ctx context.Context, s *shop, l *list) error {
	const step = 250_000
	for from := smallList + 1; from <= b.Rows; from += step {
		to := min(from+step-1, b.Rows)
		if err := s.copies(ctx, l.template, from, to, listed); err != nil {
			return err
		}
		b.say("%d of %d rows", to, b.Rows)
	}
	return nil
}

// withoutIndexes drops the indexes that no constraint needs, calls load, and builds them again, which is much faster.
func (s *shop) withoutIndexes(ctx context.Context, load func() error) error {
	rows, err := s.admin.Query(ctx, `select indexname, indexdef from pg_indexes where tablename = 'bookings'
		and indexname not in (select conname from pg_constraint where conrelid = 'bookings'::regclass)`)
	if err != nil {
		return err
	}
	type index struct{ Name, Definition string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[index])
	if err != nil {
		return err
	}
	for _, i := range all {
		if _, err := s.admin.Exec(ctx, "drop index "+pgx.Identifier{i.Name}.Sanitize()); err != nil {
			return err
		}
	}
	if err := load(); err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, "set maintenance_work_mem = '512MB'"); err != nil {
		return err
	}
	for _, i := range all {
		if _, err := s.admin.Exec(ctx, i.Definition); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) addPage(what string, large, small time.Duration) {
	ratio := report.Ratio(float64(large), float64(small))
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("`GET /bookings?limit=25`, %s of %d rows, p50", what, b.Rows),
		Ours:   report.Millis(large), Beside: fmt.Sprintf("of %d rows: %s", smallList, report.Millis(small)),
		Ratio: ratio, Aim: report.Aim{Text: "≤ 1.2 ×", Value: ratio, AtMost: 1.2}, Show: "list",
	})
}
