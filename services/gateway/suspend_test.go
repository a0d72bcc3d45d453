package main

import (
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/proto/internalapi"
)

// inState returns a change of a principal that brings its tenant into a state.
func inState(s internalapi.TenantStatus) func(*internalapi.Principal) {
	return func(p *internalapi.Principal) { p.Version, p.TenantStatus = p.Version+1, &s }
}

// The next request of each gateway is rejected after a suspension, for each kind of credential and with cached responses, and is
// accepted after the resumption. The response has the headers of the credential.
func TestSuspensionHoldsFromTheNextRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gates := []*gateway{w.start(t), w.start(t), w.start(t)}
	for name, credential := range map[string]string{"key": w.identity.newKey(), "grant": w.identity.newToken(time.Now().Add(time.Hour))} {
		send := func(g *gateway) *response { return g.send(t, "GET", oneCu, "", bearer(credential)) }
		for _, g := range gates {
			want(t, send(g), 200, "")
		}
		w.identity.change(credential, inState(internalapi.TenantSuspended))
		w.setState(t, credential, "2")
		for range 2 {
			for _, g := range gates {
				a := send(g)
				want(t, a, 403, "tenant_suspended")
				if a.Header.Get("RateLimit-Remaining") == "" || a.Header.Get("WWW-Authenticate") != "" {
					t.Errorf("%s: headers %v", name, a.Header)
				}
				want(t, g.send(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearer(credential)), 403, "tenant_suspended")
				want(t, g.send(t, "GET", "/api/v1/events/stream", "", bearer(credential)), 403, "tenant_suspended")
			}
		}
		w.identity.change(credential, inState(internalapi.TenantActive))
		w.setState(t, credential, "3")
		for _, g := range gates {
			want(t, send(g), 200, "")
		}
	}
}

// While a tenant is closing, its data can be read with each kind of credential, and every write is rejected, also a repeated one with a
// stored response. An erasing tenant is rejected like a suspended one.
func TestAClosingTenantCanOnlyRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	until := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	for name, credential := range map[string]string{"key": w.identity.newKey(), "grant": w.identity.newToken(time.Now().Add(time.Hour))} {
		create := func() *response {
			return g.send(t, "POST", "/api/v1/customers", `{"first_name":"Ada","email":"ada@example.com"}`, bearer(credential), header("Idempotency-Key", "k-"+name))
		}
		first := create()
		if first.StatusCode >= 300 {
			t.Fatalf("%s: %d %s", name, first.StatusCode, first.body)
		}
		w.identity.change(credential, func(p *internalapi.Principal) {
			inState(internalapi.TenantClosing)(p)
			p.EraseAt = &until
		})
		w.setState(t, credential, "2")
		want(t, g.send(t, "GET", oneCu, "", bearer(credential)), 200, "")
		for _, write := range []*response{
			create(), g.send(t, "POST", "/api/v1/customers", `{"first_name":"Ada","email":"ada@example.com"}`, bearer(credential)),
			g.send(t, "PATCH", oneCu, `{"first_name":"Eva"}`, bearer(credential)), g.send(t, "DELETE", oneCu, "", bearer(credential)),
		} {
			want(t, write, 403, "tenant_suspended")
			if !strings.Contains(write.body, "2031-05-06T07:08:09Z") {
				t.Errorf("%s: %s", name, write.body)
			}
		}
		w.identity.change(credential, inState(internalapi.TenantErasing))
		w.setState(t, credential, "3")
		want(t, g.send(t, "GET", oneCu, "", bearer(credential)), 403, "tenant_suspended")
	}
}

// A key of the platform API is not a credential of the public API, and the gateway does not look it up.
func TestAPlatformKeyIsNoCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	want(t, g.send(t, "GET", oneCu, "", bearer(apikey.Secret("svc_platform_", apikey.KeyDigits))), 401, "invalid_credential")
	if n := w.identity.lookupCount(); n != 0 {
		t.Errorf("%d look-ups", n)
	}
}
