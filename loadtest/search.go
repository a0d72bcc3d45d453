package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// searches are the searches among BENCH_ROWS customers: the first letter of a word in half of them, a domain that all have, two
// common words, a rare word, a word of only the oldest tenth, and a word that no customer has.
var searches = []struct {
	what, q string
	aim     time.Duration // 0: no aim
}{
	{"one letter", "a", searchAim},
	{"a word of all", "example.com", searchAim},
	{"two common words", "a+gm", searchAim},
	{"a rare word", "name777777", searchAim},
	{"no match", "zzzz", searchAim},
	{"a word of the oldest tenth", "legacy", 0},
}

// searchAim is the maximum time of a search.
const searchAim = 50 * time.Millisecond

// search fills the live mode of the tenant with customers and searches among them.
func (b *bench) search(ctx context.Context) error {
	settings, err := b.platform.Settings("customers")
	if err != nil {
		return err
	}
	admin, err := b.platform.Admin(ctx, settings["DATABASE_URL"])
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }()
	env := b.platform.Env
	base, _, _ := strings.Cut(strings.TrimPrefix(env["BASE_URL"], "http://"), "/")
	s := &shop{addr: base, key: env["DEMO_TEST_KEY"], live: env["DEMO_LIVE_KEY"]}
	var created struct {
		ID string `json:"id"`
	}
	create := load.Request(http.MethodPost, "/api/v1/customers", s.headers(s.live, ""), `{"first_name":"Bench","email":"bench@example.com"}`)
	if err := s.call(ctx, create, http.StatusCreated, &created); err != nil {
		return err
	}
	if err := b.fillCustomers(ctx, admin); err != nil {
		return err
	}
	for _, search := range searches {
		get := load.Request(http.MethodGet, "/api/v1/customers?q="+search.q, s.headers(s.live, ""), "")
		target := load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
		if _, err := load.Closed(ctx, target, 1, warmUp); err != nil {
			return err
		}
		sample, err := load.Closed(ctx, target, 1, b.slice())
		if err != nil {
			return err
		}
		p50, p99 := sample.Percentile(50), sample.Percentile(99)
		b.say("q=%s: p50 %s, p99 %s", search.q, report.Millis(p50), report.Millis(p99))
		row := report.Row{
			Figure: fmt.Sprintf("`GET /customers?q=%s` of %d (%s), p50", search.q, b.Rows, search.what),
			Value:  report.Milliseconds(p50), Baseline: "p99 " + report.Millis(p99), Show: "search",
		}
		if search.aim > 0 {
			row.Aim = report.Aim{Text: "≤ " + report.Millis(search.aim), Value: float64(p50), AtMost: float64(search.aim)}
		}
		b.table.Add(row)
	}
	if err := b.underDeepSearches(ctx, s); err != nil || b.Rows < csvRows {
		return err
	}
	const oldest = "customers?created_before=2020-03-10T10:40:30Z" // the rows are a minute apart
	return b.csv(ctx, s, asCSV{service: "customers", list: oldest, show: "search"})
}

// deepClients is how many clients search at the same time for a word of the oldest tenth.
const deepClients = 32

// underDeepSearches measures a list while more clients than the service has connections send searches that must collect all
// their matches.
func (b *bench) underDeepSearches(ctx context.Context, s *shop) error {
	busy, end := context.WithCancel(ctx)
	var clients errgroup.Group
	for range deepClients {
		clients.Go(func() error { return s.searchOn(busy, "/api/v1/customers?q=legacy") })
	}
	get := load.Request(http.MethodGet, "/api/v1/customers?limit=1", s.headers(s.key, ""), "")
	target := load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
	_, err := load.Closed(ctx, target, 1, warmUp)
	var sample load.Sample
	if err == nil {
		sample, err = load.Closed(ctx, target, 1, b.slice())
	}
	end()
	if err = errors.Join(err, clients.Wait()); err != nil {
		return err
	}
	p50, p99 := sample.Percentile(50), sample.Percentile(99)
	b.say("list with %d clients of q=legacy: p50 %s, p99 %s", deepClients, report.Millis(p50), report.Millis(p99))
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("`GET /customers?limit=1` while %d clients send `q=legacy`, p50", deepClients),
		Value:  report.Milliseconds(p50), Baseline: "p99 " + report.Millis(p99), Show: "search",
		Aim: report.Aim{Text: "≤ " + report.Millis(searchAim), Value: float64(p50), AtMost: float64(searchAim)},
	})
	return nil
}

// searchOn repeats a search in live mode until ctx ends. If it is refused, it waits for the time in the response.
func (s *shop) searchOn(ctx context.Context, path string) error {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+s.live)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // ctx is done
		}
		_ = res.Body.Close()
		wait, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(wait) * time.Second):
		}
	}
	return nil
}

// fillCustomers copies the only customer of the live mode BENCH_ROWS times, each with six different words.
func (b *bench) fillCustomers(ctx context.Context, admin *pgx.Conn) error {
	const step = 250_000
	for from := 1; from <= b.Rows; from += step {
		to := min(from+step-1, b.Rows)
		for _, sql := range []string{
			`
			insert into customers (tenant_id, livemode, id, first_name, email, email_lower, version, created_at, updated_at)
			select tenant_id, livemode, ('fe000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'Name' || n, 'n' || n || '@example.com', 'n' || n || '@example.com', 1, at, at
			from customers c, generate_series($1::int, $2::int) n, lateral (select timestamptz '2020-01-01' + n * interval '1 minute' as at) t
			where livemode and first_name = 'Bench'`, `
			insert into customer_words (tenant_id, livemode, word, customer_id)
			select tenant_id, livemode, w, ('fe000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid
			from customers c, generate_series($1::int, $2::int) n, unnest(array['name' || n, 'n' || n || '@example.com', 'example.com', 'com',
				chr(97 + n % 2) || 'nna' || n % 1000, case when n <= ` + fmt.Sprint(b.Rows/10) + ` then 'legacy' else 'gmail' || n % 7 end]) w
			where livemode and first_name = 'Bench'`,
		} {
			if _, err := admin.Exec(ctx, sql, from, to); err != nil {
				return err
			}
		}
		b.say("%d of %d customers", to, b.Rows)
	}
	for _, sql := range []string{"vacuum (analyze) customers, customer_words", "checkpoint"} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
