package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"
)

// console sends an internal call of the operators' console.
func (w *world) console(ctx context.Context, path string) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, "console", "GET", "/internal/v1/"+path, "")}
}

// attempted sets the status and failed attempts of the deliveries of an event type, like the dispatcher.
func (w *world) attempted(eventType, status string, attempts int) {
	w.T.Helper()
	log := "[]"
	if attempts > 0 {
		log = `[{"number":1,"at":"2026-11-02T08:00:00Z","status_code":500,"duration_ms":7,"error":"the response status is not 2xx","response_body":"no"}`
		for n := range attempts - 1 {
			log += fmt.Sprintf(`,{"number":%d,"at":"2026-11-02T08:01:00Z","status_code":null,"duration_ms":7,"error":"no response in time","response_body":null}`, n+2)
		}
		log += "]"
	}
	w.Exec(`update deliveries set status = $1, attempts = $2::jsonb where event_type = $3`, status, log, eventType)
}

// A delivery is shown with the bytes and the headers of each attempt to operators who may read its event.
func TestSentDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := w.as(tenant, caller.Test)
	endpoint := w.endpoint(ctx)
	event := w.ingest(ctx, "customer.updated", 1)[0]
	w.attempted("customer.updated", "pending", 2)
	delivery := w.do(ctx, "GET", "/webhook-endpoints/"+endpoint+"/deliveries", "").is(200).data()[0]
	id, _ := delivery["id"].(string)
	path := "endpoints/" + endpoint + "/deliveries/" + id
	got := apitest.Decode[internalapi.SentDelivery](w.console(ctx, path).is(200).Response)
	if whole := w.do(ctx, "GET", "/events/"+event.ID.String(), "").is(200); got.Body != string(whole.Body) {
		t.Errorf("the body is %s, the event %s", got.Body, whole.Body)
	}
	if got.Delivery.Id != id || len(got.Delivery.Attempts) != 2 || len(got.Requests) != 2 {
		t.Fatalf("got %+v", got)
	}
	want := []internalapi.SentHeader{
		{Name: "Content-Type", Value: "application/json"},
		{Name: "Service-Delivery-Attempt", Value: "2"},
		{Name: "Service-Delivery-Id", Value: id},
		{Name: "Service-Event-Id", Value: event.ID.String()},
		{Name: "Service-Event-Type", Value: "customer.updated"},
		{Name: "Service-Signature", Value: "t=1793606460,v1=…"},
		{Name: "User-Agent", Value: "Holdfast-Webhooks/1"},
		{Name: "webhook-id", Value: event.ID.String()},
		{Name: "webhook-signature", Value: "v1,…"},
		{Name: "webhook-timestamp", Value: "1793606460"},
	}
	if second := got.Requests[1]; second.Number != 2 || !slices.Equal(second.Headers, want) {
		t.Errorf("got %+v, want %+v", second, want)
	}
	for name, tc := range map[string]struct {
		ctx    context.Context
		path   string
		status int
		code   string
	}{
		"no scope of webhooks":       {w.as(tenant, caller.Test, "read:customers"), path, 403, "insufficient_scope"},
		"no scope of its type":       {w.as(tenant, caller.Test, "read:webhooks", "read:bookings"), path, 403, "insufficient_scope"},
		"just those scopes":          {w.as(tenant, caller.Test, "read:webhooks", "read:customers"), path, 200, ""},
		"the other mode":             {w.as(tenant, caller.Live), path, 404, "delivery_not_found"},
		"another tenant":             {w.ctx(), path, 404, "delivery_not_found"},
		"another endpoint":           {ctx, "endpoints/" + w.endpoint(ctx) + "/deliveries/" + id, 404, "delivery_not_found"},
		"an unknown delivery":        {ctx, "endpoints/" + endpoint + "/deliveries/whd_01h455vb4pex5vsknk084sn02q", 404, "delivery_not_found"},
		"an id that is none":         {ctx, "endpoints/" + endpoint + "/deliveries/x", 404, "delivery_not_found"},
		"an endpoint's that is none": {ctx, "endpoints/x/deliveries/" + id, 404, "webhook_endpoint_not_found"},
	} {
		if a := w.console(tc.ctx, tc.path); a.Status != tc.status || tc.code != "" && a.code() != tc.code {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if a := w.Send(ctx, w.engine, "customers", "GET", "/internal/v1/"+path, ""); a.Status != 401 {
		t.Errorf("customers can call it: %d", a.Status)
	}
	w.Exec(`delete from events where id = $1`, event.ID)
	if late := apitest.Decode[internalapi.SentDelivery](w.console(ctx, path).is(200).Response); late.Body != "" || late.Sample || len(late.Requests) != 2 {
		t.Errorf("without the event: %+v", late)
	}
	sample := w.do(ctx, "POST", "/webhook-endpoints/"+endpoint+"/test", `{"type":"lead.created"}`).is(202).str("id")
	if got := apitest.Decode[internalapi.SentDelivery](w.console(ctx, "endpoints/"+endpoint+"/deliveries/"+sample).is(200).Response); got.Body == "" || !got.Sample {
		t.Errorf("a sample: %+v", got)
	}
}

// code returns the code of an error.
func (a response) code() string {
	a.T.Helper()
	return apitest.Decode[struct{ Error struct{ Code string } }](a.Response).Error.Code
}

// The failing deliveries are the newest of all endpoints that failed or have failed so far, of types that the caller may read.
func TestFailingDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := w.as(tenant, caller.Test)
	failing := func(ctx context.Context) (types []string) { // sorted
		t.Helper()
		list := apitest.Decode[internalapi.FailingDeliveries](w.console(ctx, "failing-deliveries").is(200).Response).Data
		if !slices.IsSortedFunc(list, func(a, b api.Delivery) int { return strings.Compare(b.Id, a.Id) }) {
			t.Error("the newest do not come first")
		}
		for _, d := range list {
			types = append(types, d.EventType)
		}
		slices.Sort(types)
		return types
	}
	w.endpoint(ctx)
	w.endpoint(ctx, "customer.updated", "lead.created")
	for _, kind := range []string{"customer.updated", "booking.created", "lead.created", "quote.created", "invoice.paid"} {
		w.ingest(ctx, kind, 1)
	}
	if got := failing(ctx); len(got) != 0 {
		t.Errorf("nothing has been attempted, but %v fail", got)
	}
	w.attempted("customer.updated", "failed", 20)
	w.attempted("booking.created", "succeeded", 2)
	w.attempted("lead.created", "pending", 1)
	w.attempted("quote.created", "failed", 0) // the endpoint was disabled
	want := []string{"customer.updated", "customer.updated", "lead.created", "lead.created", "quote.created"}
	if got := failing(ctx); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := failing(w.as(tenant, caller.Test, "read:webhooks", "read:leads")); !slices.Equal(got, []string{"lead.created", "lead.created"}) {
		t.Errorf("a reader of leads sees %v", got)
	}
	for name, other := range map[string]context.Context{"live": w.as(tenant, caller.Live), "another tenant": w.ctx()} {
		if got := failing(other); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	w.console(w.as(tenant, caller.Test, "read:leads"), "failing-deliveries").is(403, "insufficient_scope")
	if a := w.Send(ctx, w.engine, "customers", "GET", "/internal/v1/failing-deliveries", ""); a.Status != 401 {
		t.Errorf("customers can call it: %d", a.Status)
	}
	w.ingest(ctx, "invoice.paid", 30)
	w.attempted("invoice.paid", "failed", 1)
	if got := failing(ctx); !slices.Equal(slices.Compact(got), []string{"invoice.paid"}) || len(w.console(ctx, "failing-deliveries").data()) != 10 {
		t.Errorf("got %v", got)
	}
}
