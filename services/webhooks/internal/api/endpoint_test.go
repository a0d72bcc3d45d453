package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto"
	publicapi "holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/domain"
)

func TestEndpointsOfAnOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	w.do(ctx, "POST", "/webhook-endpoints", `{"url":"https://example.com/hook","event_types":["booking.created","*"]}`).is(422, "invalid_request", "event_types")
	created := w.do(ctx, "POST", "/webhook-endpoints",
		`{"url":"https://example.com/hook","event_types":["booking.created","customer.created"],"description":"Main","max_in_flight":3,"max_per_second":7}`).is(201)
	id := created.str("id")
	if secret := created.str("secret"); !strings.HasPrefix(secret, domain.SecretPrefix) || created.Header.Get("Location") != "/api/v1/webhook-endpoints/"+id {
		t.Errorf("secret %q, location %s", secret, created.Header.Get("Location"))
	}
	if cache := created.Header.Get("X-Internal-Idem-Cache"); cache != "no" {
		t.Error("a response with a secret may be cached")
	}
	got := w.do(ctx, "GET", "/webhook-endpoints/"+id, "").is(200)
	if bytes.Contains(got.Body, []byte("whsec_")) || got.str("status") != "enabled" || got.Header.Get("ETag") != `"1"` {
		t.Errorf("%s", got.Body)
	}
	patched := w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"description":null,"max_in_flight":5,"event_types":["*"]}`, `If-Match: "1"`).is(200)
	if patched.Header.Get("ETag") != `"2"` || patched.str("description") != "" || bytes.Contains(patched.Body, []byte("whsec_")) {
		t.Errorf("%s", patched.Body)
	}
	if again := w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"max_in_flight":5,"status":"enabled"}`).is(200); again.Header.Get("ETag") != `"2"` {
		t.Error("a change of nothing visible raised the version")
	}
	w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"max_in_flight":6}`, `If-Match: "1"`).is(412, "version_mismatch")
	off := w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"status":"disabled"}`).is(200)
	if off.str("disabled_reason") != "requested" {
		t.Errorf("%s", off.Body)
	}
	w.do(ctx, "POST", "/webhook-endpoints/"+id+"/test", `{}`).is(422, "invalid_request", "endpoint_id")
	w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"status":"enabled"}`).is(200)
	w.endpoint(ctx)
	if list := w.do(ctx, "GET", "/webhook-endpoints?limit=1", "").is(200); len(list.data()) != 1 || list.str("next_cursor") == "" {
		t.Errorf("%s", list.Body)
	}
	if none := w.do(ctx, "GET", "/webhook-endpoints?status=disabled", "").is(200).data(); len(none) != 0 {
		t.Errorf("%v", none)
	}
	w.do(ctx, "DELETE", "/webhook-endpoints/"+id, "", `If-Match: "1"`).is(412)
	w.do(ctx, "DELETE", "/webhook-endpoints/"+id, "").is(204)
	w.do(ctx, "DELETE", "/webhook-endpoints/"+id, "").is(404, "webhook_endpoint_not_found")
}

// A writable field is returned as it was written, in the response and in the next read.
func TestEachFieldIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	const fields = `"url":"https://b.test","event_types":["lead.created","invoice.paid"],"description":"D","max_in_flight":3,"max_per_second":7,"headers":{}`
	at, all := "/webhook-endpoints/"+w.endpoint(ctx), "{"+fields+`,"status":"disabled"}`
	apitest.Written[publicapi.WebhookEndpointUpdate](t, all, w.do(ctx, "PATCH", at, all).is(200).Body)
	apitest.Written[publicapi.WebhookEndpointUpdate](t, all, w.do(ctx, "GET", at, "").is(200).Body)
	created := w.do(ctx, "POST", "/webhook-endpoints", "{"+fields+"}").is(201)
	apitest.Written[publicapi.WebhookEndpointCreate](t, "{"+fields+"}", created.Body)
	at = "/webhook-endpoints/" + created.str("id")
	apitest.Written[publicapi.WebhookEndpointCreate](t, "{"+fields+"}", w.do(ctx, "GET", at, "").is(200).Body)
}

// The platform can set another limit for a tenant, which arrives with the caller.
func TestCapOfATenantsEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	c := caller.FromContext(ctx)
	c.Caps = map[string]int{"webhook_endpoints": 2, "units": 1}
	own := caller.With(ctx, c)
	const body = `{"url":"https://example.com/hook","event_types":["booking.created"]}`
	for range 2 {
		w.do(own, "POST", "/webhook-endpoints", body).is(201)
	}
	if a := w.do(own, "POST", "/webhook-endpoints", body).is(422, "limit_reached", "url"); !strings.Contains(string(a.Body), "At most 2 webhook endpoints") {
		t.Errorf("%s", a.Body)
	}
	w.do(ctx, "POST", "/webhook-endpoints", body).is(201)
}

// Of concurrent requests at the limit, only one creates an endpoint. A deletion allows another one, and each mode has its own
// limit.
func TestCapOfEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	const body = `{"url":"https://example.com/hook","event_types":["booking.created"]}`
	var last string
	for range domain.EndpointCap.Most - 1 {
		last = w.do(ctx, "POST", "/webhook-endpoints", body).is(201).str("id")
	}
	responses := make([]response, 4)
	var field sync.WaitGroup
	for i := range responses {
		field.Go(func() { responses[i] = w.do(ctx, "POST", "/webhook-endpoints", body) })
	}
	field.Wait()
	created := 0
	for _, a := range responses {
		if a.Status == 201 {
			created++
			continue
		}
		a.is(422, "limit_reached", "url")
	}
	if created != 1 {
		t.Errorf("%d endpoints were created where one was allowed", created)
	}
	w.do(ctx, "DELETE", "/webhook-endpoints/"+last, "").is(204)
	w.do(ctx, "POST", "/webhook-endpoints", body).is(201)
	w.do(ctx, "POST", "/webhook-endpoints", body).is(422, "limit_reached", "url")
	w.do(pg.OtherMode(ctx), "POST", "/webhook-endpoints", body).is(201)
}

func TestBoundsOfAnEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	long := "https://example.com/" + strings.Repeat("a", 2048-20)
	for body, field := range map[string]string{
		`{}`:                       "url",
		`{"url":"https://a.test"}`: "event_types",
		`{"url":"https://private.test","event_types":["*"]}`:                                                        "url",
		`{"url":"","event_types":["*"]}`:                                                                            "url",
		`{"url":"` + long + `x","event_types":["*"]}`:                                                               "url",
		`{"url":"https://a.test","event_types":[]}`:                                                                 "event_types",
		`{"url":"https://a.test","event_types":"*"}`:                                                                "event_types",
		`{"url":"https://a.test","event_types":["booking.exploded"]}`:                                               "event_types.0",
		`{"url":"https://a.test","event_types":["booking.created","booking.created"]}`:                              "event_types",
		`{"url":"https://a.test","event_types":["*"],"max_in_flight":0}`:                                            "max_in_flight",
		`{"url":"https://a.test","event_types":["*"],"max_in_flight":101}`:                                          "max_in_flight",
		`{"url":"https://a.test","event_types":["*"],"max_per_second":5001}`:                                        "max_per_second",
		`{"url":"https://a.test","event_types":["*"],"description":"` + strings.Repeat("a", 5001) + `"}`:            "description",
		`{"url":"https://a.test","event_types":["*"],"max_in_flight":10.0}`:                                         "max_in_flight",
		`{"url":"https://private.test","event_types":["*","customer.created"]}`:                                     "url",
		`{"url":"https://a.test","event_types":["customer.created","customer.updated","customer.erased"]}`:          "event_types.2",
		`{"url":"https://a.test","event_types":["customer.created"],"description":7,"max_in_flight":"many"}`:        "description",
		`{"url":"https://a.test","event_types":["webhook_endpoint.disabled"],"description":null,"max_in_flight":5}`: "event_types.0",
	} {
		w.do(ctx, "POST", "/webhook-endpoints", body).is(422, "invalid_request", field)
	}
	w.do(ctx, "POST", "/webhook-endpoints", `{"url":"`+long+`","event_types":["*"]}`).is(201)
	w.do(ctx, "POST", "/webhook-endpoints", `{"url":`).is(400, "malformed_json")
	w.do(ctx, "POST", "/webhook-endpoints", `{"url":"`+strings.Repeat("a", 1<<20)+`"}`).is(413, "request_too_large")
	w.do(ctx, "GET", "/webhook-endpoints?color=red", "").is(422, "invalid_request", "color")
	w.do(ctx, "GET", "/webhook-endpoints?cursor=x", "").is(400, "invalid_cursor")
	id := w.endpoint(ctx)
	for path, bodies := range map[string][]string{
		"/rotate-secret": {`{"previous_secret_expires_in":-1}`, `{"previous_secret_expires_in":604801}`}, "/test": {`{"type":"*"}`, `{"type":"x"}`},
	} {
		for _, body := range bodies {
			w.do(ctx, "POST", "/webhook-endpoints/"+id+path, body).is(422, "invalid_request")
		}
	}
	w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"status":"paused"}`).is(422, "invalid_request", "status")
	w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"url":"https://private.test"}`, `If-Match: "9"`).is(422, "invalid_request", "url")
	live := w.as(ids.New[ids.TenantPrefix](), caller.Live)
	w.do(live, "POST", "/webhook-endpoints", `{"url":"http://a.test","event_types":["*"]}`).is(422, "invalid_request", "url")
}

// Concurrent requests create at most fifty endpoints per tenant and mode.
func TestFiftyEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := w.as(tenant, caller.Test)
	for range 45 {
		w.endpoint(ctx)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for range 12 {
		all.Go(func() {
			a := w.do(ctx, "POST", "/webhook-endpoints", `{"url":"https://a.test","event_types":["*"]}`)
			mu.Lock()
			defer mu.Unlock()
			seen[a.Status]++
		})
	}
	all.Wait()
	if seen[201] != 5 || seen[422] != 7 {
		t.Errorf("%v", seen)
	}
	w.endpoint(w.as(tenant, caller.Live))
}

// Subscribing to a type needs the read scope of its resource, and "*" needs all of them. The error names the first missing one.
func TestScopesOfTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := w.as(tenant, caller.Test, "read:webhooks", "write:webhooks", "read:bookings")
	id := w.endpoint(ctx, "booking.created", "booking.cancelled")
	refused := func(a response, scope string) {
		t.Helper()
		a.is(403, "insufficient_scope")
		if !strings.Contains(string(a.Body), scope) || !strings.Contains(a.Header.Get("WWW-Authenticate"), scope) {
			t.Errorf("%s does not name %s", a.Body, scope)
		}
	}
	refused(w.do(ctx, "POST", "/webhook-endpoints", `{"url":"https://a.test","event_types":["*"]}`), "read:customers")
	refused(w.do(ctx, "POST", "/webhook-endpoints", `{"url":"https://a.test","event_types":["payment.failed","booking.created"]}`), "payments:read")
	refused(w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"event_types":["lead.created"]}`), "read:leads")
	refused(w.do(ctx, "GET", "/events", ""), "read:customers")
	refused(w.do(ctx, "GET", "/events?type=booking.created,quote.created", ""), "read:quotes")
	refused(w.do(ctx, "GET", "/events?object_id=cu_1", ""), "read:customers")
	refused(w.do(ctx, "GET", "/events/stream", ""), "read:customers")
	all := w.as(tenant, caller.Test)
	other := w.endpoint(all)
	replay := fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"`, other)
	refused(w.do(ctx, "POST", "/events/replay", replay+`}`), "read:customers")
	refused(w.do(ctx, "POST", "/events/replay", replay+`,"types":["invoice.paid"]}`), "read:invoices")
	w.do(ctx, "POST", "/events/replay", replay+`,"types":["booking.created"]}`).is(202)
	customer := w.ingest(all, "customer.created", 1)[0]
	refused(w.do(ctx, "GET", "/events/"+customer.ID.String(), ""), "read:customers")
	booking := w.ingest(all, "booking.created", 1)[0]
	w.do(ctx, "GET", "/events/"+booking.ID.String(), "").is(200)
	w.do(ctx, "GET", "/events?object_id="+booking.ObjectID, "").is(200)
	w.do(ctx, "GET", "/events?type=booking.created", "").is(200)
}

func TestEventTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := w.do(w.ctx(), "GET", "/webhook-endpoints/event-types", "").is(200).data()
	last := len(proto.EventTypes) - 1
	if len(list) != last+1 || list[0]["type"] != proto.EventTypes[0].Name || list[last]["required_scope"] != proto.EventTypes[last].Scope {
		t.Errorf("%v", list)
	}
}

// An id of another tenant in a path is 404, and one of the other mode is 403. In a body both are not found.
func TestForeignEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx, live, other := w.as(tenant, caller.Test), w.as(tenant, caller.Live), w.ctx()
	id := w.endpoint(ctx)
	w.ingest(ctx, "booking.created", 1)
	delivery, _ := w.do(ctx, "GET", "/webhook-endpoints/"+id+"/deliveries", "").is(200).data()[0]["id"].(string)
	for _, call := range []struct{ method, path, body string }{
		{"GET", "", ""},
		{"PATCH", "", `{"max_in_flight":1}`},
		{"DELETE", "", ""},
		{"POST", "/rotate-secret", ``},
		{"POST", "/test", ``},
		{"GET", "/deliveries", ""},
		{"POST", "/deliveries/" + delivery + "/retry", ``},
		{"PATCH", "", `{"status":"x"}`},
		{"PATCH", "", `{"url":"https://private.test"}`},
		{"GET", "/deliveries?color=red", ""},
		{"POST", "/test", `{"type":"x"}`},
		{"POST", "/rotate-secret", `{"previous_secret_expires_in":-1}`},
	} {
		path := "/webhook-endpoints/" + id + call.path
		w.do(other, call.method, path, call.body).is(404, "webhook_endpoint_not_found")
		w.do(live, call.method, path, call.body).is(403, "mode_mismatch")
		w.do(ctx, call.method, strings.Replace(path, id, "we_x", 1), call.body).is(404, "webhook_endpoint_not_found")
	}
	w.do(ctx, "POST", "/webhook-endpoints/"+id+"/deliveries/whd_x/retry", "").is(404, "delivery_not_found")
	second := w.endpoint(ctx)
	w.do(ctx, "POST", "/webhook-endpoints/"+second+"/deliveries/"+delivery+"/retry", "").is(404, "delivery_not_found")
	for _, from := range []response{
		w.do(other, "POST", "/events/replay", fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"}`, id)),
		w.do(live, "POST", "/events/replay", fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"}`, id)),
		w.do(ctx, "POST", "/events/replay", `{"endpoint_id":"x","from":"2026-01-01T00:00:00Z"}`),
	} {
		from.is(422, "invalid_request", "endpoint_id")
	}
}

// A repeated request returns the same secret, which is stored sealed, and creates nothing twice.
func TestSecretsAreReplayedSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	body := `{"url":"https://example.com","event_types":["*"]}`
	first := w.do(ctx, "POST", "/webhook-endpoints", body, "Idempotency-Key: one").is(201)
	again := w.do(ctx, "POST", "/webhook-endpoints", body, "Idempotency-Key: one").is(201)
	if !bytes.Equal(first.Body, again.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s\n%s", first.Body, again.Body)
	}
	id := first.str("id")
	rotated := w.do(ctx, "POST", "/webhook-endpoints/"+id+"/rotate-secret", `{"previous_secret_expires_in":60}`, "Idempotency-Key: two").is(200)
	if rotated.str("secret") == first.str("secret") || rotated.Header.Get("ETag") != `"2"` {
		t.Errorf("%s", rotated.Body)
	}
	if twice := w.do(ctx, "POST", "/webhook-endpoints/"+id+"/rotate-secret", `{"previous_secret_expires_in":60}`, "Idempotency-Key: two").is(200); !bytes.Equal(twice.Body, rotated.Body) {
		t.Error("rotated twice")
	}
	w.do(ctx, "POST", "/webhook-endpoints/"+id+"/rotate-secret", `{}`, "Idempotency-Key: two").is(422, "idempotency_mismatch")
	w.do(ctx, "POST", "/webhook-endpoints/"+id+"/rotate-secret", ``, `If-Match: "1"`).is(412)
	if n := w.Count(`select count(*) from endpoints`); n != 1 {
		t.Errorf("%d endpoints", n)
	}
	if n := w.Count(`select count(*) from endpoint_secrets`); n != 2 {
		t.Errorf("%d secrets", n)
	}
	open := w.Count(`select count(*) from idempotency_keys where encode(body, 'escape') like '%whsec_%' or not secret`)
	if open != 0 {
		t.Errorf("%d responses are not sealed", open)
	}
}

