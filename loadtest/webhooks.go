package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/ids"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// endpointSet is a set of webhook endpoints with one sink: fan endpoints per tenant.
type endpointSet struct {
	name    string
	tenants []ids.Tenant
	fan     int
	sink    *load.Sink
	outbox  *pgx.Conn // in the customers database, whose relay publishes the events
}

const (
	steadyRate  = 200    // deliveries per second
	highRate    = 1000   // the budget
	backlog     = 20_000 // deliveries waiting at the same time
	maxEndpoint = 50     // per tenant
)

// webhooks measures deliveries to one endpoint and to a thousand.
func (b *bench) webhooks(ctx context.Context) error {
	for _, h := range []endpointSet{{name: "1 endpoint", fan: 1}, {name: "1,000 endpoints", fan: maxEndpoint}} {
		count := 1
		if h.fan > 1 {
			count = 1000 / maxEndpoint
		}
		if err := b.gather(ctx, &h, count, 100); err != nil {
			return err
		}
		err := b.deliveries(ctx, &h)
		h.sink.Close()
		_ = h.outbox.Close(context.WithoutCancel(ctx))
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	return nil
}

func (b *bench) deliveries(ctx context.Context, h *endpointSet) error {
	if _, err := b.burst(ctx, h, backlog/10); err != nil { // fills caches and opens connections
		return err
	}
	for _, rate := range []int{steadyRate, highRate} {
		var used usage
		var sample load.Sample
		err := b.account(ctx, &used, func() (err error) {
			sample, err = b.steady(ctx, h, rate)
			return err
		})
		if err != nil {
			return err
		}
		p50, p99 := sample.Percentile(50), sample.Percentile(99)
		b.say("%s, %d/s: commit to first attempt p50 %s, p99 %s", h.name, rate, report.Millis(p50), report.Millis(p99))
		b.table.Add(report.Row{
			Figure: fmt.Sprintf("webhooks, %s at %d deliveries/s: change → first attempt p50 / p99", h.name, rate),
			Value:  report.Milliseconds(p99),
			Ours:   report.Millis(p50) + " / " + report.Millis(p99), Show: "webhooks",
			Aim: report.Aim{Text: "p99 < 1000 ms", Value: millis(p99), AtMost: 1000},
		})
		if rate == highRate {
			all := perRequest(used.platform(), sample.Requests)
			b.table.Add(report.Row{
				Figure: fmt.Sprintf("webhooks, %s at %d deliveries/s: CPU time of all processes per delivery", h.name, rate),
				Value:  all, Aim: report.AtMost(all, 0.4), Show: "webhooks",
			})
		}
		b.table.Note("webhooks, %s at %d/s, CPU µs per delivery: %s", h.name, rate, used.per(float64(sample.Requests)))
	}
	sample, err := b.burst(ctx, h, backlog)
	if err != nil {
		return err
	}
	b.say("%s: %.0f deliveries/s", h.name, sample.Rate())
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("webhooks, %s: %d waiting deliveries, from the commit of their events to the last delivery", h.name, backlog),
		Value:  report.PerSecond(sample.Rate()), Show: "webhooks",
		Aim: report.Aim{Text: "≥ 1000/s", Value: sample.Rate(), Least: 1000},
	})
	return nil
}

