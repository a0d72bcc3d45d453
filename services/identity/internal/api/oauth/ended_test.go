package oauth_test

import (
	"net/url"
	"testing"

	"holdfast.dev/services/identity/internal/domain"
)

// end suspends, closes or erases a tenant, as far as a request can tell.
func (w *world) end(tenant domain.Tenant, action domain.TenantAction) {
	w.t.Helper()
	if action != domain.EraseTenant {
		w.setStatus(tenant, action)
		return
	}
	w.setStatus(tenant, domain.CloseTenant)
	if _, err := w.owner().Exec(w.t.Context(), `update tenants set status = 'erasing' where tenant_id = $1`, tenant.ID.UUID()); err != nil {
		w.t.Fatal(err)
	}
}

// TestRequestsThatBeganBeforeTheEnd checks each step of a flow whose earlier steps were taken while the publisher of the app, or the tenant
// that grants access, was active: no step gives a code or a token that works afterwards. The data of a closing tenant can be read, so its own operators
// can still let apps act for it.
func TestRequestsThatBeganBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for _, action := range []domain.TenantAction{domain.SuspendTenant, domain.CloseTenant, domain.EraseTenant} {
		for _, who := range []string{"publisher", "tenant"} {
			t.Run(who+" "+string(action), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				publisher, a := w.foreign()
				w.verify(a, true)
				q := w.request("client_id", a.ID.String())
				pushed := w.post("/oauth/par", q).is(t, 201, "")
				b := w.browser()
				shown := b.signIn(q, w.operator.Email)
				code := w.browser().allow(q, w.operator.Email).Get("code")
				granted := w.granted2(a)
				ended := map[string]domain.Tenant{"publisher": publisher, "tenant": w.tenant}[who]
				w.end(ended, action)
				if who == "tenant" && action == domain.CloseTenant {
					if w.sent(b.submit(shown, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")).Get("code") == "" {
						t.Error("a closing tenant cannot let an app read its data")
					}
					return
				}
				for name, p := range map[string]*page{
					"the shown page": b.submit(shown, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow"),
					"a new page":     b.get("/oauth/authorize?" + q.Encode()),
					"a pushed request": b.get("/oauth/authorize?" + url.Values{
						"client_id": {a.ID.String()}, "request_uri": {pushed.RequestURI},
					}.Encode()),
				} {
					to, err := url.Parse(p.Header.Get("Location"))
					if err != nil || to.Query().Get("code") != "" || p.StatusCode == 200 {
						t.Errorf("%s: %d %s", name, p.StatusCode, to)
					}
				}
				id := a.ID.String()
				if who == "tenant" { // the grant can be used again after a resumption, and the gateway refuses its tokens until then
					for _, token := range []string{granted.Access, w.exchange(code, "client_id", id).Access, w.refresh(granted.Refresh, "client_id", id).Access} {
						if token != "" && w.principal(token).TenantStatus.Consents() {
							t.Errorf("an access token of a tenant that is %s", w.principal(token).TenantStatus)
						}
					}
					return
				}
				w.exchange(code, "client_id", id).is(t, 400, "invalid_grant")
				w.refresh(granted.Refresh, "client_id", id).is(t, 400, "invalid_grant")
				if in, err := w.app.Introspect(t.Context(), granted.Access); err != nil || in.Active {
					t.Errorf("the access token: %+v %v", in, err)
				}
			})
		}
	}
}
