package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"
)

// Every page of a closing tenant says until when its data can be read, and no form changes anything.
func TestClosingTenant(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	closing := tenant(alpha, "alpha", "owner")
	closing.Status, closing.StatusReason, closing.EraseAt = new(internalapi.TenantClosing), new("The contract has ended"), new(time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC))
	p.signIn("alone", closing)
	for _, route := range p.routes() {
		method, path, _ := strings.Cut(route, " ")
		to := address("alpha", "live", path)
		if method == http.MethodPost {
			p.forget()
			w := p.post("alone", to, url.Values{"list": {"nothing"}})
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "Changes are not possible while the account is closing") {
				t.Errorf("%s: %d %s", route, w.Code, w.Body)
			}
			for _, c := range p.recordedCalls() {
				if !slices.Contains(ofSessions, c.ID) {
					t.Errorf("%s calls %s", route, c.ID)
				}
			}
		}
	}
	for _, page := range []string{"/today", "/customers", "/quickstart"} {
		w := p.get("alone", address("alpha", "live", page))
		if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "You can read and export its data until") || !strings.Contains(body, "2031") || !strings.Contains(body, "The contract has ended") {
			t.Errorf("%s: %d %s", page, w.Code, body)
		}
	}
}

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
