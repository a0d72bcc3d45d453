package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/ids"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// endpoints is a set of webhook endpoints with one sink: fan endpoints per tenant.
type endpoints struct {
	name    string
	tenants []ids.Tenant
	fan     int
	sink    *load.Sink
	outbox  *pgx.Conn // in the customers database, whose relay publishes the events
}

const (
	budgetRate = 1000   // deliveries per second
	backlog    = 20_000 // deliveries waiting at the same time
)

// webhooks measures deliveries to one endpoint, and to fifty of each of twenty tenants.
func (f *figure) webhooks() {
	f.deliveries(&endpoints{name: "1 endpoint", fan: 1}, 1)
	f.deliveries(&endpoints{name: "1,000 endpoints", fan: 50}, 20)
}

func (f *figure) deliveries(e *endpoints, tenants int) {
	e.outbox, e.sink = f.database("customers"), f.listen(nil)
	defer e.sink.Close()
	for n := range tenants {
		slug := fmt.Sprintf("endpoints-%d-%d", e.fan, n)
		t := f.newTenant(slug)
		e.tenants = append(e.tenants, f.me(t).Tenant)
		for i := range e.fan {
			f.addEndpoint(t, fmt.Sprintf("%s/%s/%d", e.sink.URL, slug, i), "customer.created")
		}
	}
	f.burst(e, backlog/10) // fills caches and opens connections
	for _, rate := range []int{budgetRate / 5, budgetRate} {
		steady := &side{name: fmt.Sprintf("webhooks, %s at %d deliveries/s", e.name, rate)}
		steady.used = f.account(func() { steady.Sample = f.steady(e, rate) })
		f.addTail(steady.name+": change → first attempt", steady.Sample)
		if rate == budgetRate {
			f.addCPU(steady.name, steady, 0.4)
		}
	}
	f.add(report.Row{
		Figure: fmt.Sprintf(
			"webhooks, %s: %d waiting deliveries, from the commit of their events to the last delivery", e.name, backlog,
		),
		Value: report.PerSecond(f.burst(e, backlog).Rate()), Target: report.Target{Least: budgetRate},
	})
}

// addTail adds the median and the 99th percentile, which must be below a second.
func (f *figure) addTail(title string, s load.Sample) {
	f.add(report.Row{
		Figure: title + " p50 / p99", Value: report.Milliseconds(s.Percentile(99)), Ours: p(s, 50) + " / " + p(s, 99),
		Target: report.Target{Most: 1000},
	})
}

// listen starts a sink. began returns the time from which a delivery is measured; nil: that of its event.
func (f *figure) listen(began func(body []byte) (time.Time, bool)) *load.Sink {
	sink, err := load.Listen(f.ctx, began)
	f.check(err)
	return sink
}

// addEndpoint creates an endpoint with high limits for one type of event.
func (f *figure) addEndpoint(t tenant, url, event string) {
	f.create(
		t, "/webhook-endpoints",
		fmt.Sprintf(`{"url":%q,"event_types":[%q],"max_in_flight":100,"max_per_second":5000}`, url, event),
	)
}

// await waits until that many deliveries have arrived since a time.
func (f *figure) await(sink *load.Sink, since time.Time, deliveries int) load.Sample {
	sample, err := sink.Await(f.ctx, since, deliveries, 2*time.Minute)
	f.check(err)
	return sample
}

// burst commits the events of that many deliveries in one transaction, and waits for all of them.
func (f *figure) burst(e *endpoints, deliveries int) load.Sample {
	f.check(e.publish(f.ctx, 0, deliveries/e.fan))
	return f.await(e.sink, time.Now(), deliveries)
}

// steady commits events so that rate deliveries are due per second, every 10 ms or one event at a time.
func (f *figure) steady(e *endpoints, rate int) load.Sample {
	perSecond := rate / e.fan
	ticks := min(100, perSecond) // per second
	each := perSecond / ticks
	start := time.Now()
	_, err := load.Each(f.ctx, load.Pace{Conns: 1, Rate: ticks}, time.Duration(f.Seconds)*time.Second,
		func(ctx context.Context, _, n int) error { return e.publish(ctx, n*each, each) })
	f.check(err)
	return f.await(e.sink, start, ticks*f.Seconds*each*e.fan)
}

// publish commits n events of the tenants in turn in one transaction, into the outbox of customers: its relay, Kafka,
// and the webhooks service process them.
func (e *endpoints) publish(ctx context.Context, first, n int) error {
	rows := make([][]any, n)
	for i := range rows {
		tenant := e.tenants[(first+i)%len(e.tenants)]
		id, object := ids.New[ids.EventPrefix](), ids.New[ids.CustomerPrefix]().String()
		message, err := proto.Marshal(&eventsv1.Event{
			Id: id.String(), Type: "customer.created", TenantId: tenant.String(), ObjectId: object, ResourceVersion: 1,
			CreatedAt: timestamppb.New(id.Time()), RequestId: "req_bench", PreviousAttributes: []byte(`{}`),
			Object: fmt.Appendf(nil, `{"company":null,"created_at":"2026-01-01T00:00:00.123456Z",`+
				`"email":"bench@example.com","first_name":"Bench","id":%q,"last_name":"Mark",`+
				`"metadata":{"order":"17"},"mode":"test","name":"Bench Mark","object":"customer","phone":null,`+
				`"updated_at":"2026-01-01T00:00:00.123456Z","version":1}`, object),
		})
		if err != nil {
			return err
		}
		rows[i] = []any{
			tenant.UUID(), false, id.UUID(), "customers", object, int32(crc32.ChecksumIEEE([]byte(object)) % 8), message,
		}
	}
	columns := []string{"tenant_id", "livemode", "id", "topic", "aggregate_id", "hash", "message"}
	_, err := e.outbox.CopyFrom(ctx, pgx.Identifier{"outbox"}, columns, pgx.CopyFromRows(rows))
	return err
}