// An idempotency key that is in use is 409. An error of the database is 500, and its text is not in the response.
func TestBusyAndBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	id := w.endpoint(ctx)
	event := w.ingest(ctx, "booking.created", 1)[0].ID.String()
	delivery, _ := w.do(ctx, "GET", "/webhook-endpoints/"+id+"/deliveries", "").is(200).data()[0]["id"].(string)
	w.engine = w.serve(w.Impatient(50 * time.Millisecond))
	release := w.HoldKey(caller.FromContext(ctx), "k")
	writes := map[string]string{
		"POST /webhook-endpoints": `{"url":"https://a.test","event_types":["*"]}`, "PATCH /webhook-endpoints/" + id: `{"max_in_flight":1}`,
		"POST /webhook-endpoints/" + id + "/rotate-secret": ``, "POST /webhook-endpoints/" + id + "/test": ``,
		"POST /webhook-endpoints/" + id + "/deliveries/" + delivery + "/retry": ``,
		"POST /events/replay":               fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"}`, id),
		"POST /events/" + event + "/resend": fmt.Sprintf(`{"endpoint_id":%q}`, id),
	}
	for call, body := range writes {
		method, path, _ := strings.Cut(call, " ")
		w.do(ctx, method, path, body, "Idempotency-Key: k").is(409, "idempotency_in_progress")
	}
	release()
	for call, body := range writes {
		method, path, _ := strings.Cut(call, " ")
		w.do(ctx, method, path, "x"+body).is(400)
		w.do(ctx, method, path, `{"a":"`+strings.Repeat("a", 1<<20)+`"}`).is(413)
		if path != "/events/replay" && path != "/webhook-endpoints" {
			w.do(ctx, method, path, body, "Idempotency-Key: ").is(422, "invalid_request", "Idempotency-Key")
		}
	}
	w.do(ctx, "POST", "/webhook-endpoints/"+id+"/test", ``, `If-Match: "9"`).is(412)
	for _, path := range []string{"/webhook-endpoints/" + id, "/webhook-endpoints/" + id + "?x=1"} {
		w.do(ctx, "DELETE", path, "", "If-Match: nonsense").is(422)
		w.do(ctx, "GET", path+"&y=2", "").Is(map[bool]int{true: 422, false: 404}[strings.Contains(path, "?")])
	}
	broken := []struct{ method, path string }{
		{"GET", "/webhook-endpoints"},
		{"GET", "/webhook-endpoints/" + id},
		{"DELETE", "/webhook-endpoints/" + id},
		{"GET", "/webhook-endpoints/" + id + "/deliveries"},
		{"GET", "/events"},
		{"GET", "/events/stream"},
		{"GET", "/events/" + ids.New[ids.EventPrefix]().String()},
	}
	w.Exec(`alter table endpoints rename to gone; alter table events rename to gone_too; alter table endpoint_queues rename to gone_three`)
	w.Exec(`alter function oldest_write rename to gone`)
	for _, call := range broken {
		a := w.do(ctx, call.method, call.path, "").is(http.StatusInternalServerError, "internal_error")
		if bytes.Contains(a.Body, []byte("endpoints")) {
			t.Errorf("%s", a.Body)
		}
	}
	for call, body := range writes {
		method, path, _ := strings.Cut(call, " ")
		w.do(ctx, method, path, body).is(500, "internal_error")
	}
}

// Each operation rejects a request without a caller's signature.
func TestUnsignedCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range spec.For("webhooks") {
		path := strings.NewReplacer("{id}", "we_1", "{delivery_id}", "whd_1").Replace(op.Path)
		w.do(w.ctx(), op.Method, path, "", "X-Caller: ").is(401)
	}
}
