package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/proto/internalapi"
)

// An access token is handled like an API key: it is cached, limited per grant, and revoked by the same tombstone. In addition, it
// expires.
func TestAccessTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.RateLimit = 3 })
	token := w.identity.newToken(time.Now().Add(time.Hour))
	for range 2 {
		want(t, g.send(t, "GET", oneCu, "", bearer(token)), 200, "")
	}
	if w.identity.lookupCount() != 1 {
		t.Errorf("%d look-ups", w.identity.lookupCount())
	}
	// A refreshed token of the same grant has the same bucket.
	grant := w.identity.holder(token)
	refreshed := w.identity.newToken(time.Now().Add(time.Hour))
	w.identity.change(refreshed, func(p *internalapi.Principal) { p.ID, p.TenantID = grant.Credential, grant.Tenant })
	want(t, g.send(t, "GET", oneCu, "", bearer(refreshed)), 200, "")
	want(t, g.send(t, "GET", oneCu, "", bearer(refreshed)), 429, "rate_limited")
	want(t, g.send(t, "GET", oneCu, "", bearer(token)), 429, "rate_limited")

	ends := w.identity.newToken(time.Now().Add(1500 * time.Millisecond))
	want(t, g.send(t, "GET", oneCu, "", bearer(ends)), 200, "")
	eventually(t, "the token ends while it is cached", func() bool {
		a, err := g.try(t, "GET", oneCu, "", bearer(ends))
		return err == nil && a.StatusCode == 401 && a.code() == "expired_credential" && strings.Contains(a.Header.Get("WWW-Authenticate"), "invalid_token")
	})
	gone := w.identity.newToken(time.Now().Add(time.Hour))
	want(t, g.send(t, "GET", oneCu, "", bearer(gone)), 200, "")
	if err := w.redis.Set(context.Background(), w.identity.holder(gone).StateKey(), "revoked", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	want(t, g.send(t, "GET", oneCu, "", bearer(gone)), 401, "revoked_credential")
	for _, bad := range []string{apikey.Secret("svc_rt_", 52), apikey.Secret("svc_ac_", 26), token[:len(token)-1] + "!", strings.ToUpper(token), "svc_at_"} {
		want(t, g.send(t, "GET", oneCu, "", bearer(bad)), 401, "invalid_credential")
	}
	for _, query := range []string{"?access_token=" + token, "?token=" + token} {
		want(t, g.send(t, "GET", oneCu+query, ""), 401, "missing_credential")
	}
}

// A rotated API key ends at its time although it is cached. It gets the response for a revoked key.
func TestRotatedKeysEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	ends := func(key string, at time.Time) {
		w.identity.change(key, func(p *internalapi.Principal) { p.ExpiresAt = &at })
	}
	key, later, over := w.identity.newKey(), w.identity.newKey(), w.identity.newKey()
	ends(key, time.Now().Add(1500*time.Millisecond))
	ends(later, time.Now().Add(time.Hour))
	ends(over, time.Now().Add(-time.Second))
	want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	want(t, g.send(t, "GET", oneCu, "", bearer(later)), 200, "")
	w.identity.setDown(true) // only cached data is available from here on
	eventually(t, "the key ends while it is cached", func() bool {
		a, err := g.try(t, "GET", oneCu, "", bearer(key))
		return err == nil && a.StatusCode == 401 && a.code() == "revoked_credential"
	})
	want(t, g.send(t, "GET", oneCu, "", bearer(later)), 200, "")
	w.identity.setDown(false)
	want(t, g.send(t, "GET", oneCu, "", bearer(over)), 401, "revoked_credential")
}

// An API key whose expiry was set ends at its time although it is cached, with a code of its own.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	expires := func(key string, at time.Time) {
		w.identity.change(key, func(p *internalapi.Principal) { p.ExpiresAt, p.ExpirySet = &at, new(true) })
	}
	key, later, over := w.identity.newKey(), w.identity.newKey(), w.identity.newKey()
	expires(key, time.Now().Add(1500*time.Millisecond))
	expires(later, time.Now().Add(time.Hour))
	expires(over, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	want(t, g.send(t, "GET", oneCu, "", bearer(later)), 200, "")
	w.identity.setDown(true) // only cached data is available from here on
	eventually(t, "the key expires while it is cached", func() bool {
		a, err := g.try(t, "GET", oneCu, "", bearer(key))
		return err == nil && a.StatusCode == 401 && a.code() == "expired_credential" && strings.Contains(a.Header.Get("WWW-Authenticate"), "invalid_token")
	})
	want(t, g.send(t, "GET", oneCu, "", bearer(later)), 200, "")
	w.identity.setDown(false)
	for range 2 { // the second is cached
		a := g.send(t, "GET", oneCu, "", bearer(over))
		want(t, a, 401, "expired_credential")
		if !strings.Contains(a.body, "expired at 2026-01-02T03:04:05Z") {
			t.Errorf("the message does not say when the key expired: %s", a.body)
		}
	}
}

