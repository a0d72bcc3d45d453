package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
)

// TestOtherTenantsAreNotFound checks that an operator of one tenant gets no information about another tenant, one that does not
// exist, or an invalid mode. No service is called.
func TestOtherTenantsAreNotFound(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.signIn("theirs", tenant(beta, "beta", "owner"))
	p.formToken("owner")
	for _, where := range [][2]string{{"beta", "test"}, {"beta", "live"}, {"gamma", "test"}, {"ALPHA", "test"}, {"alpha", "prod"}, {"alpha", "TEST"}, {beta.String(), "test"}, {"", "test"}, {"%61lpha%2f", "test"}} {
		for _, route := range p.routes() {
			method, path, _ := strings.Cut(route, " ")
			p.forget()
			var w *httptest.ResponseRecorder
			if method == http.MethodGet {
				w = p.get("owner", address(where[0], where[1], path))
			} else {
				w = p.post("owner", address(where[0], where[1], path), url.Values{"version": {"1"}, "notes": {"changed"}})
			}
			if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "BETA") {
				t.Errorf("%s of %v: %d", route, where, w.Code)
			}
			if calls := p.recordedCalls(); len(calls) != 0 {
				t.Errorf("%s of %v calls %s", route, where, calls[0].ID)
			}
		}
	}
}

// TestOtherTenantsLookUnknown checks that a "not found" page is the same whether the tenant exists or not.
func TestOtherTenantsLookUnknown(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.signIn("theirs", tenant(beta, "beta", "owner"))
	page := func(slug string) string {
		w := p.get("owner", "/admin/"+slug+"/test/bookings")
		return strings.ReplaceAll(w.Body.String(), slug, "…")
	}
	if otherTenant, none := page("beta"), page("nowhere"); otherTenant != none {
		t.Error("the pages differ")
	}
}

// TestCallsAreOfTheWorkspace checks that each call for a page is signed for the tenant and the mode of its address, for the
// operator, with the scopes of their role there.
func TestCallsAreOfTheWorkspace(t *testing.T) {
	t.Parallel()
	clock := noon.AddDate(0, 1, 0)
	for _, mode := range []caller.Mode{caller.Test, caller.Live} {
		for _, slug := range []string{"alpha", "beta"} {
			t.Run(slug+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				p := newPlatform(t, options{})
				p.lax = true
				a, b := tenant(alpha, "alpha", "owner"), tenant(beta, "beta", "admin")
				a.Clock = &clock
				p.signIn("both", a, b)
				want := alpha
				if slug == "beta" {
					want = beta
				}
				n := 0
				for _, route := range p.routes() {
					method, path, _ := strings.Cut(route, " ")
					if strings.HasSuffix(path, "/live") {
						continue
					}
					p.forget()
					if method == http.MethodGet {
						p.get("both", address(slug, string(mode), path))
					} else {
						p.post("both", address(slug, string(mode), path), url.Values{"version": {"1"}, "notes": {"changed"}, "name": {"changed"}})
					}
					for _, c := range p.recordedCalls() {
						n++
						if c.Who.Tenant != want || c.Who.Mode != mode || c.Who.Kind != "operator" || c.Who.Credential != "op_01k00000000000000000000001" {
							t.Errorf("%s calls %s as %s of %s in %s", route, c.ID, c.Who.Credential, c.Who.Tenant, c.Who.Mode)
						}
						if (c.Who.Clock != nil) != (slug == "alpha" && mode == caller.Test) {
							t.Errorf("%s calls %s with the clock %v", route, c.ID, c.Who.Clock)
						}
					}
				}
				if n < 200 {
					t.Errorf("only %d calls", n)
				}
			})
		}
	}
}

// TestNamesAreOfOneTenantAndMode checks that a name shown in one tenant and mode is looked up again in any other.
func TestNamesAreOfOneTenantAndMode(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.signIn("both", tenant(alpha, "alpha", "owner"), tenant(beta, "beta", "owner"))
	p.setResponse("getUnit", func(c call) response {
		name := "Unit of " + c.Who.Tenant.String() + " " + string(c.Who.Mode)
		return response{http.StatusOK, exampleObject(t, "getUnit", map[string]any{"id": c.Params[0], "name": name})}
	})
	for range 2 {
		for slug, id := range map[string]string{"alpha": alpha.String(), "beta": beta.String()} {
			for _, mode := range []string{"test", "live"} {
				page := p.get("both", "/admin/"+slug+"/"+mode+"/bookings/bk_01k00000000000000000000001").Body.String()
				if !strings.Contains(page, "Unit of "+id+" "+mode) || strings.Count(page, "Unit of ") != strings.Count(page, "Unit of "+id+" "+mode) {
					t.Errorf("%s %s shows the name of another", slug, mode)
				}
			}
		}
	}
	lookups := 0
	for _, c := range p.recordedCalls() {
		if c.ID == "getUnit" {
			lookups++
		}
	}
	if lookups != 4 {
		t.Errorf("the name is looked up %d times, want once for each of four workspaces", lookups)
	}
}