// gather creates tenants with fan endpoints each.
func (b *bench) gather(ctx context.Context, h *endpointSet, tenants, inFlight int) error {
	var err error
	if h.sink, err = load.Listen(ctx); err != nil {
		return err
	}
	settings, err := b.platform.Settings("customers")
	if err != nil {
		return err
	}
	if h.outbox, err = b.platform.Admin(ctx, settings["DATABASE_URL"]); err != nil {
		return err
	}
	base, _, _ := strings.Cut(strings.TrimPrefix(b.platform.Env["BASE_URL"], "http://"), "/")
	for n := range tenants {
		slug := fmt.Sprintf("endpoints-%d-%d-%d", h.fan, inFlight, n)
		key, err := b.tenant(ctx, slug)
		if err != nil {
			return err
		}
		s := &shop{addr: base, key: key}
		var me struct {
			Tenant ids.Tenant `json:"tenant_id"`
		}
		if err := s.get(ctx, "/me", &me); err != nil {
			return err
		}
		h.tenants = append(h.tenants, me.Tenant)
		for i := range h.fan {
			body := fmt.Sprintf(`{"url":"%s/%s/%d","event_types":["customer.created"],"max_in_flight":%d,"max_per_second":5000}`, h.sink.URL, slug, i, inFlight)
			if err := s.post(ctx, "/webhook-endpoints", fmt.Sprintf("%s-%d", slug, i), body, &struct{}{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tenant creates a tenant with the command-line tool and returns one of its test keys.
func (b *bench) tenant(ctx context.Context, slug string) (string, error) {
	for _, args := range [][]string{
		{"tenant", "create", "--slug", slug, "--name", slug, "--timezone", "UTC", "--currency", "USD", "--json"},
		{"key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json"},
	} {
		var created struct {
			Secret string `json:"secret"`
		}
		if err := b.identity(ctx, &created, args...); err != nil {
			return "", err
		}
		if created.Secret != "" {
			return created.Secret, nil
		}
	}
	return "", fmt.Errorf("%w: no key was created", errResult)
}

// identity runs identity's command-line tool and decodes the JSON in its output.
func (b *bench) identity(ctx context.Context, out any, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.platform.Dir, "bin", "identity"), args...)
	cmd.Dir = b.platform.Dir
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return fmt.Errorf("identity %s: %w", strings.Join(args[:2], " "), err)
	}
	return nil
}

// publish commits n events of the tenants in turn in one transaction, into the outbox of customers: its relay, Kafka, and the
// webhooks service process them.
func (h *endpointSet) publish(ctx context.Context, first, n int) error {
	rows := make([][]any, n)
	for i := range rows {
		tenant := h.tenants[(first+i)%len(h.tenants)]
		id, object := ids.New[ids.EventPrefix](), ids.New[ids.CustomerPrefix]().String()
		message, err := proto.Marshal(&eventsv1.Event{
			Id: id.String(), Type: "customer.created", TenantId: tenant.String(), ObjectId: object, ResourceVersion: 1,
			CreatedAt: timestamppb.New(id.Time()), RequestId: "req_bench", PreviousAttributes: []byte(`{}`),
			Object: fmt.Appendf(nil, `{"company":null,"created_at":"2026-01-01T00:00:00.123456Z","email":"bench@example.com","first_name":"Bench","id":%q,`+
				`"last_name":"Mark","metadata":{"order":"17"},"mode":"test","name":"Bench Mark","object":"customer","phone":null,"updated_at":"2026-01-01T00:00:00.123456Z","version":1}`, object),
		})
		if err != nil {
			return err
		}
		rows[i] = []any{tenant.UUID(), false, id.UUID(), "customers", object, int32(crc32.ChecksumIEEE([]byte(object)) % 8), message}
	}
	_, err := h.outbox.CopyFrom(ctx, pgx.Identifier{"outbox"}, []string{"tenant_id", "livemode", "id", "topic", "aggregate_id", "hash", "message"}, pgx.CopyFromRows(rows))
	return err
}

// burst commits the events of that many deliveries in one transaction, and waits for all of them.
func (b *bench) burst(ctx context.Context, h *endpointSet, deliveries int) (load.Sample, error) {
	if err := h.publish(ctx, 0, deliveries/h.fan); err != nil {
		return load.Sample{}, err
	}
	return h.sink.Await(ctx, time.Now(), deliveries, 2*time.Minute)
}

// steady commits events so that rate deliveries are due per second, every 10 ms or one event at a time.
func (b *bench) steady(ctx context.Context, h *endpointSet, rate int) (load.Sample, error) {
	perSecond := rate / h.fan
	ticks := min(100, perSecond) // per second
	each := perSecond / ticks
	total := ticks * b.Seconds
	start := time.Now()
	for n := range total {
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(ticks))))
		if err := h.publish(ctx, n*each, each); err != nil {
			return load.Sample{}, err
		}
	}
	return h.sink.Await(ctx, start, total*each*h.fan, time.Minute)
}

