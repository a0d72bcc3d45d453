package api_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// fixed is a service with the same usage for each tenant.
type fixed struct{ usage domain.Usage }

func (f fixed) Measure(_ context.Context, _ time.Time, tenants []ids.Tenant) (list []domain.Usage, _ error) {
	for _, tenant := range tenants {
		for _, live := range []bool{true, false} {
			u := f.usage
			u.TenantID, u.Livemode = tenant, live
			list = append(list, u)
		}
	}
	return list, nil
}

func (f fixed) Current(ctx context.Context, day time.Time) ([]domain.Usage, error) {
	f.usage.StoredRows, f.usage.StoredBytes = nil, nil
	return f.Measure(ctx, day, []ids.Tenant{caller.FromContext(ctx).Tenant})
}

func (fixed) Work(context.Context) ([]domain.Waiting, error) {
	at := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	return []domain.Waiting{{Kind: "delivery", Livemode: true, Count: 10_000, More: true, OldestAt: &at}}, nil
}

// gone is a service that does not respond.
type gone struct{ fixed }

func (gone) Current(context.Context, time.Time) ([]domain.Usage, error) {
	return nil, errors.New("away")
}

func (gone) Work(context.Context) ([]domain.Waiting, error) { return nil, errors.New("away") }

// recorded records the usage of n days before today, for all tenants of the platform.
func (p *platform) recorded(n int) (first, last string) {
	p.t.Helper()
	p.metering.Sources["one"] = fixed{domain.Usage{RequestsRead: 1, RequestsWrite: 2, RequestsExport: 3, RequestsStream: 4, RequestsRejected: 5, RequestsUnauthenticated: 3, Bookings: 6, StoredRows: new(int64), StoredBytes: new(int64)}}
	p.metering.Sources["two"] = fixed{domain.Usage{Events: 7, Deliveries: 8, StoredRows: new(int64(9)), StoredBytes: new(int64(10)), Payments: []domain.Volume{{Currency: "USD", Charged: 11, Refunded: 12, Disputed: 13}}}}
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -n)
	err := p.DB.Worker.SystemTx(p.t.Context(), func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into usage_collections (day) values ($1)`, day)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	later := *p.app
	later.Now = func() time.Time { return time.Now().UTC().Truncate(24 * time.Hour).Add(domain.UsageSettles) }
	p.metering.App = &later
	if err := p.metering.RecordUsage(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	return day.Format(time.DateOnly), day.AddDate(0, 0, n-1).Format(time.DateOnly)
}

// old creates a tenant that existed before the recorded days.
func (p *platform) old(slug string) platformapi.Tenant {
	p.t.Helper()
	body := strings.Replace(newTenant, "harbor", slug, 1)
	tenant := read[platformapi.Tenant](p.call("POST", "/tenants", body).is(201))
	p.owned(`update tenants set created_at = created_at - interval '100 days'`)
	return tenant
}

// The usage of a tenant is returned by day and mode within a bounded period, as JSON and as CSV with the same columns.
func TestPlatformTenantUsage(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	tenant, other := p.old("harbor"), p.old("pier")
	at := "/tenants/" + tenant.ID + "/usage"
	if got := read[platformapi.UsageList](p.call("GET", at+"?from=2026-01-01&to=2026-01-02", "").is(200)); len(got.Data) != 0 || !got.RecordedThrough.IsNull() {
		t.Errorf("at first %+v", got)
	}
	from, to := p.recorded(3)
	today := time.Now().UTC().Format(time.DateOnly)
	all := read[platformapi.UsageList](p.call("GET", at+"?from="+from+"&to="+today, "").is(200))
	if len(all.Data) != 6 || all.RecordedThrough.MustGet() != to {
		t.Fatalf("%+v", all)
	}
	for i, u := range all.Data { // audit records are in live mode
		mode := []platformapi.Mode{platformapi.ModeTest, platformapi.ModeLive}[i%2]
		if u.Mode != mode || u.TenantID != tenant.ID || u.RequestsRead != 1 || u.RequestsWrite != 2 || u.RequestsExport != 3 || u.RequestsStream != 4 || u.RequestsRejected != 5 || u.RequestsUnauthenticated != 3 ||
			u.Bookings != 6 || u.Events != 7 || u.Deliveries != 8 || (u.StoredRows.MustGet() > 9) != (mode == platformapi.ModeLive) || (u.StoredBytes.MustGet() > 10) != (mode == platformapi.ModeLive) || !slices.Equal(u.Payments, []platformapi.PaymentVolume{{Currency: "USD", Charged: 11, Refunded: 12, Disputed: 13}}) {
			t.Errorf("%d: %+v", i, u)
		}
	}
	if all.Data[0].Day != from || all.Data[5].Day != to {
		t.Errorf("days %s to %s", all.Data[0].Day, all.Data[5].Day)
	}
	if live := read[platformapi.UsageList](p.call("GET", at+"?mode=live&from="+to+"&to="+to, "").is(200)); len(live.Data) != 1 || live.Data[0].Mode != platformapi.ModeLive {
		t.Errorf("live %+v", live)
	}
	if got := read[platformapi.UsageList](p.call("GET", "/tenants/"+other.ID+"/usage?from="+from+"&to="+to, "").is(200)); len(got.Data) != 6 || got.Data[0].TenantID != other.ID {
		t.Errorf("another tenant %+v", got)
	}
	sheet := p.call("GET", at+"?from="+from+"&to="+to, "", "Accept", "text/csv").is(200)
	equalRows(t, sheet.Body.String(), all.Data)
	for query, field := range map[string]string{
		"": "from", "?from=2026-01-01": "to", "?from=soon&to=2026-01-01": "from", "?from=2026-01-02&to=2026-01-01": "to",
		"?from=2026-01-01&to=2026-04-03": "to", "?from=2026-01-01&to=2026-01-01&mode=both": "mode", "?from=2026-02-30&to=2026-03-01": "from",
	} {
		p.call("GET", at+query, "").is(422, "invalid_request", field)
	}
	p.call("GET", at+"?from=2026-01-01&to=2026-04-02", "").is(200) // 92 days
	p.call("GET", "/tenants/tn_00000000000000000000000000/usage?from=2026-01-01&to=2026-01-01", "").is(404, "tenant_not_found")
}

// equalRows fails the test unless the CSV has the rows, with the properties as columns.
func equalRows(t *testing.T, sheet string, rows []platformapi.Usage) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(sheet)).ReadAll()
	if err != nil || len(lines) != len(rows)+1 {
		t.Fatalf("%d lines, %v:\n%s", len(lines), err, sheet)
	}
	if want := "object,tenant_id,day,mode,requests_read,requests_write,requests_export,requests_stream,requests_rejected,bookings,events,deliveries,stored_rows,stored_bytes,payments,measured_at,requests_unauthenticated"; strings.Join(lines[0], ",") != want {
		t.Errorf("columns %v", lines[0])
	}
	for i, row := range rows {
		raw, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil {
			t.Fatal(err)
		}
		for n, name := range lines[0] {
			want := fmt.Sprint(fields[name])
			if name == "payments" {
				text, _ := json.Marshal(row.Payments)
				want = string(text)
			}
			if lines[i+1][n] != want {
				t.Errorf("row %d, %s: %s, want %s", i, name, lines[i+1][n], want)
			}
		}
	}
}

// The usage of a day is returned by page for all tenants. A day that is not complete is an error in both formats.
func TestPlatformUsageOfADay(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	tenants := []string{p.old("harbor").ID, p.old("pier").ID, p.old("dock").ID}
	day, _ := p.recorded(1)
	today := time.Now().UTC().Format(time.DateOnly)
	var all []platformapi.Usage
	for cursor, pages := "", 0; ; pages++ {
		got := read[platformapi.UsagePage](p.call("GET", "/usage?limit=4&day="+day+cursor, "").is(200))
		all = append(all, got.Data...)
		if !got.HasMore {
			if pages != 1 || !got.NextCursor.IsNull() {
				t.Errorf("%d pages before the last one, %+v", pages, got.NextCursor)
			}
			break
		}
		cursor = "&cursor=" + got.NextCursor.MustGet()
	}
	slices.Sort(tenants)
	for i, u := range all {
		if u.TenantID != tenants[i/2] || u.Mode != []platformapi.Mode{platformapi.ModeTest, platformapi.ModeLive}[i%2] {
			t.Errorf("%d: %s %s", i, u.TenantID, u.Mode)
		}
	}
	if len(all) != 6 {
		t.Fatalf("%d rows", len(all))
	}
	equalRows(t, p.call("GET", "/usage?day="+day, "", "Accept", "text/csv").is(200).Body.String(), all)
	p.call("GET", "/usage?day="+today, "").is(404, "usage_not_recorded")
	p.call("GET", "/usage?day="+today, "", "Accept", "text/csv").is(404, "usage_not_recorded")
	p.call("GET", "/usage?day=2001-01-01", "").is(404, "usage_not_recorded")
	p.call("GET", "/usage", "").is(422, "invalid_request", "day")
	p.call("GET", "/usage?day=1.1.2026", "").is(422, "invalid_request", "day")
	p.call("GET", "/usage?cursor=x&day="+day, "").is(400, "invalid_cursor")
	p.call("GET", "/usage?limit=2&day="+day, "", "Accept", "text/csv").is(422, "invalid_request", "limit")
}

// What waits is returned by service. A service that does not respond is named instead of its work.
func TestPlatformBackgroundWork(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	tenant := p.old("harbor")
	p.call("POST", "/tenants/"+tenant.ID+"/suspend", `{"reason":"unpaid"}`).is(200)
	p.metering.Sources = map[string]app.UsageSource{"identity": p.metering.Sources["identity"], "two": fixed{}, "one": gone{}, "none": gone{}}
	got := read[platformapi.BackgroundWork](p.call("GET", "/tenants/"+tenant.ID+"/background-work", "").is(200))
	if !slices.Equal(got.Unavailable, []string{"none", "one"}) || len(got.Data) != 2 {
		t.Fatalf("%+v", got)
	}
	if own := got.Data[0]; own.Service != "identity" || own.Kind != "event" || own.Count != 1 || own.More || own.OldestAt.IsNull() {
		t.Errorf("own events %+v", own)
	}
	if other := got.Data[1]; other.Service != "two" || other.Kind != "delivery" || other.Mode != platformapi.ModeLive || other.Count != 10_000 || !other.More {
		t.Errorf("deliveries %+v", other)
	}
	p.call("GET", "/tenants/tn_00000000000000000000000000/background-work", "").is(404, "tenant_not_found")
}

// owned runs a statement as the owner of the database.
func (p *platform) owned(sql string) {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.DB.OwnerURL)
	if err == nil {
		_, err = conn.Exec(p.t.Context(), sql)
		err = errors.Join(err, conn.Close(p.t.Context()))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
