package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// The tenants of the figure. Every second one has a webhook endpoint for its bookings.
const (
	tenantCount   = 10_000
	fewTenants    = 10
	keysPerTenant = 5
	tenantsAim    = 1.3
)

// manyUUID returns the id of the n-th tenant, of its booking, and of other rows of it. manySQL does the same in SQL.
func manyUUID(n int) [16]byte {
	u := rowUUID(n)
	u[0] = 0xfb
	return u
}

const manySQL = `('fb000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`

// manyKey returns the n-th API key, from 0. Consecutive keys belong to the same tenant.
func manyKey(n int) string { return apikey.Sum(fmt.Sprintf("svc_test_%026d", n)) }

// tenants compares requests of many tenants with the same requests of few, on the same platform.
func (b *bench) tenants(ctx context.Context) error {
	s, err := b.openShop(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.admin.Close(context.WithoutCancel(ctx)) }()
	sink, err := load.Listen(ctx)
	if err != nil {
		return err
	}
	defer sink.Close()
	if err := b.storeMany(ctx, s, sink); err != nil {
		return fmt.Errorf("creating tenants: %w", err)
	}
	for _, one := range []keyed{
		{"`GET /bookings/{id}`", func(key, _ int) []byte {
			id := ids.FromUUID[bookingPrefix](manyUUID(key/keysPerTenant + 1)).String()
			return load.Request(http.MethodGet, "/api/v1/bookings/"+id, s.headers(manyKey(key), ""), "")
		}, http.StatusOK},
		{"`POST /bookings`, with deliveries", func(key, n int) []byte {
			headers := s.headers(manyKey(key), fmt.Sprintf("many-%d-%d", time.Now().UnixNano(), n))
			return load.Request(http.MethodPost, "/api/v1/bookings", headers, `{"event_date":"2040-05-04"}`)
		}, http.StatusCreated},
	} {
		if err := b.compareTenants(ctx, s, one); err != nil {
			return err
		}
	}
	return nil
}

// keyed is a figure: request returns the n-th request, with one of the keys.
type keyed struct {
	figure  string
	request func(key, n int) []byte
	status  int
}

// compareTenants alternates the request of all tenants and of few.
func (b *bench) compareTenants(ctx context.Context, s *shop, one keyed) error {
	of := func(tenants int) *served {
		return &served{name: fmt.Sprintf("%s of %d tenants", one.figure, tenants), target: load.Target{
			Addr: s.addr, Status: one.status,
			Nth: func(n int) []byte { // neighbors in time are different tenants
				return one.request(n%tenants*keysPerTenant+n/tenants%keysPerTenant, n)
			},
		}}
	}
	many, few := of(tenantCount), of(fewTenants)
	b.say("%s: one request with each key", one.figure)
	for many.next < tenantCount*keysPerTenant {
		if _, err := many.send(ctx, connections, warmUp); err != nil {
			return err
		}
	}
	if err := runRounds(b.serve(ctx, many), b.serve(ctx, few)); err != nil {
		return err
	}
	all, bare := perRequest(many.used.platform(), many.Requests), perRequest(few.used.platform(), few.Requests)
	ratio := report.Ratio(all.Value, bare.Value)
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("%s, %d tenants, %d keys, %d endpoints: CPU time of all processes", one.figure, tenantCount, tenantCount*keysPerTenant, tenantCount/2),
		Value:  all, Baseline: fmt.Sprintf("%d of these tenants: %s", fewTenants, bare), Ratio: ratio,
		Aim: report.Aim{Text: fmt.Sprintf("≤ %.1f ×", tenantsAim), Value: ratio, AtMost: tenantsAim}, Show: "tenants",
	})
	b.noteCosts(many)
	b.noteCosts(few)
	return nil
}

// storeMany stores the tenants with their keys and one booking each, and creates the endpoints through the API.
func (b *bench) storeMany(ctx context.Context, s *shop, sink *load.Sink) error {
	settings, err := b.platform.Settings("identity")
	if err != nil {
		return err
	}
	db, err := b.platform.Admin(ctx, settings["DATABASE_URL"])
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	if err := storeTenants(ctx, db, s.tenant); err != nil {
		return err
	}
	var created struct {
		ID ids.ID[bookingPrefix] `json:"id"`
	}
	if err := s.post(ctx, "/bookings", "bench-many", `{"event_date":"2040-05-03"}`, &created); err != nil {
		return err
	}
	copies := map[string]string{"tenant_id": manySQL, "id": manySQL}
	if err := bulk.Copy(ctx, s.admin, bulk.Template{Table: "bookings", ID: created.ID.UUID()}, 1, tenantCount, copies); err != nil {
		return err
	}
	if err := bulk.VacuumAndCheckpoint(ctx, s.admin, "bookings"); err != nil {
		return err
	}
	b.say("%d tenants; creating the endpoints of half of them", tenantCount)
	body := fmt.Sprintf(`{"url":"%s/many","event_types":["booking.created"]}`, sink.URL)
	endpoints := &served{target: load.Target{Addr: s.addr, Status: http.StatusCreated, Nth: func(n int) []byte {
		tenant := 2 * n % tenantCount
		return load.Request(http.MethodPost, "/api/v1/webhook-endpoints", s.headers(manyKey(tenant*keysPerTenant), fmt.Sprintf("many-%d", n)), body)
	}}}
	for endpoints.sent < tenantCount/2 {
		if _, err := endpoints.send(ctx, 1, warmUp); err != nil {
			return err
		}
	}
	return nil
}

// storeTenants stores copies of a tenant and of its key in test mode.
func storeTenants(ctx context.Context, db *pgx.Conn, template [16]byte) error {
	if _, err := db.Exec(ctx, `create temp table made (key integer, hash bytea)`); err != nil {
		return err
	}
	_, err := db.CopyFrom(ctx, pgx.Identifier{"made"}, []string{"key", "hash"}, pgx.CopyFromSlice(tenantCount*keysPerTenant, func(i int) ([]any, error) {
		hash := apikey.Hash(manyKey(i))
		return []any{i, hash[:]}, nil
	}))
	if err != nil {
		return err
	}
	const insertTenants = `insert into tenants
		select (jsonb_populate_record(t, jsonb_build_object('tenant_id', ` + manySQL + `, 'slug', 'many-' || n))).*
		from tenants t, generate_series(1, $2::int) n where t.tenant_id = $1`
	if _, err := db.Exec(ctx, insertTenants, template, tenantCount); err != nil {
		return err
	}
	const insertHeads = `insert into audit_heads (tenant_id, seq, hash) select ` + manySQL + `, 0, decode(repeat('00', 32), 'hex') from generate_series(1, $1::int) n`
	if _, err := db.Exec(ctx, insertHeads, tenantCount); err != nil {
		return err
	}
	const insertKeys = `insert into api_keys
		select (jsonb_populate_record(k, jsonb_build_object('tenant_id', ` + manySQL + `, 'id', gen_random_uuid(), 'hash', made.hash))).*
		from api_keys k, made cross join lateral (select 1 + made.key / $2::int n) of_tenant
		where k.id = (select id from api_keys where tenant_id = $1 and not livemode order by created_at limit 1)`
	if _, err := db.Exec(ctx, insertKeys, template, keysPerTenant); err != nil {
		return err
	}
	_, err = db.Exec(ctx, `analyze tenants, api_keys`)
	return err
}
