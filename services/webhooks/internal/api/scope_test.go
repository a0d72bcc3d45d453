package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/domain"
)

// scopeCase is a request with the types whose events it shows to a reader or sends to a receiver.
type scopeCase struct {
	op, method, path, body string
	types                  []string
}

// fixture is what the requests of a case use: an endpoint of customer and booking events with a delivery of each.
type fixture struct{ endpoint, wide, customer, booking, event string }

func (w *world) fixture(ctx context.Context) fixture {
	w.T.Helper()
	p := fixture{endpoint: w.endpoint(ctx, "customer.updated", "booking.created")}
	p.event = w.ingest(ctx, "customer.updated", 1)[0].ID.String()
	w.ingest(ctx, "booking.created", 1)
	for _, d := range w.do(ctx, "GET", "/webhook-endpoints/"+p.endpoint+"/deliveries", "").is(200).data() {
		id, _ := d["id"].(string)
		if d["event_type"] == "customer.updated" {
			p.customer = id
		} else {
			p.booking = id
		}
	}
	p.wide = w.endpoint(ctx)
	return p
}

func scopeCases(p fixture) []scopeCase {
	own, every := []string{"customer.updated", "booking.created"}, []string{domain.Every}
	one, wide := "/webhook-endpoints/"+p.endpoint, "/webhook-endpoints/"+p.wide
	replay := func(endpoint, rest string) string {
		return fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"%s}`, endpoint, rest)
	}
	return []scopeCase{
		{"createWebhookEndpoint", "POST", "/webhook-endpoints", `{"url":"https://a.test","event_types":["customer.updated","booking.created"]}`, own},
		{"createWebhookEndpoint", "POST", "/webhook-endpoints", `{"url":"https://a.test","event_types":["*"]}`, every},
		{"listWebhookEndpoints", "GET", "/webhook-endpoints", "", nil},
		{"getWebhookEndpoint", "GET", one, "", nil},
		{"listEventTypes", "GET", "/webhook-endpoints/event-types", "", nil},
		{"updateWebhookEndpoint", "PATCH", one, `{"url":"https://b.test"}`, own},
		{"updateWebhookEndpoint", "PATCH", one, `{"status":"disabled"}`, own},
		{"updateWebhookEndpoint", "PATCH", one, `{"status":"enabled"}`, own},
		{"updateWebhookEndpoint", "PATCH", one, `{"event_types":["lead.created","booking.created"]}`, []string{"customer.updated", "booking.created", "lead.created"}},
		{"updateWebhookEndpoint", "PATCH", one, `{"event_types":["customer.updated","booking.created"]}`, append(own, "lead.created")},
		{"updateWebhookEndpoint", "PATCH", wide, `{"url":"https://b.test"}`, every},
		{"updateWebhookEndpoint", "PATCH", one, `{"description":"Main","max_in_flight":3,"max_per_second":9}`, nil},
		{"rotateWebhookSecret", "POST", one + "/rotate-secret", `{}`, own},
		{"rotateWebhookSecret", "POST", wide + "/rotate-secret", ``, every},
		{"testWebhookEndpoint", "POST", one + "/test", `{"type":"invoice.paid"}`, nil},
		{"listDeliveries", "GET", one + "/deliveries", "", own},
		{"listDeliveries", "GET", one + "/deliveries?event_type=lead.created", "", []string{"lead.created"}},
		{"listDeliveries", "GET", wide + "/deliveries", "", every},
		{"retryDelivery", "POST", one + "/deliveries/" + p.customer + "/retry", ``, []string{"customer.updated"}},
		{"retryDelivery", "POST", one + "/deliveries/" + p.booking + "/retry", ``, []string{"booking.created"}},
		{"listEvents", "GET", "/events", "", every},
		{"listEvents", "GET", "/events?type=payment.failed,quote.created", "", []string{"payment.failed", "quote.created"}},
		{"listEvents", "GET", "/events?object_id=inv_1", "", []string{"invoice.paid"}},
		{"getEvent", "GET", "/events/" + p.event, "", []string{"customer.updated"}},
		{"streamEvents", "GET", "/events/stream", "", every},
		{"streamEvents", "GET", "/events/stream?type=booking.created", "", []string{"booking.created"}},
		{"updateWebhookEndpoint", "PATCH", one, `{"headers":{"X-A":"a"}}`, nil},
		{"resendEvent", "POST", "/events/" + p.event + "/resend", fmt.Sprintf(`{"endpoint_id":%q}`, p.endpoint), []string{"customer.updated"}},
		{"replayEvents", "POST", "/events/replay", replay(p.endpoint, ``), own},
		{"replayEvents", "POST", "/events/replay", replay(p.endpoint, `,"types":["quote.accepted"]`), []string{"quote.accepted"}},
		{"replayEvents", "POST", "/events/replay", replay(p.wide, ``), every},
		{"deleteWebhookEndpoint", "DELETE", one, "", nil},
	}
}