// finishedPerRow is how many finished deliveries are stored for each row of the large list: ten million in total.
const finishedPerRow = 10

// claims compares the time of a claim with an empty log and with millions of finished deliveries.
func (b *bench) claims(ctx context.Context) error {
	h := endpointSet{name: "claims", fan: 1}
	if err := b.gather(ctx, &h, 20, 10); err != nil {
		return err
	}
	defer h.sink.Close()
	defer func() { _ = h.outbox.Close(context.WithoutCancel(ctx)) }()
	settings, err := b.platform.Settings("webhooks")
	if err != nil {
		return err
	}
	admin, err := b.platform.Admin(ctx, settings["DATABASE_URL"])
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }()
	if _, err := b.burst(ctx, &h, 5000); err != nil {
		return err
	}
	empty, err := b.claimTime(ctx, &h, settings["METRICS_ADDR"])
	if err != nil {
		return err
	}
	rows := b.Rows * finishedPerRow
	if err := b.finish(ctx, admin, h.tenants[0], rows); err != nil {
		return err
	}
	full, err := b.claimTime(ctx, &h, settings["METRICS_ADDR"])
	if err != nil {
		return err
	}
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("webhooks: a claim with %d finished deliveries stored, mean", rows), Value: report.Milliseconds(full),
		Baseline: "with none: " + report.Millis(empty), Ratio: report.Ratio(float64(full), float64(empty)), Show: "claims",
		Aim: report.Aim{Text: "≤ 1.2 ×", Value: report.Ratio(float64(full), float64(empty)), AtMost: 1.2},
	})
	return nil
}

// claimTime returns the median, over several backlogs, of a claim's mean time.
func (b *bench) claimTime(ctx context.Context, h *endpointSet, metrics string) (time.Duration, error) {
	var means []time.Duration
	for range 5 {
		sum, count, err := claimed(ctx, metrics)
		if err != nil {
			return 0, err
		}
		if _, err := b.burst(ctx, h, 4000); err != nil {
			return 0, err
		}
		moreSum, moreCount, err := claimed(ctx, metrics)
		if err != nil {
			return 0, err
		}
		means = append(means, time.Duration(report.Ratio(moreSum-sum, moreCount-count)*float64(time.Second)))
		b.say("%.0f claims, mean %s", moreCount-count, report.Millis(means[len(means)-1]))
	}
	slices.Sort(means)
	return means[len(means)/2], nil
}

// claimed reads the service's own metrics.
func claimed(ctx context.Context, addr string) (sum, count float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	return scanMetric(res.Body, "webhook_claim_seconds")
}

// finish stores finished deliveries, and builds the indexes again afterwards.
func (b *bench) finish(ctx context.Context, admin *pgx.Conn, tenant ids.Tenant, rows int) error {
	b.say("storing %d finished deliveries", rows)
	var indexes []string
	found, err := admin.Query(ctx, `select indexdef from pg_indexes where tablename = 'deliveries' and indexname <> 'deliveries_pkey'`)
	if err != nil {
		return err
	}
	if indexes, err = pgx.CollectRows(found, pgx.RowTo[string]); err != nil {
		return err
	}
	statements := []string{
		`set maintenance_work_mem = '512MB'`,
		`drop index deliveries_status, deliveries_type, deliveries_updated, deliveries_event`,
		fmt.Sprintf(`insert into deliveries (tenant_id, livemode, endpoint_id, id, event_id, event_type, status, attempts, updated_at)
			select '%[1]x', false, (select id from endpoints where tenant_id = '%[1]x' limit 1), uuid_v7(at), uuid_v7(at), 'customer.created', 'succeeded',
				'[{"number":1,"at":"2026-01-01T00:00:00Z","status_code":200,"duration_ms":3,"error":null,"response_body":"ok"}]', at
			from generate_series(1, %[2]d) n, lateral (select now() - interval '6 days' * n / %[2]d) x(at)`, tenant.UUID(), rows),
	}
	for _, sql := range append(append(statements, indexes...), `vacuum (analyze) deliveries`, `checkpoint`) {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.60s: %w", sql, err)
		}
	}
	b.say("stored")
	return nil
}