// The requests of a browser and an app reach identity, and its responses reach them. Nothing else in identity is accessible.
func TestOAuthIsForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var came []string
	w.identity.pages = func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came = append(came, fmt.Sprintf("%s %s %q cookie=%s from=%s for=%s lang=%s", r.Method, r.URL.Path+"?"+r.URL.RawQuery, body, r.Header.Get("Cookie"),
			r.Header.Get("Origin"), r.Header.Get("X-Forwarded-For"), r.Header.Get("Accept-Language")))
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		out.Header().Add("Set-Cookie", "a=1; HttpOnly")
		out.Header().Add("Set-Cookie", "b=2")
		out.Header().Set("Content-Security-Policy", "default-src 'none'")
		out.Header().Set("X-Internal-Secret", "x")
		switch r.URL.Path {
		case "/oauth/token":
			out.Header().Set("WWW-Authenticate", `Basic realm="holdfast"`)
			out.WriteHeader(http.StatusUnauthorized)
		case "/oauth/authorize":
			out.Header().Set("Location", "https://app.example/cb?code=x")
			out.WriteHeader(http.StatusSeeOther)
		}
		_, _ = io.WriteString(out, "page")
	}
	g := w.start(t)
	once := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request := func(method, path, body string, edits ...edit) *response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range edits {
			e(req)
		}
		res, err := once.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return &response{Response: res, body: string(b)}
	}
	a := request("POST", "/oauth/authorize?client_id=https%3A%2F%2Fa.example%2Fc.json&x=%20y", "decision=allow", header("Cookie", "c=3"), header("Origin", "https://o.example"), header("Accept-Language", "de"),
		header("X-Forwarded-For", "6.6.6.6"), header("X-Caller", "forged"), header("Content-Type", "application/x-www-form-urlencoded"))
	if a.StatusCode != 303 || a.Header.Get("Location") != "https://app.example/cb?code=x" || len(a.Header["Set-Cookie"]) != 2 || a.body != "page" ||
		a.Header.Get("Content-Security-Policy") == "" || a.Header.Get("X-Internal-Secret") != "" || !strings.HasPrefix(a.Header.Get("X-Request-Id"), "req_") {
		t.Errorf("%d %v %q", a.StatusCode, a.Header, a.body)
	}
	if len(came) != 1 || came[0] != `POST /oauth/authorize?client_id=https%3A%2F%2Fa.example%2Fc.json&x=%20y "decision=allow" cookie=c=3 from=https://o.example for=127.0.0.1 lang=de` {
		t.Errorf("%q", came)
	}
	if a := request("POST", "/oauth/token", "grant_type=x"); a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") == "" || a.body != "page" { // an app that identity does not know
		t.Errorf("%d %v %q", a.StatusCode, a.Header, a.body)
	}
	before := len(came)
	for _, path := range []string{
		"/internal/v1/credentials/lookup", "/internal/v1/oauth/introspect", "/oauth/introspect", "/oauth/../internal/v1/oauth/introspect", "/oauth/link/%2e%2e", "/oauth/", "/oauth/link/",
		"/oauth/link/a/b", "/.well-known/openid-configuration",
	} {
		if a := request("POST", path, ""); path != "/oauth/link/%2e%2e" && a.StatusCode != 404 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if len(came) > before+1 {
		t.Errorf("%q", came[before:])
	}
	if a := request("POST", "/oauth/token", strings.Repeat("x", 1<<20+1)); a.StatusCode != 413 {
		t.Errorf("a large body: %d", a.StatusCode)
	}
	if log := g.log.String(); strings.Contains(log, "x=%20y") || strings.Contains(log, "decision") {
		t.Errorf("the log shows what was sent: %s", log)
	}
}

// The requests of one network are limited across all its addresses.
func TestTheRateOfOAuth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.identity.pages = func(http.ResponseWriter, *http.Request) {}
	g := w.start(t, func(c *Config) { c.OAuthRateLimit, c.TrustedProxyHops = 3, 1 })
	network := fmt.Sprintf("2001:db8:%x:%x::", time.Now().UnixNano()&0xffff, time.Now().UnixNano()>>16&0xffff)
	for i := range 5 {
		a, err := g.raw("GET", "/oauth/sign-in", "", header("X-Forwarded-For", fmt.Sprintf("%s%x", network, i+1)))
		if expected := 200; err != nil || i < 3 && a.StatusCode != expected || i >= 3 && (a.StatusCode != 429 || a.Header.Get("Retry-After") == "") {
			t.Errorf("request %d: %+v %v", i+1, a, err)
		}
	}
	if a, err := g.raw("GET", "/oauth/sign-in", "", header("X-Forwarded-For", "2001:db9::1")); err != nil || a.StatusCode != 200 {
		t.Errorf("another network: %+v %v", a, err)
	}
}
