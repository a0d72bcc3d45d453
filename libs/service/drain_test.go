package service

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// oneRequest sends a request on a connection that is open already, and returns the response.
func oneRequest(t *testing.T, conn net.Conn, r *bufio.Reader, path string) *http.Response {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res
}

// A stopping process serves while load balancers still select it. Idle connections stay open. Each response closes its connection,
// including the response to a request that began before the signal. New connections prolong the drain.
func TestDrain(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	rt, _, stop := running(t, func(rt *Runtime) {
		rt.Common.StopDelay = time.Second
		rt.HTTP(loopback, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/slow":
				close(entered)
				<-release
			case "/empty":
				w.WriteHeader(http.StatusNoContent)
				return
			case "/flushed":
				_ = http.NewResponseController(w).Flush()
				return
			}
			fmt.Fprint(w, "done")
		}))
	})
	address := strings.TrimPrefix(base(t, rt), "http://")
	open := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn, bufio.NewReader(conn)
	}
	type idleConn struct {
		net.Conn
		r *bufio.Reader
	}
	idle := map[string]idleConn{}
	for _, path := range []string{"/full", "/empty", "/flushed"} {
		conn, r := open()
		if res := oneRequest(t, conn, r, path); res.Close {
			t.Errorf("%s closes its connection before the stop", path)
		}
		idle[path] = idleConn{conn, r}
	}
	slow, slowReader := open()
	if _, err := fmt.Fprint(slow, "GET /slow HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	eventually(t, "the process is not ready", func() bool { return rt.stopping.Load() })
	close(release)
	if res, err := http.ReadResponse(slowReader, nil); err != nil || !res.Close {
		t.Errorf("a request that began before the signal: %v, %+v", err, res)
	} else {
		_ = res.Body.Close()
	}
	for path, c := range idle {
		if res := oneRequest(t, c, c.r, path); !res.Close {
			t.Errorf("the connection of %s stays open during the drain", path)
		}
	}
	began, served := time.Now(), 0
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		if res := oneRequest(t, conn, bufio.NewReader(conn), "/full"); !res.Close {
			t.Error("a new connection stays open during the drain")
		}
		_ = conn.Close()
		served++
		if time.Since(began) > 1500*time.Millisecond { // the delay is over, and only new connections keep the process
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if time.Since(began) < 1500*time.Millisecond {
		t.Errorf("the process stopped listening %v after the signal, while clients connected (%d served)", time.Since(began), served)
	}
}

// Clients that never stop connecting do not keep a process running.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	rt, _, stop := running(t, func(rt *Runtime) {
		rt.Common.StopDelay = 100 * time.Millisecond
		rt.HTTP(loopback, http.NotFoundHandler())
	})
	address := strings.TrimPrefix(base(t, rt), "http://")
	quit := make(chan struct{})
	defer close(quit)
	go func() {
		for {
			select {
			case <-quit:
				return
			default:
				if conn, err := net.Dial("tcp", address); err == nil {
					_ = conn.Close()
				}
			}
		}
	}()
	done := make(chan error, 1)
	go func() { done <- stop() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the drain does not end")
	}
}
