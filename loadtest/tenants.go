package main

import (
	"fmt"
	"net/http"
	"time"

	"holdfast.dev/libs/apikey"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// The tenants of the figure, from 1. Every second one has a webhook endpoint for its bookings.
const (
	tenantCount   = 10_000
	fewTenants    = 10
	keysPerTenant = 5
	tenantPrefix  = "fb000000-0000-7000-8000-" // of a tenant, of its booking, and of other rows of it
)

// manyKey returns the n-th API key, from 0. Consecutive keys belong to the same tenant.
func manyKey(n int) string { return apikey.Sum(fmt.Sprintf("svc_test_%026d", n)) }

// tenants compares requests of many tenants with the same requests of few, on the same platform.
func (f *figure) tenants() {
	s := f.open()
	sink := f.listen(nil)
	defer sink.Close()
	f.storeTenants(s)
	f.say("creating the endpoints of half of %d tenants", tenantCount)
	body := fmt.Sprintf(`{"url":"%s/many","event_types":["booking.created"]}`, sink.URL)
	endpoints := &side{name: "endpoints", pace: load.Pace{Conns: 1}}
	endpoints.target = load.Target{Addr: s.test.addr, Nth: func(n int) []byte {
		return tenant{key: manyKey(2 * n % tenantCount * keysPerTenant)}.request(
			http.MethodPost, "/webhook-endpoints", fmt.Sprintf("many-%d", n), body,
		)
	}}
	for endpoints.next < tenantCount/2 {
		f.send(endpoints, warmUp)
	}
	f.compareTenants("`GET /bookings/{id}`", s.test.addr, func(t tenant, tenant, _ int) []byte {
		return t.request(http.MethodGet, bookingPath(tenantPrefix, tenant), "", "")
	})
	f.compareTenants("`POST /bookings`, with deliveries", s.test.addr, func(t tenant, _, n int) []byte {
		return t.request(
			http.MethodPost, "/bookings", fmt.Sprintf("many-%d-%d", time.Now().UnixNano(), n), `{"event_date":"2040-05-04"}`,
		)
	})
}

// compareTenants compares the n-th requests of all tenants with those of few.
func (f *figure) compareTenants(title, addr string, request func(t tenant, number, n int) []byte) {
	of := func(count int) *side {
		nth := func(n int) []byte {
			number := n % count // neighbors in time are different tenants
			return request(tenant{key: manyKey(number*keysPerTenant + n/count%keysPerTenant)}, number+1, n)
		}
		return &side{name: fmt.Sprintf("%s of %d tenants", title, count), target: load.Target{Addr: addr, Nth: nth}}
	}
	many, few := of(tenantCount), of(fewTenants)
	for many.next < tenantCount*keysPerTenant { // one request with each key
		f.send(many, warmUp)
	}
	f.alternate(many, few)
	all, bare := perRequest(many.used.platform(), many.Requests), perRequest(few.used.platform(), few.Requests)
	f.add(report.Row{
		Figure: fmt.Sprintf(
			"%s, %d tenants, %d keys, %d endpoints: CPU time of all processes", title, tenantCount, tenantCount*keysPerTenant,
			tenantCount/2,
		),
		Value: all, Baseline: fmt.Sprintf("%d of these tenants: %s", fewTenants, bare),
		Ratio:  report.Ratio(all.Value, bare.Value),
		Target: report.Target{MostRatio: 1.3},
	})
	f.noteCPU(many)
	f.noteCPU(few)
}

// storeTenants stores copies of the demo tenant, of one of its keys in test mode, and of a booking.
func (f *figure) storeTenants(s *shop) {
	keys, hashes := make([]int, tenantCount*keysPerTenant), make([][]byte, tenantCount*keysPerTenant)
	for i := range keys {
		hash := apikey.Hash(manyKey(i))
		keys[i], hashes[i] = i, hash[:]
	}
	id := rowSQL(tenantPrefix, "n")
	identity, demo := f.database("identity"), fmt.Sprintf("tenant_id = '%x'", s.id)
	own := map[string]string{"tenant_id": id, "slug": "'many-' || n"}
	f.check(bulk.Copy(f.ctx, identity, "tenants", demo, 1, tenantCount, own))
	f.execute("identity", `insert into audit_heads (tenant_id, seq, hash)
		select `+id+`, 0, decode(repeat('00', 32), 'hex') from generate_series(1, $1::int) n`, tenantCount)
	f.execute("identity", `insert into api_keys
		select (jsonb_populate_record(
			k, jsonb_build_object('tenant_id', `+id+`, 'id', gen_random_uuid(), 'hash', created.hash))).*
		from api_keys k, unnest($2::int[], $3::bytea[]) created(key, hash)
			cross join lateral (select 1 + created.key / $4::int n) of_tenant
		where k.id = (select id from api_keys where tenant_id = $1 and not livemode order by created_at limit 1)`,
		s.id, keys, hashes, keysPerTenant)
	f.execute("identity", `analyze api_keys`)
	template := f.template(s.test, "/bookings", `{"event_date":"2040-05-03"}`)
	f.copies("bookings", "bookings", template, 1, tenantCount, map[string]string{"tenant_id": id, "id": id})
}
