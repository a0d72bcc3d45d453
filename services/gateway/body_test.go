package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const longest = 1 << 20

// upload opens a connection with a request that declares a body of `declared` bytes, and sends the first part of it.
func (g *gateway) upload(t *testing.T, method, path, key string, declared int, sent string) net.Conn {
	t.Helper()
	conn := dial(t, strings.TrimPrefix(g.url, "http://"))
	_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, key, declared, sent) // the gateway may already have rejected the request
	return conn
}

// stalled opens connections whose bodies lack their last byte, and returns the growth of the heap.
func (g *gateway) stalled(t *testing.T, key string, connections int) (conns []net.Conn, grown int64) {
	t.Helper()
	body := `{"first_name":"` + strings.Repeat("x", longest-17) + `"`
	before := heap()
	conns = make([]net.Conn, connections)
	var wg sync.WaitGroup
	for i := range conns {
		wg.Go(func() { conns[i] = g.upload(t, "POST", customers, key, longest, body) })
	}
	wg.Wait()
	time.Sleep(300 * time.Millisecond) // the gateway has read from the sockets what it will read
	return conns, heap() - before
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Requests of a credential over its limit are rejected before a byte of their bodies is read. The test is not parallel, because it
// measures the heap of the whole process.
func TestBodiesOverTheLimitAreNotRead(t *testing.T) {
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.RateLimit = 1 })
	key := w.identity.newKey()
	g.send(t, "GET", oneCu, "", bearer(key))
	_, grown := g.stalled(t, key, 300)
	t.Logf("300 stalled bodies of 1 MiB hold %d KiB", grown>>10)
	if grown > 16<<20 {
		t.Errorf("300 stalled bodies of 1 MiB hold %d MiB", grown>>20)
	}
	eventually(t, "all are refused", func() bool { return count(g.server.Pipeline.Metrics.Limited) == 300 })
	if handled, _ := w.service.calls(); handled != 1 {
		t.Errorf("the service was called %d times", handled)
	}
}

// A credential within its limit holds at most 8 MiB, regardless of the number of its bodies, and other credentials are not
// affected. The test is not parallel, because it measures the heap of the whole process.
func TestBodiesOfOneCredentialAreBounded(t *testing.T) {
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	conns, grown := g.stalled(t, key, 300)
	t.Logf("300 stalled bodies of 1 MiB hold %d KiB", grown>>10)
	if grown > 32<<20 {
		t.Errorf("300 stalled bodies of 1 MiB hold %d MiB", grown>>20)
	}
	if held := count(g.server.Pipeline.Metrics.BodyBytes); held > 8<<20 {
		t.Errorf("%v bytes are counted", held)
	}
	other := `{"first_name":"` + strings.Repeat("x", longest-17) + `"}`
	want(t, g.send(t, "POST", customers, other, bearer(w.identity.newKey())), 201, "")
	for _, c := range conns {
		_ = c.Close()
	}
	eventually(t, "all is given back", func() bool { return count(g.server.Pipeline.Metrics.BodyBytes) == 0 })
	want(t, g.send(t, "POST", customers, ada, bearer(key)), 201, "")
}

// Over the limit of a credential the response is 429. Over the limit of the process it is 503 for every credential, until a body
// is released.
func TestBytesOfBodies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		change       func(*Config)
		same, others int
		code         string
	}{
		{"credential", func(c *Config) { c.BodyBytesPerCredential = longest }, 429, 201, "rate_limited"},
		{"process", func(c *Config) { c.BodyBytes = longest }, 503, 503, "unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.start(t, c.change)
			key, other := w.identity.newKey(), w.identity.newKey()
			conn := g.upload(t, "POST", customers, key, longest, `{"first_name":"`+strings.Repeat("x", longest-17)+`"`)
			eventually(t, "the body is held", func() bool { return count(g.server.Pipeline.Metrics.BodyBytes) == longest })
			a := g.send(t, "POST", customers, ada, bearer(key))
			want(t, a, c.same, c.code)
			if a.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
			}
			if a := g.send(t, "POST", customers, ada, bearer(other)); a.StatusCode != c.others {
				t.Errorf("another credential: %d, want %d", a.StatusCode, c.others)
			}
			want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "") // needs no body bytes
			_, _ = io.WriteString(conn, "}")
			if res, body, _ := readResponse(t, conn); res.StatusCode != 201 {
				t.Errorf("%d %s", res.StatusCode, body)
			}
			eventually(t, "the room is given back", func() bool { return count(g.server.Pipeline.Metrics.BodyBytes) == 0 })
			want(t, g.send(t, "POST", customers, ada, bearer(key)), 201, "")
		})
	}
}

// A stalled body is aborted, both while the gateway reads it and while the server only waits for it after an error.
func TestStalledBodiesAreCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.BodyStallTimeout = 100 * time.Millisecond })
	spent := w.start(t, func(c *Config) { c.BodyStallTimeout, c.RateLimit = 100*time.Millisecond, 1 })
	key := w.identity.newKey()
	want(t, spent.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	for _, c := range []struct {
		name, method, path, key string
		at                      *gateway
		status                  int
	}{
		{"read", "POST", customers, key, g, 400},
		{"limit", "POST", customers, key, spent, 429},
		{"no credential", "POST", customers, "", g, 401},
		{"no route", "POST", "/api/v1/nothing", key, g, 404},
		{"outside", "POST", "/docs", key, g, 405},
		{"GET", "GET", oneCu, key, g, 200},
		{"DELETE", "DELETE", oneCu, key, g, 200},
		{"stream", "GET", events + "/stream", key, g, 200},
	} {
		conn := c.at.upload(t, c.method, c.path, c.key, 1000, `{"first_name"`)
		res, body, closed := readResponse(t, conn)
		if res.StatusCode != c.status || !closed || c.status == 400 && !strings.Contains(body, "stalled") {
			t.Errorf("%s: %d %s, closed %v", c.name, res.StatusCode, body, closed)
		}
	}
	// A slow body that continues is not aborted. It takes longer than the time-out, but each of its pieces takes much less.
	const stall = 2 * time.Second
	patient := w.start(t, func(c *Config) { c.BodyStallTimeout = stall })
	conn := patient.upload(t, "POST", customers, key, len(ada), "")
	for i := range len(ada) {
		time.Sleep(stall * 3 / 2 / time.Duration(len(ada)))
		if _, err := io.WriteString(conn, ada[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != 201 {
		t.Fatalf("a slow one: %v, %v", res, err)
	}
	_ = res.Body.Close()
}
