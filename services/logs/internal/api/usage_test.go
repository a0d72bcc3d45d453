package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/proto"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/logs/internal/domain"
)

// measure sends the call that measures the caller's tenant on a day.
func (w *world) measure(ctx context.Context, peer, day string) apitest.Response {
	w.T.Helper()
	body := fmt.Sprintf(`{"day":%q,"tenants":[%q]}`, day, caller.FromContext(ctx).Tenant)
	return w.Send(ctx, w.engine, peer, http.MethodPost, "/internal/v1/usage", body)
}

// A day has the counts of its classes when the consumer has stored all messages. Then it is sealed.
func TestUsageOfRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	c := caller.FromContext(ctx)
	yesterday := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	add := func(batch byte, requests int64) {
		var list []domain.RequestCount
		for i, class := range []string{"read", "write", "export", "stream", "rejected", "invalid", "of a later version"} {
			list = append(list, domain.RequestCount{
				Batch: [16]byte{batch}, TenantID: c.Tenant, Livemode: c.Live(), Day: yesterday, Class: class, Requests: requests * int64(i+1),
			})
		}
		if err := w.intake.Store(t.Context(), nil, list); err != nil {
			t.Fatal(err)
		}
	}
	add(1, 10)
	date := yesterday.Format(time.DateOnly)
	for i, behind := range []bool{true, false, false} {
		w.behind = behind
		got := w.measure(ctx, "identity", date)
		var page internalapi.UsagePage
		if err := json.Unmarshal(got.Body, &page); err != nil || got.Status != 200 || page.Settled == behind || len(page.Data) != map[bool]int{false: 2}[behind] {
			t.Fatalf("behind %v: %d %s %v", behind, got.Status, got.Body, err)
		}
		for _, m := range page.Data {
			want := internalapi.TenantUsage{TenantID: c.Tenant.String(), Mode: m.Mode, StoredRows: m.StoredRows, StoredBytes: m.StoredBytes}
			if m.Mode == string(c.Mode) {
				want.RequestsRead, want.RequestsWrite, want.RequestsExport, want.RequestsStream, want.RequestsRejected = 10, 20, 30, 40, 50+60
				want.RequestsUnauthenticated = 60
			}
			if fmt.Sprint(m) != fmt.Sprint(want) {
				t.Errorf("%+v, want %+v", m, want)
			}
		}
		if i == 1 {
			add(2, 1000) // after the day was measured: it belongs to today
		}
	}
}

// Measuring the running day does not seal it: counts that arrive afterwards still belong to it, and the day is recorded with them.
func TestUsageOfTheRunningDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	c := caller.FromContext(ctx)
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1) // so that it can be recorded, too
	date := day.Format(time.DateOnly)
	w.behind = true
	read := func(raw []byte, to any) {
		t.Helper()
		if err := json.Unmarshal(raw, to); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		err := w.intake.Store(t.Context(), nil, []domain.RequestCount{{Batch: [16]byte{byte(i + 1)}, TenantID: c.Tenant, Livemode: c.Live(), Day: day, Class: "read", Requests: 10}})
		if err != nil {
			t.Fatal(err)
		}
		got := w.Send(ctx, w.engine, "identity", http.MethodGet, "/internal/v1/usage/current?day="+date, "")
		var current internalapi.CurrentUsage
		if read(got.Body, &current); got.Status != 200 || len(current.Data) != 2 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		for _, m := range current.Data {
			want := internalapi.TenantUsage{TenantID: c.Tenant.String(), Mode: m.Mode}
			if m.Mode == string(c.Mode) {
				want.RequestsRead = int64(10 * (i + 1))
			}
			if fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", want) {
				t.Errorf("%+v, want %+v", m, want)
			}
		}
	}
	w.behind = false
	var page internalapi.UsagePage
	read(w.measure(ctx, "identity", date).Body, &page)
	sum := int64(0)
	for _, m := range page.Data {
		sum += m.RequestsRead
	}
	if sum != 30 {
		t.Errorf("recorded %+v, want 30 requests", page.Data)
	}
}

// Only identity can make the calls, with a date and tenants.
func TestUsageCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	if got := w.measure(ctx, "gateway", "2026-01-01"); got.Status != 401 {
		t.Errorf("the gateway: %d %s", got.Status, got.Body)
	}
	if got := w.measure(ctx, "identity", "soon"); got.Status != 422 {
		t.Errorf("not a day: %d %s", got.Status, got.Body)
	}
	if got := w.Send(ctx, w.engine, "identity", http.MethodPost, "/internal/v1/usage", `{"day":"2026-01-01","tenants":["x"]}`); got.Status != 422 {
		t.Errorf("not a tenant: %d %s", got.Status, got.Body)
	}
	if got := w.Send(ctx, w.engine, "identity", http.MethodGet, "/internal/v1/background-work", ""); got.Status != 200 || string(got.Body) != `{"data":[]}` {
		t.Errorf("work: %d %s", got.Status, got.Body)
	}
	if got := w.Send(ctx, w.engine, "gateway", http.MethodGet, "/internal/v1/usage/current?day=2026-01-01", ""); got.Status != 401 {
		t.Errorf("the gateway: %d %s", got.Status, got.Body)
	}
	for _, query := range []string{"", "?day=soon", "?day=2026-02-30"} {
		if got := w.Send(ctx, w.engine, "identity", http.MethodGet, "/internal/v1/usage/current"+query, ""); got.Status != 422 {
			t.Errorf("%q: %d %s", query, got.Status, got.Body)
		}
	}
	if n := w.RequiredByPeers(ctx, w.engine, proto.InternalUsage); n != 3 {
		t.Errorf("%d requests without a required field", n)
	}
}
