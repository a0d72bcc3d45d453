package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto/platformapi"
)

// months records usage of two tenants from 30 September to 2 November 2026: 1 booking on each day.
func (p *platform) months(first, second string) {
	p.t.Helper()
	const days = `generate_series(date '2026-09-30', date '2026-11-02', interval '1 day') d`
	p.Exec(`insert into usage_collections (day, completed_at) select d::date, now() from ` + days)
	for _, id := range []string{first, second} {
		p.Exec(fmt.Sprintf(`insert into usage_days (tenant_id, livemode, day, requests_read, requests_write, requests_export, requests_stream, requests_rejected,
			requests_unauthenticated, bookings, events, deliveries, stored_rows, stored_bytes, payments, measured_at)
			select (select tenant_id from tenants where slug = '%s'), live, d::date, 1, 2, 3, 4, 5, 3, 6, 7, 8, extract(day from d), 100 * extract(day from d),
				case when extract(day from d) < 3 then jsonb_build_array(jsonb_build_object('currency', 'USD', 'charged', 11, 'refunded', 12, 'disputed', 13),
					jsonb_build_object('currency', 'EUR', 'charged', 1, 'refunded', 0, 'disputed', 0)) else '[]' end, d + interval '1 day'
			from `+days+` cross join (values (true), (false)) m(live)`, id))
	}
	// a day whose recording has begun
	p.Exec(`insert into usage_collections (day) values ('2026-11-03')`)
	p.Exec(fmt.Sprintf(`insert into usage_days select tenant_id, livemode, '2026-11-03', requests_read, requests_write, requests_export, requests_stream, requests_rejected,
		bookings, events, deliveries, stored_rows, stored_bytes, payments, measured_at from usage_days where day = '2026-11-02' and tenant_id = (select tenant_id from tenants where slug = '%s')`, first))
}

// The months of a tenant are the sums of their recorded days, and say whether they are complete.
func TestPlatformTenantUsageMonths(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	tenant := p.old("harbor")
	p.old("pier")
	at := "/tenants/" + tenant.ID + "/usage/months"
	if got := read[platformapi.UsageMonthList](p.call("GET", at+"?from=2026-01&to=2026-12", "").is(200)); len(got.Data) != 0 || !got.RecordedThrough.IsNull() {
		t.Errorf("at first %+v", got)
	}
	p.months("harbor", "pier")
	got := read[platformapi.UsageMonthList](p.call("GET", at+"?from=2026-10&to=2026-12&mode=live", "").is(200))
	if len(got.Data) != 2 || got.RecordedThrough.MustGet() != "2026-11-02" {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct {
		month    string
		days     int64
		complete bool
		stored   int64
	}{{"2026-10", 31, true, 31}, {"2026-11", 2, false, 2}} {
		m := got.Data[i]
		if m.Month != want.month || int64(m.Days) != want.days || m.Complete != want.complete || m.Mode != platformapi.ModeLive || m.TenantID != tenant.ID || m.StoredRows.MustGet() != want.stored ||
			m.StoredBytes.MustGet() != 100*want.stored || m.RequestsRead != want.days || m.RequestsWrite != 2*want.days || m.RequestsExport != 3*want.days || m.RequestsStream != 4*want.days ||
			m.RequestsRejected != 5*want.days || m.RequestsUnauthenticated != 3*want.days || m.Bookings != 6*want.days || m.Events != 7*want.days || m.Deliveries != 8*want.days ||
			!slices.Equal(m.Payments, []platformapi.PaymentVolume{{Currency: "EUR", Charged: 2}, {Currency: "USD", Charged: 22, Refunded: 24, Disputed: 26}}) {
			t.Errorf("%+v", m)
		}
	}
	if both := read[platformapi.UsageMonthList](p.call("GET", at+"?from=2026-09&to=2026-09", "").is(200)).Data; len(both) != 2 || both[0].Mode != platformapi.ModeTest || both[1].Days != 1 || !both[1].Complete {
		t.Errorf("September %+v", both)
	}
	sheet := p.call("GET", at+"?from=2026-10&to=2026-11&mode=live", "", "Accept", "text/csv").is(200).Body.String()
	if lines := strings.Split(strings.TrimSpace(sheet), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "usage_month,"+tenant.ID+",2026-10,live,31,true,31,62,") {
		t.Errorf("CSV %s", sheet)
	}
	for query, field := range map[string]string{
		"": "from", "?from=2026-01": "to", "?from=2026-13&to=2026-12": "from", "?from=2026-02&to=2026-01": "to", "?from=2026-01&to=2028-01": "to", "?from=2026-1&to=2026-02": "from",
		"?from=2026-01-01&to=2026-02": "from", "?from=2026-01&to=2026-02&mode=both": "mode",
	} {
		p.call("GET", at+query, "").is(422, "invalid_request", field)
	}
	p.call("GET", at+"?from=2026-01&to=2027-12", "").is(200) // 24 months
	p.call("GET", "/tenants/tn_00000000000000000000000000/usage/months?from=2026-01&to=2026-01", "").is(404, "tenant_not_found")
}

// The months of all tenants are listed by page, and as CSV.
func TestPlatformUsageOfAMonth(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	first, second := p.old("harbor").ID, p.old("pier").ID
	p.call("GET", "/usage/months?month=2026-11", "").is(404, "usage_not_recorded")
	p.months("harbor", "pier")
	var rows []string
	for cursor := ""; ; {
		got := read[platformapi.UsageMonthPage](p.call("GET", "/usage/months?month=2026-11&limit=3"+cursor, "").is(200))
		for _, m := range got.Data {
			rows = append(rows, fmt.Sprintf("%s %s %d %v", m.TenantID, m.Mode, m.Bookings, m.Complete))
		}
		if !got.HasMore {
			break
		}
		cursor = "&cursor=" + got.NextCursor.MustGet()
	}
	want := []string{first + " test 12 false", first + " live 12 false", second + " test 12 false", second + " live 12 false"}
	if !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	sheet := p.call("GET", "/usage/months?month=2026-11", "", "Accept", "text/csv").is(200).Body.String()
	if strings.Count(sheet, "\n") != 5 {
		t.Errorf("CSV %s", sheet)
	}
	p.call("GET", "/usage/months?month=2026-12", "").is(404, "usage_not_recorded")
	p.call("GET", "/usage/months?month=2026-08", "").is(404, "usage_not_recorded")
	p.call("GET", "/usage/months", "").is(422, "invalid_request", "month")
	p.call("GET", "/usage/months?month=November", "").is(422, "invalid_request", "month")
	p.call("GET", "/usage/months?month=2026-11&cursor=x", "").is(400, "invalid_cursor")
	p.call("GET", "/usage/months?month=2026-11&limit=2", "", "Accept", "text/csv").is(422, "invalid_request", "limit")
	p.key = p.newKey("read:tenants")
	p.call("GET", "/usage/months?month=2026-11", "").is(403, "insufficient_scope")
}
