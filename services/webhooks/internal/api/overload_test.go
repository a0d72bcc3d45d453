package api_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
)

func TestOverload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	path := "/webhook-endpoints/" + w.endpoint(ctx)
	event := w.ingest(ctx, "customer.created", 1)[0]
	delivery := path + "/deliveries/" + fmt.Sprint(w.do(ctx, "GET", path+"/deliveries", "").is(200).data()[0]["id"])
	w.Overloaded(ctx, w.serve, []apitest.Request{
		{Method: "GET", Path: "/webhook-endpoints"},
		{Method: "POST", Path: "/webhook-endpoints", Body: `{"url":"https://example.com/hook","event_types":["*"]}`},
		{Method: "GET", Path: path},
		{Method: "PATCH", Path: path, Body: `{"description":"x"}`},
		{Method: "DELETE", Path: path},
		{Method: "POST", Path: path + "/rotate-secret"},
		{Method: "POST", Path: path + "/test"},
		{Method: "GET", Path: path + "/deliveries"},
		{Method: "POST", Path: delivery + "/retry"},
		{Method: "GET", Path: "/events"},
		{Method: "GET", Path: "/events/stream", Headers: []header{header("Last-Event-ID: " + event.ID.String())}},
		{Method: "GET", Path: "/events/" + event.ID.String()},
		{Method: "POST", Path: "/events/" + event.ID.String() + "/resend", Body: fmt.Sprintf(`{"endpoint_id":%q}`, path[len("/webhook-endpoints/"):])},
		{Method: "POST", Path: "/events/replay", Body: fmt.Sprintf(`{"endpoint_id":%q,"from":%q}`, path[len("/webhook-endpoints/"):], time.Now().Add(-time.Hour).Format(time.RFC3339))},
	}, "listEventTypes")
}

// A request that waits for a locked row gets the same response.
func TestLockedEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	path := "/webhook-endpoints/" + w.endpoint(ctx)
	w.engine = w.serve(w.Impatient(50 * time.Millisecond))
	release := w.Hold(`select from endpoints for update`)
	a := w.do(ctx, "PATCH", path, `{"description":"x"}`).is(503, "unavailable")
	if a.Header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	release()
	w.do(ctx, "PATCH", path, `{"description":"x"}`).is(200)
}
