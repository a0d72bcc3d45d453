package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
)

func TestWhatReachesTheService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	a := g.send(t, "PATCH", strings.TrimPrefix(oneCu, "/api"), ada, bearer(key),
		header("X-Caller", "gateway.k1.forged"), header("X-Internal-Idem-Cache", "no"), header("x-internal-tenant", "t"),
		header("Connection", "X-Caller"), header("Cookie", "a=b"), header("X-Request-Id", "mine"),
		header("If-Match", `"3"`), header("Idempotency-Key", "k"), header("X-Forwarded-For", "6.6.6.6"))
	want(t, a, 200, "")
	r, who := w.service.last, w.service.caller
	if r.URL.Path != oneCu || w.service.lastBody != ada {
		t.Errorf("%s %s %q", r.Method, r.URL, w.service.lastBody)
	}
	got := r.Header.Clone()
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Idempotency-Key": "k", "If-Match": `"3"`, "X-Forwarded-For": "127.0.0.1",
		"X-Request-Id": a.Header.Get("X-Request-Id"), "Content-Length": fmt.Sprint(len(ada)),
	} {
		if got.Get(name) != value {
			t.Errorf("%s %q, want %q", name, got.Get(name), value)
		}
		got.Del(name)
	}
	if tp := got.Get("Traceparent"); len(tp) != 55 || !strings.HasPrefix(tp, "00-") {
		t.Errorf("traceparent %q", got.Get("Traceparent"))
	}
	got.Del("Traceparent")
	got.Del(caller.Header) // the fake has verified it
	if len(got) > 0 {
		t.Errorf("these went through: %v", got)
	}
	p := w.identity.change(key, nil)
	if who.Credential != p.ID || who.Tenant.String() != p.TenantID || who.RequestID != a.Header.Get("X-Request-Id") || who.Mode != caller.Test {
		t.Errorf("caller %+v", who)
	}
	for name := range a.Header {
		if strings.HasPrefix(strings.ToLower(name), "x-internal") || name == "Server" {
			t.Errorf("%s reached the client", name)
		}
	}
}

// Paths that would equal others after cleaning or unescaping are forwarded unchanged.
func TestPathsAreNotRewritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	for _, path := range []string{customers + "/..", customers + "/%2e%2e", customers + "/a%2Fb", customers + "/cu_1;x", customers + "/%00", customers + "/caf%C3%A9"} {
		a, err := g.try(t, "GET", path, "", bearer(key))
		if err != nil || a.StatusCode != 200 || w.service.last.URL.EscapedPath() != path {
			t.Errorf("%s: %v, reached the service as %s", path, err, w.service.last.URL.EscapedPath())
		}
	}
	q := oneCu + "?limit=1&a=%zz&b=;c&d=%20+%2B&metadata[k]=v"
	if _, err := g.try(t, "GET", q, "", bearer(key)); err != nil || w.service.last.URL.RawQuery != strings.SplitN(q, "?", 2)[1] {
		t.Errorf("%v, query %q", err, w.service.last.URL.RawQuery)
	}
}

// A raw # would end a target on the way and hide unknown parameters after it. An escaped one is an ordinary character.
func TestRawHashInATarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	for target, status := range map[string]int{
		oneCu + "?limit=1#&nonsense=1": 400, oneCu + "#": 400, customers + "#/../x": 400, "/nothing#": 400, "/docs#top": 400,
		"http://x" + oneCu + "?a=%23#": 400, oneCu + "?a=%23": 200, customers + "/a%23": 200,
	} {
		conn := dial(t, strings.TrimPrefix(g.url, "http://"))
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", target, key)
		res, body, _ := readResponse(t, conn)
		if res.StatusCode != status || status == 400 && (!strings.Contains(body, `"malformed_request"`) || res.Header.Get("X-Request-Id") == "") {
			t.Errorf("%s: %d %s", target, res.StatusCode, body)
		}
	}
	if handled, _ := w.service.calls(); handled != 2 {
		t.Errorf("%d reached the service", handled)
	}
}

func TestDeadAndSlowService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead := w.start(t, at("customers", nowhere))
	a := dead.send(t, "POST", customers, ada, bearer(w.identity.newKey()))
	want(t, a, 503, "unavailable")
	if a.Header.Get("Retry-After") == "" || a.Header.Get("X-Service-Scope") == "" {
		t.Errorf("headers %v", a.Header)
	}
	slow := w.start(t, func(c *Config) { c.UpstreamTimeout = time.Second }) // a loaded machine connects within it
	w.service.set(func(f *fakeService) { f.delay = 3 * time.Second })
	handled, _ := w.service.calls()
	want(t, slow.send(t, "POST", customers, ada, bearer(w.identity.newKey())), 504, "upstream_timeout")
	want(t, slow.send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 504, "upstream_timeout")
	if after, _ := w.service.calls(); after-handled != 2 {
		t.Errorf("two slow calls were sent %d times", after-handled)
	}
}