// TestNamesNeedTheScope checks that a role that cannot read a resource does not see its name, even after another role of the
// tenant saw it.
func TestNamesNeedTheScope(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("getUnit", func(c call) response {
		return response{http.StatusOK, exampleObject(t, "getUnit", map[string]any{"id": c.Params[0], "name": "The secret shed"})}
	})
	restricted := tenant(alpha, "alpha", "viewer")
	restricted.Scopes = []string{"read:bookings"}
	p.signIn("narrow", restricted)
	const page = "/admin/alpha/test/bookings/bk_01k00000000000000000000001"
	if !strings.Contains(p.get("owner", page).Body.String(), "The secret shed") {
		t.Fatal("the owner is not shown the name")
	}
	if w := p.get("narrow", page); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "The secret shed") {
		t.Errorf("%d: the name is shown without read:units", w.Code)
	}
}

// TestNamesAreInvalidatedByAChange checks that a resource is shown by its new name immediately after a change in the console.
func TestNamesAreInvalidatedByAChange(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	name := "Before"
	p.setResponse("getUnit", func(c call) response {
		return response{http.StatusOK, exampleObject(t, "getUnit", map[string]any{"id": c.Params[0], "name": name})}
	})
	const booking, unit = "/admin/alpha/test/bookings/bk_01k00000000000000000000001", "/admin/alpha/test/units/un_01k00000000000000000000001"
	if !strings.Contains(p.get("owner", booking).Body.String(), "Before") {
		t.Fatal("the name is not shown")
	}
	form := formOf(t, parse(t, p.get("owner", unit+"/edit").Body.String()), unit+"/edit")
	form.Set("description", "changed")
	if w := p.post("owner", unit+"/edit", form); w.Code != http.StatusSeeOther {
		t.Fatalf("%d", w.Code)
	}
	name = "After"
	if page := p.get("owner", booking).Body.String(); !strings.Contains(page, "After") || strings.Contains(page, "Before") {
		t.Error("the old name is shown")
	}
}

// TestLivePage checks that a live page reads the events of its own tenant and mode.
func TestLivePage(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"test", "live"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, options{})
			seen := make(chan call, 10)
			p.setResponse("streamEvents", func(c call) response {
				select {
				case seen <- c:
				default:
				}
				return response{http.StatusOK, []byte("event: booking.created\nid: evt_1\ndata: {}\n\n")}
			})
			front := httptest.NewServer(p.engine)
			defer front.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			r := p.signed(request{Method: http.MethodGet, Path: front.URL + "/admin/alpha/" + mode + "/live", Token: "viewer"}).WithContext(ctx)
			r.RequestURI = ""
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%d %v", res.StatusCode, res.Header)
			}
			if c := <-seen; c.Who.Tenant != alpha || string(c.Who.Mode) != mode {
				t.Errorf("the stream is of %s in %s", c.Who.Tenant, c.Who.Mode)
			}
			if text := readUntil(t, res.Body, "event: change\ndata: {}\n\n"); strings.Contains(text, "booking") {
				t.Errorf("the page receives more than that something changed: %q", text)
			}
			p.server.Stop()
			readUntil(t, res.Body, "")
		})
	}
}

// readUntil reads until the text appears; "" reads to the end.
func readUntil(t *testing.T, body io.Reader, text string) string {
	t.Helper()
	var got []byte
	for part := make([]byte, 1000); ; {
		n, err := body.Read(part)
		got = append(got, part[:n]...)
		if text != "" && strings.Contains(string(got), text) {
			return string(got)
		}
		if err != nil {
			if text != "" || !errors.Is(err, io.EOF) {
				t.Fatalf("%q, then %v", got, err)
			}
			return string(got)
		}
	}
}
