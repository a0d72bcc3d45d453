package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"
)

// by returns ctx with a caller that has another credential.
func by(ctx context.Context, credential string) context.Context {
	c := caller.FromContext(ctx)
	c.Credential = credential
	return caller.With(ctx, c)
}

// identity sends an internal call of identity, which has no tenant.
func (w *world) identity(method, path, body string) response {
	w.T.Helper()
	ctx := caller.With(w.T.Context(), caller.Service("identity", ids.Tenant{}, caller.Live))
	return response{w.Send(ctx, w.engine, "identity", method, "/internal/v1/"+path, body)}
}

func (w *world) grants(after string) []internalapi.EndpointGrant {
	w.T.Helper()
	return apitest.Decode[internalapi.EndpointGrants](w.identity("GET", "endpoint-grants?after="+after, "").is(200).Response).Data
}

// TestEndpointsEndWithTheirGrant checks that the end of a grant disables the endpoints that it created, and no others, and that another
// credential can then enable them for itself.
func TestEndpointsEndWithTheirGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	const grant, other, key = "gr_01m7zd48z8f1svkv8g7bj63mam", "gr_01m7zd48z8f1svkv8g7bj63man", "key_01m7zd48z8f1svkv8g7bj63mam"
	ctx := w.as(tenant, caller.Test)
	created := w.endpoint(by(ctx, grant))
	others := []string{w.endpoint(by(ctx, other)), w.endpoint(by(ctx, key)), w.endpoint(by(w.as(tenant, caller.Live), grant))}
	path := "/webhook-endpoints/" + created
	if got := w.do(by(ctx, key), "GET", path, "").is(200).str("created_by"); got != grant {
		t.Errorf("created by %q", got)
	}
	if list := w.grants(""); len(list) != 3 || list[0].ID != grant || list[2].ID != other || len(w.grants(grant)) != 1 || len(w.grants(other)) != 0 {
		t.Errorf("grants %+v", list)
	}
	w.ingest(ctx, "customer.updated", 3)
	ended := fmt.Sprintf(`{"data":[{"tenant_id":%q,"livemode":false,"id":%q}]}`, tenant, grant)
	for i, want := range []int{1, 0} {
		if got := apitest.Decode[internalapi.DisabledEndpoints](w.identity("POST", "endpoint-grants/ended", ended).is(200).Response); got.Disabled != want {
			t.Errorf("call %d disabled %d, want %d", i, got.Disabled, want)
		}
	}
	w.identity("POST", "endpoint-grants/ended", fmt.Sprintf(`{"data":[{"tenant_id":%q,"livemode":false,"id":%q}]}`, tenant, key)).is(200)
	shown := w.do(ctx, "GET", path, "").is(200)
	if shown.str("status") != "disabled" || shown.str("disabled_reason") != "grant_revoked" || !strings.Contains(shown.str("warning"), "3 pending deliveries failed") {
		t.Errorf("got %s", shown.Body)
	}
	for i, id := range others {
		in := ctx
		if i == 2 {
			in = w.as(tenant, caller.Live)
		}
		if got := w.do(in, "GET", "/webhook-endpoints/"+id, "").is(200).str("status"); got != "enabled" {
			t.Errorf("endpoint %d is %s", i, got)
		}
	}
	w.do(by(ctx, key), "PATCH", path, `{"status":"enabled"}`).is(200)
	if got := apitest.Decode[internalapi.DisabledEndpoints](w.identity("POST", "endpoint-grants/ended", ended).is(200).Response); got.Disabled != 0 {
		t.Errorf("an endpoint that a key enabled was disabled with the grant")
	}
	w.identity("POST", "endpoint-grants/ended", `{"data":[{"tenant_id":"x","livemode":false,"id":"y"}]}`).is(422)
	response{w.Send(ctx, w.engine, "console", "GET", "/internal/v1/endpoint-grants", "")}.is(401)
}

// TestEndpointWritesAreAudited checks that each write of an endpoint publishes one event for the audit log: with the names of the changed
// fields, without a value, a secret or a header.
func TestEndpointWritesAreAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := by(w.ctx(), "key_writer")
	created := w.do(ctx, "POST", "/webhook-endpoints",
		`{"url":"https://example.com/top-secret","event_types":["*"],"headers":{"X-A":"top-secret"}}`, "Idempotency-Key: k").is(201)
	id := created.str("id")
	path := "/webhook-endpoints/" + id
	w.do(ctx, "POST", "/webhook-endpoints",
		`{"url":"https://example.com/top-secret","event_types":["*"],"headers":{"X-A":"top-secret"}}`, "Idempotency-Key: k").is(201)
	event := w.ingest(ctx, "customer.updated", 1)[0].ID.String()
	delivery, _ := w.do(ctx, "GET", path+"/deliveries", "").is(200).data()[0]["id"].(string)
	w.do(ctx, "PATCH", path, `{"description":"top-secret","max_in_flight":7}`).is(200)
	w.do(ctx, "PATCH", path, `{"description":"top-secret"}`).is(200) // changes nothing
	w.do(ctx, "PATCH", path, `{"headers":{"X-A":"top-secret-2"}}`).is(200)
	w.do(ctx, "PATCH", path, `{"headers":{"Host":"x"}}`).is(422)
	w.do(ctx, "POST", path+"/rotate-secret", "").is(200)
	w.do(ctx, "POST", path+"/deliveries/"+delivery+"/retry", "").is(200)
	w.do(ctx, "POST", "/events/"+event+"/resend", `{"endpoint_id":"`+id+`"}`).is(202)
	from := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	w.do(ctx, "POST", "/events/replay", fmt.Sprintf(`{"endpoint_id":%q,"from":%q}`, id, from)).is(202)
	w.do(ctx, "DELETE", path, "").is(204)

	var got []string
	for _, e := range w.Events() {
		var previous map[string]any
		if err := json.Unmarshal(e.GetPreviousAttributes(), &previous); err != nil {
			t.Fatal(err)
		}
		fields := make([]string, 0, len(previous))
		for name := range previous {
			fields = append(fields, name)
		}
		slices.Sort(fields)
		got = append(got, fmt.Sprint(e.GetType(), " ", e.GetActor(), " ", e.GetResourceVersion(), " ", fields))
		if e.GetObjectId() != id || !e.GetInternal() || strings.Contains(e.String(), "top-secret") || strings.Contains(e.String(), "whsec_") {
			t.Errorf("event %s", e)
		}
	}
	want := []string{
		"webhook_endpoint.created key_writer 1 []", "webhook_endpoint.updated key_writer 2 [description max_in_flight]",
		"webhook_endpoint.updated key_writer 3 [headers]", "webhook_endpoint.secret_rotated key_writer 4 []",
		"webhook_endpoint.delivery_retried key_writer 4 []", "webhook_endpoint.event_resent key_writer 4 []",
		"webhook_endpoint.replayed key_writer 4 []", "webhook_endpoint.deleted key_writer 5 []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