// Each operation requires the read scope of each type that it shows to a reader or sends to a receiver, and no other.
func TestScopesOfOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.streams.MaxDuration = time.Millisecond // each is read to its end
	tenant := ids.New[ids.TenantPrefix]()
	all := w.as(tenant, caller.Test)
	cases := scopeCases(w.fixture(all))
	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range spec.For("webhooks") {
		if !slices.ContainsFunc(cases, func(c scopeCase) bool { return c.op == op.ID }) {
			t.Errorf("no case for %s", op.ID)
		}
	}
	for _, c := range cases {
		own := append([]string{}, spec.Operation(c.op).Scopes...)
		for _, e := range proto.EventTypes {
			if (slices.Contains(c.types, e.Name) || slices.Contains(c.types, domain.Every)) && !slices.Contains(own, e.Scope) {
				own = append(own, e.Scope)
			}
		}
		for _, missing := range own {
			if slices.Contains(spec.Operation(c.op).Scopes, missing) {
				continue // the gateway rejects it
			}
			scopes := slices.DeleteFunc(slices.Clone(proto.Scopes), func(s string) bool { return s == missing })
			a := w.do(w.as(tenant, caller.Test, scopes...), c.method, c.path, c.body, `If-Match: "99"`)
			if a.Status != 403 || !strings.Contains(string(a.Body), missing) || !strings.Contains(a.Header.Get("WWW-Authenticate"), missing) {
				t.Errorf("%s %s %s without %s: %d %s", c.method, c.path, c.body, missing, a.Status, a.Body)
			}
		}
		if a := w.do(w.as(tenant, caller.Test, own...), c.method, c.path, c.body); a.Status >= 400 {
			t.Errorf("%s %s %s with %v: %d %s", c.method, c.path, c.body, own, a.Status, a.Body)
		}
	}
}

// The error of a missing scope comes after 404 and wrong mode, and before errors of the URL and the row's status.
func TestScopesInTheOrderOfChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	p := w.fixture(w.as(tenant, caller.Test))
	bare := []string{"read:webhooks", "write:webhooks"}
	mine, live, other := w.as(tenant, caller.Test, bare...), w.as(tenant, caller.Live, bare...), w.as(ids.New[ids.TenantPrefix](), caller.Test, bare...)
	path := "/webhook-endpoints/" + p.endpoint
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", path, `{"url":"https://private.test"}`},
		{"PATCH", path, `{"event_types":["lead.created"]}`},
		{"POST", path + "/rotate-secret", `{}`},
		{"GET", path + "/deliveries", ``},
		{"POST", path + "/deliveries/" + p.customer + "/retry", ``},
	} {
		w.do(mine, c.method, c.path, c.body, `If-Match: "99"`).is(403, "insufficient_scope")
		w.do(live, c.method, c.path, c.body).is(403, "mode_mismatch")
		w.do(other, c.method, c.path, c.body).is(404, "webhook_endpoint_not_found")
	}
	w.do(mine, "PATCH", path, `{"status":"paused"}`).is(422, "invalid_request", "status")
	// A list omits deliveries of types that the reader may not read, which an earlier subscription created.
	reader := w.as(tenant, caller.Test, append(bare, "read:bookings")...)
	w.do(w.as(tenant, caller.Test), "PATCH", path, `{"event_types":["booking.created"]}`).is(200)
	list := w.do(reader, "GET", path+"/deliveries", "").is(200).data()
	if len(list) != 1 || list[0]["id"] != p.booking {
		t.Errorf("a reader of bookings sees %v", list)
	}
	if whole := w.do(w.as(tenant, caller.Test), "GET", path+"/deliveries", "").is(200).data(); len(whole) != 2 {
		t.Errorf("a reader of all sees %v", whole)
	}
}
