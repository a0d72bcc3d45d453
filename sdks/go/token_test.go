package holdfast

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// grant is a token endpoint whose n-th refresh token is rt_n.
type grant struct {
	mu    sync.Mutex
	n     int
	forms []url.Values
	fail  step // instead of a token
	wait  time.Duration
}

// RoundTrip rotates the refresh token.
func (g *grant) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(g.wait)
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forms = append(g.forms, form)
	if g.fail != nil {
		return g.fail(r)
	}
	if form.Get("refresh_token") != "rt_"+string(rune('0'+g.n)) {
		return respond(400, `{"error":"invalid_grant","error_description":"The refresh token was used."}`)(r)
	}
	g.n++
	n := string(rune('0' + g.n))
	return respond(200, `{"access_token":"at_`+n+`","refresh_token":"rt_`+n+`","token_type":"Bearer","expires_in":3600}`)(r)
}

// newGrant returns a client with a token source.
func newGrant(t *testing.T, token Token, store func(context.Context, Token) error, steps ...step) (*Client, *script, *grant) {
	t.Helper()
	g := &grant{}
	source := NewOAuth(OAuthConfig{TokenURL: "https://holdfast.test/oauth/token", ClientID: "app_1", Token: token, Store: store, HTTPClient: &http.Client{Transport: g}})
	s := &script{steps: steps}
	c, err := New(WithTokenSource(source), WithBaseURL("https://holdfast.test/api/v1"), WithHTTPClient(&http.Client{Transport: s}))
	if err != nil {
		t.Fatal(err)
	}
	return c, s, g
}

// TestRefresh checks that a token is refreshed before it expires, once for concurrent requests, and that it is stored before it is used.
func TestRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stored []string
		store := func(_ context.Context, token Token) error {
			stored = append(stored, token.AccessToken+" "+token.RefreshToken)
			return nil
		}
		c, s, g := newGrant(t, Token{AccessToken: "at_0", RefreshToken: "rt_0", Expiry: time.Now().Add(2 * time.Minute)}, store, respond(200, `{}`))
		call := func() {
			if _, err := c.Me.Get(t.Context()); err != nil {
				t.Error(err)
			}
		}
		call()
		time.Sleep(61 * time.Second)
		var all sync.WaitGroup
		for range 5 {
			all.Go(call)
		}
		all.Wait()
		time.Sleep(time.Hour)
		call()
		var tokens []string
		for _, r := range s.requests() {
			tokens = append(tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}
		if got := strings.Join(tokens, " "); got != "at_0 at_1 at_1 at_1 at_1 at_1 at_2" {
			t.Error(got)
		}
		if got := strings.Join(stored, ", "); got != "at_1 rt_1, at_2 rt_2" || len(g.forms) != 2 {
			t.Error(got)
		}
		if f := g.forms[0]; f.Get("grant_type") != "refresh_token" || f.Get("client_id") != "app_1" {
			t.Error(f)
		}
	})
}

// TestAnExpiredToken checks that a token that the platform calls expired is refreshed once, and that the write has one key.
func TestAnExpiredToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s, g := newGrant(t, Token{AccessToken: "at_0", RefreshToken: "rt_0"}, nil, respond(401, failure("expired_credential")), respond(201, booking), respond(401, failure("expired_credential")))
		if _, err := c.Bookings.Create(t.Context(), BookingCreate{}, WithMaxRetries(0)); err != nil {
			t.Fatal(err)
		}
		if all := strings.Fields(keys(s.requests())); len(all) != 2 || all[0] != all[1] || s.requests()[1].Header.Get("Authorization") != "Bearer at_1" {
			t.Errorf("%v", all)
		}
		if _, err := c.Bookings.Create(t.Context(), BookingCreate{}); !errors.Is(err, ErrExpiredCredential) || len(s.requests()) != 4 || len(g.forms) != 2 {
			t.Errorf("%d requests, %d refreshes: %v", len(s.requests()), len(g.forms), err)
		}
	})
}

// TestRefreshFails checks that a refresh is never repeated, because a refresh token that is used twice revokes the grant, and that a
// token that was not stored is stored before the next request.
func TestRefreshFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, fail := range []step{cut, respond(503, ""), respond(400, `{"error":"invalid_grant"}`)} {
			c, s, g := newGrant(t, Token{RefreshToken: "rt_0"}, nil, respond(200, `{}`))
			g.fail = fail
			_, err := c.Me.Get(t.Context())
			if err == nil || len(g.forms) != 1 || len(s.requests()) != 0 || !strings.HasPrefix(err.Error(), "holdfast: GET /me: refresh the token") {
				t.Errorf("%d refreshes, %d requests: %v", len(g.forms), len(s.requests()), err)
			}
			if e := (*TokenError)(nil); errors.As(err, &e) && e.Code != "invalid_grant" {
				t.Errorf("%+v", e)
			}
		}
		full := true
		var stored []string
		c, s, g := newGrant(t, Token{RefreshToken: "rt_0"}, func(_ context.Context, token Token) error {
			if full {
				return errors.New("disk full")
			}
			stored = append(stored, token.RefreshToken)
			return nil
		}, respond(200, `{}`))
		if _, err := c.Me.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "disk full") || len(s.requests()) != 0 {
			t.Error(err)
		}
		full = false
		if _, err := c.Me.Get(t.Context()); err != nil || len(g.forms) != 1 || len(stored) != 1 || stored[0] != "rt_1" {
			t.Errorf("%v, %d refreshes, stored %v", err, len(g.forms), stored)
		}
	})
}

// TestRefreshContinues checks that a refresh is not lost if the request that started it is cancelled.
func TestRefreshContinues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s, g := newGrant(t, Token{RefreshToken: "rt_0"}, nil, respond(200, `{}`))
		g.wait = 10 * time.Second
		for range 2 { // the second one waits for the refresh of the first one
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			if _, err := c.Me.Get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		}
		if _, err := c.Me.Get(t.Context()); err != nil || len(g.forms) != 1 || s.requests()[0].Header.Get("Authorization") != "Bearer at_1" {
			t.Errorf("%d refreshes: %v", len(g.forms), err)
		}
	})
}
