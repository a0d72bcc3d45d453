package api_test

import (
	"fmt"
	"sync"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

// TestResend checks that one event is delivered again, once for each Idempotency-Key, to an endpoint that need not subscribe to it.
func TestResend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx, live, foreign := w.as(tenant, caller.Test), w.as(tenant, caller.Live), w.ctx()
	endpoint := w.endpoint(ctx, "booking.created")
	event := w.ingest(ctx, "customer.created", 1)[0].ID.String()
	path, body := "/events/"+event+"/resend", fmt.Sprintf(`{"endpoint_id":%q}`, endpoint)
	first := w.do(ctx, "POST", path, body, "Idempotency-Key: k").is(202)
	if first.str("event_id") != event || first.str("endpoint_id") != endpoint || first.str("event_type") != "customer.created" || first.str("status") != "pending" {
		t.Errorf("got %s", first.Body)
	}
	again := w.do(ctx, "POST", path, body, "Idempotency-Key: k").is(202)
	if again.str("id") != first.str("id") || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v %s", again.Header, again.Body)
	}
	if n := w.Count(`select count(*) from queue where endpoint_id <> event_id`); n != 1 {
		t.Errorf("%d deliveries are queued", n)
	}
	w.do(ctx, "POST", path, body).is(202)
	if got := idsOf(w.do(ctx, "GET", "/webhook-endpoints/"+endpoint+"/deliveries", "").is(200).data()); len(got) != 2 || got[1] != first.str("id") {
		t.Errorf("deliveries %v", got)
	}

	w.do(live, "POST", path, body).is(403, "mode_mismatch")
	w.do(foreign, "POST", path, body).is(404, "event_not_found")
	for _, id := range []string{"x", "evt_x", ids.New[ids.EventPrefix]().String(), endpoint} {
		w.do(ctx, "POST", "/events/"+id+"/resend", body).is(404, "event_not_found")
	}
	sample := w.do(ctx, "POST", "/webhook-endpoints/"+endpoint+"/test", "").is(202).str("event_id")
	w.do(ctx, "POST", "/events/"+sample+"/resend", body).is(404, "event_not_found")
	for _, wrong := range []string{
		`{}`, `{"endpoint_id":null}`, `{"endpoint_id":"x"}`, `{"endpoint_id":"we_x"}`, fmt.Sprintf(`{"endpoint_id":%q}`, event),
		fmt.Sprintf(`{"endpoint_id":%q}`, w.endpoint(live)), fmt.Sprintf(`{"endpoint_id":%q}`, w.endpoint(foreign)),
	} {
		w.do(ctx, "POST", path, wrong).is(422, "invalid_request", "endpoint_id")
	}
	w.do(ctx, "PATCH", "/webhook-endpoints/"+endpoint, `{"status":"disabled"}`).is(200)
	w.do(ctx, "POST", path, body).is(422, "invalid_request", "endpoint_id")
}

// TestResendIsBounded checks that an endpoint with the maximum of pending deliveries accepts no other, even if requests arrive at once.
func TestResendIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	endpoint := w.endpoint(ctx, "booking.created")
	event := w.ingest(ctx, "customer.created", 1)[0].ID.String()
	c := caller.FromContext(ctx)
	w.Exec(`insert into queue (tenant_id, livemode, endpoint_id, due_at, delivery_id, event_id)
		select tenant_id, livemode, id, now(), uuid_v7(now()), gen_random_uuid() from endpoints, generate_series(1, 99998) where tenant_id = $1`, c.Tenant)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a := w.do(ctx, "POST", "/events/"+event+"/resend", fmt.Sprintf(`{"endpoint_id":%q}`, endpoint))
			if a.Status != 202 {
				a.is(422, "invalid_request", "endpoint_id")
			}
		})
	}
	all.Wait()
	if n := w.Count(`select count(*) from queue`); n != 100_000 {
		t.Errorf("%d deliveries are queued", n)
	}
}
