package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"
)

// Every page and form of a suspended tenant shows only the reason, and calls no other service. Other tenants of the operator stay
// accessible, and the console opens one of them.
func TestSuspendedTenant(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	suspended := tenant(alpha, "alpha", "owner")
	suspended.Status, suspended.StatusReason = new(internalapi.TenantSuspended), new("Invoice <42> is unpaid")
	alone := p.signIn("alone", tenant(alpha, "alpha", "owner"))
	p.formToken("alone") // of a page from before the suspension
	alone.Tenants = []internalapi.SessionTenant{suspended}
	p.forget()
	p.signIn("both", suspended, tenant(ids.New[ids.TenantPrefix](), "beta", "owner"))
	for _, route := range p.routes() {
		method, path, _ := strings.Cut(route, " ")
		to := address("alpha", "live", path)
		w := p.get("alone", to)
		if method == http.MethodPost {
			w = p.post("alone", to, url.Values{"list": {"nothing"}})
		}
		body := w.Body.String()
		if w.Code != http.StatusForbidden || !strings.Contains(body, "Reason: Invoice &lt;42&gt; is unpaid") || !strings.Contains(body, "/oauth/account") {
			t.Errorf("%s: %d %s", route, w.Code, body)
		}
	}
	for _, c := range p.recordedCalls() {
		if !slices.Contains(ofSessions, c.ID) {
			t.Errorf("a call of %s", c.ID)
		}
	}
	if w := p.get("alone", "/admin"); w.Header().Get("Location") != "/admin/alpha/test/today" {
		t.Errorf("%d to %s", w.Code, w.Header().Get("Location"))
	}
	if w := p.get("both", "/admin"); w.Header().Get("Location") != "/admin/beta/test/today" {
		t.Errorf("%d to %s", w.Code, w.Header().Get("Location"))
	}
	if w := p.get("both", address("alpha", "test", "/today")); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "Open another business") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := p.get("both", address("beta", "test", "/today")); w.Code != http.StatusOK {
		t.Errorf("another tenant: %d", w.Code)
	}
}
