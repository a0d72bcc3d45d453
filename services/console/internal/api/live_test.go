package api_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast.dev/proto/internalapi"
)

// opened is an open live page, with the server in front of it.
type opened struct {
	t     *testing.T
	p     *platform
	front *httptest.Server
}

func newOpened(t *testing.T, beat time.Duration) *opened {
	t.Helper()
	p := newPlatform(t, options{beat: beat})
	p.setResponse("streamEvents", func(call) response { return response{http.StatusOK, []byte(": open\n\n")} })
	front := httptest.NewServer(p.engine)
	t.Cleanup(front.Close)
	return &opened{t, p, front}
}

// live opens a live page with a session and another cookie. The response ends with the test.
func (o *opened) live(token, cookie string) *http.Response {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	o.t.Cleanup(cancel)
	r := o.p.signed(request{Method: http.MethodGet, Path: o.front.URL + "/admin/alpha/test/live", Token: token}).WithContext(ctx)
	r.RequestURI = ""
	if cookie != "" {
		r.Header.Add("Cookie", "x="+cookie)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// TestPlacesOfLivePages checks that a session can have ten live pages and its operator twenty, regardless of other cookies. After
// one is closed, another can be opened.
func TestPlacesOfLivePages(t *testing.T) {
	t.Parallel()
	o := newOpened(t, time.Minute)
	o.p.signIn("owner2", tenant(alpha, "alpha", "owner"))
	o.p.signIn("owner3", tenant(alpha, "alpha", "owner"))
	ok := map[string]int{}
	var first *http.Response
	for i := range 15 {
		for _, session := range []string{"owner", "owner2", "owner3"} {
			switch res := o.live(session, strings.Repeat("y", i+1)); res.StatusCode {
			case http.StatusOK:
				ok[session]++
				first = res
			case http.StatusTooManyRequests:
			default:
				t.Fatalf("%d", res.StatusCode)
			}
		}
	}
	if n := ok["owner"] + ok["owner2"] + ok["owner3"]; n != 20 || ok["owner"] > 10 || ok["owner2"] > 10 {
		t.Errorf("%v", ok)
	}
	_ = first.Body.Close()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if o.live("owner3", "").StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a page that was closed is not free")
		}
	}
}

// TestALivePageEndsWithItsSession checks that a live page ends soon after its session ends: by a sign-out, by expiration, by the
// end of the membership, or by a change of the role. It continues while the session exists, and its checks do not extend the
// session.
func TestALivePageEndsWithItsSession(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *platform, s *internalapi.Session){
		"signed out": func(p *platform, _ *internalapi.Session) { delete(p.sessions, sum("clerk")) },
		"removed":    func(_ *platform, s *internalapi.Session) { s.Tenants = nil },
		"role": func(_ *platform, s *internalapi.Session) {
			s.Tenants = []internalapi.SessionTenant{tenant(alpha, "alpha", "viewer")}
		},
		"another": func(_ *platform, s *internalapi.Session) { s.SessionID = "ses_another" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOpened(t, 400*time.Millisecond)
			s := o.p.signIn("clerk", tenant(alpha, "alpha", "staff"))
			res := o.live("clerk", "")
			lines := bufio.NewScanner(res.Body)
			for seen := 0; seen < 3; {
				if !lines.Scan() {
					t.Fatalf("it ends while the session is there: %v", lines.Err())
				}
				if lines.Text() == ": still here" {
					seen++
				}
			}
			o.p.mu.Lock()
			for _, c := range o.p.calls {
				if c.ID == "lookupSession" && !strings.Contains(string(c.Body), `"watch":true`) {
					t.Errorf("a look prolongs the session: %s", c.Body)
				}
			}
			change(o.p, s)
			o.p.mu.Unlock()
			for lines.Scan() { // to the end
			}
			if err := lines.Err(); err != nil {
				t.Errorf("it does not end: %v", err)
			}
		})
	}
}
