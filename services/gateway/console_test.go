package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
)

// console starts a fake console that verifies the gateway's signature and responds with respond.
func (w *world) console(t *testing.T, respond http.HandlerFunc) func(*Config) {
	t.Helper()
	secret := ""
	for _, key := range strings.Split(w.cfg.SignKeys.Get(), ",") {
		if rest, ok := strings.CutPrefix(key, "console="); ok {
			secret = rest
		}
	}
	keys, err := caller.ParseKeys("gateway=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	verifier := &caller.Verifier{Self: "console", Keys: keys}
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if who, from, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now()); err != nil || from != "gateway" || !who.Tenant.IsZero() {
			t.Errorf("%s %s: %+v from %q: %v", r.Method, r.URL, who, from, err)
		}
		respond(out, r)
	}))
	t.Cleanup(srv.Close)
	return at("console", srv.URL)
}

// The operators' pages are forwarded with the browser headers that pages need. No other header reaches or leaves the console.
func TestTheConsoleIsForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	came := make(chan string, 100)
	g := w.start(t, w.console(t, func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- fmt.Sprintf("%s %s %q cookie=%s hx=%s secret=%s", r.Method, r.URL.RequestURI(), body, r.Header.Get("Cookie"), r.Header.Get("Hx-Request"), r.Header.Get("X-Internal-Secret"))
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		out.Header().Set("Content-Security-Policy", "default-src 'none'")
		out.Header().Set("X-Internal-Secret", "x")
		out.Header().Set("Content-Disposition", `attachment; filename="a.csv"`)
		_, _ = io.WriteString(out, "page")
	}))
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/admin", "", `GET /admin "" cookie=c=3 hx=true secret=`},
		{"GET", "/admin/demo/test/bookings?status=pending", "", `GET /admin/demo/test/bookings?status=pending "" cookie=c=3 hx=true secret=`},
		{"POST", "/admin/demo/test/bookings/new", "a=b", `POST /admin/demo/test/bookings/new "a=b" cookie=c=3 hx=true secret=`},
		{"GET", "/admin/demo/test/bookings.csv", "", `GET /admin/demo/test/bookings.csv "" cookie=c=3 hx=true secret=`},
	} {
		a, err := g.raw(c.method, c.path, c.body, header("Cookie", "c=3"), header("Hx-Request", "true"), header("X-Internal-Secret", "forged"), header("X-Caller", "forged"))
		if err != nil || a.StatusCode != 200 || a.body != "page" || a.Header.Get("X-Internal-Secret") != "" || a.Header.Get("Content-Disposition") == "" {
			t.Errorf("%s %s: %+v %v", c.method, c.path, a, err)
		}
		if got := <-came; got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	for _, c := range [][2]string{
		{"GET", "/admin/../internal/v1/x"}, {"GET", "/admin/%2e%2e/internal"}, {"GET", "/admin/a%2f..%2fb"}, {"GET", "/admin/a%5cb"}, {"PUT", "/admin/demo/test/today"}, {"POST", "/admin"}, {"GET", "/adminx"},
	} {
		if a, err := g.raw(c[0], c[1], ""); err != nil || a.StatusCode != 404 && a.StatusCode != 405 {
			t.Errorf("%v: %+v %v", c, a, err)
		}
	}
	if len(came) > 0 {
		t.Errorf("the console was called: %s", <-came)
	}
}

// A page's updates arrive as they are sent. The streams of one session are limited separately from those of others, regardless of
// other cookies.
func TestLivePagesAreForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := make(chan struct{})
	g := w.start(t, w.console(t, func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(out, "event: change\n\n")
		_ = http.NewResponseController(out).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}), func(c *Config) { c.StreamsPerCredential = 2 })
	t.Cleanup(func() { close(end) })
	open := func(cookie string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/admin/demo/test/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", cookie)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	for _, cookie := range []string{"holdfast_session=1", "x=1; holdfast_session=1", "holdfast_session=2"} {
		res := open(cookie)
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "event: change\n" {
			t.Errorf("%q %v", line, err)
		}
	}
	for _, cookie := range []string{"holdfast_session=1", "x=2; holdfast_session=1", "holdfast_session=1; y=3", `holdfast_session="1"`} {
		if res := open(cookie); res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("a third stream of one session, with %s: %d", cookie, res.StatusCode)
		}
	}
}