// A refused connection is retried for every call, because behind a load balancer the next attempt may reach a running process.
// Here the service starts while the call waits.
func TestARefusedConnectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	target, err := url.Parse(w.service.url)
	if err != nil {
		t.Fatal(err)
	}
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := reserved.Addr().String()
	_ = reserved.Close()
	g := w.start(t, at("customers", "http://"+address))
	late := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(late.Close)
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = late.Listener.Close()
		if late.Listener, err = net.Listen("tcp", address); err == nil {
			late.Start()
		}
	}()
	a := g.send(t, "POST", customers, ada, bearer(w.identity.newKey()))
	if calls, _ := w.service.calls(); a.StatusCode != http.StatusCreated || calls != 1 {
		t.Errorf("%d after %d calls", a.StatusCode, calls)
	}
}

// A connection that breaks without a response is retried only when that is safe.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	for _, c := range []struct {
		method, path, body, key string
		status, calls           int
	}{
		{"GET", oneCu, "", "", 200, 2},
		{"POST", customers, ada, "k", 201, 2},
		{"POST", customers, ada, "", 503, 1},
		{"DELETE", oneCu, "", "", 503, 1},
	} {
		broken := false
		w.service.set(func(f *fakeService) {
			f.handled = 0
			f.handle = func(w http.ResponseWriter, _ *http.Request) bool {
				if broken {
					return false
				}
				broken = true
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					_ = conn.Close()
				}
				return true
			}
		})
		edits := []edit{bearer(w.identity.newKey())}
		if c.key != "" {
			edits = append(edits, header("Idempotency-Key", c.key))
		}
		a := g.send(t, c.method, c.path, c.body, edits...)
		if calls, _ := w.service.calls(); a.StatusCode != c.status || calls != c.calls {
			t.Errorf("%s with key %q: %d after %d calls, want %d after %d", c.method, c.key, a.StatusCode, calls, c.status, c.calls)
		}
	}
}

func TestARefusedSignatureIsAnInternalError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	w.service.set(func(f *fakeService) {
		f.handle = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(401); return true }
	})
	want(t, g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 500, "internal_error")
}

func TestPanicIsAnErrorResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	g.server.Pipeline.Upstreams = nil // a call of a service would now be a nil call
	a := g.send(t, "GET", oneCu, "", bearer(w.identity.newKey()))
	want(t, a, 500, "internal_error")
	if !strings.Contains(g.log.String(), "goroutine") || strings.Contains(a.body, "nil") {
		t.Error("the panic is not in the log, or is in the response")
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	fits := `{"first_name":"` + strings.Repeat("x", 1<<20-17) + `"}`
	for _, c := range []struct {
		body   string
		status int
	}{{fits, 201}, {fits + " ", 413}} {
		want := c.status
		for _, chunked := range []bool{false, true} {
			a := g.send(t, "POST", customers, c.body, bearer(key), func(r *http.Request) {
				if chunked {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), -1
				}
			})
			if a.StatusCode != want {
				t.Errorf("%d bytes, chunked %v: %d, want %d", len(c.body), chunked, a.StatusCode, want)
			}
		}
	}
}

// A body whose declared length is over the limit is rejected before a byte of it is read.
func TestDeclaredTooLongIsNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(maxWait))
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1048577\r\n\r\n",
		customers, w.identity.newKey())
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("%v, %v", res, err)
	}
	_ = res.Body.Close()
}

func TestWideLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	a := g.send(t, "POST", customers+"?x=sensitive", ada, bearer(key), header("X-Request-Id", "client-id"), header("Idempotency-Key", "private"))
	var line map[string]any
	eventually(t, "a line", func() bool { return json.Unmarshal([]byte(lastLine(g)), &line) == nil })
	for name, value := range map[string]any{
		"route": "/customers", "method": "POST", "status": 201.0, "request_id": a.Header.Get("X-Request-Id"),
		"client_request_id": "client-id", "credential": w.identity.id(key), "mode": "test", "tenant": w.identity.change(key, nil).TenantID,
	} {
		if line[name] != value {
			t.Errorf("%s is %v, want %v", name, line[name], value)
		}
	}
	for _, name := range []string{"redis_ms", "upstream_ms", "duration_ms", "trace_id"} {
		if line[name] == nil {
			t.Errorf("no %s in %v", name, line)
		}
	}
	for _, secret := range []string{key, key[9:], "sensitive", "a@example.com", "private"} {
		if strings.Contains(g.log.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

// Only addresses from the trusted proxies count, because a client can send anything before them.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for hops, address := range []string{"127.0.0.1", "3.3.3.3", "2.2.2.2", "127.0.0.1"} {
		g := w.start(t, func(c *Config) { c.TrustedProxyHops = hops })
		g.send(t, "GET", oneCu, "", bearer(w.identity.newKey()), header("X-Forwarded-For", "2.2.2.2, 3.3.3.3"))
		if got := w.service.last.Header.Get("X-Forwarded-For"); got != address {
			t.Errorf("%d hops: %q, want %q", hops, got, address)
		}
	}
}
