package service

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
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

// pausedAddr is set in the process that TestDrainOfAPausedProcess starts: the address of its server.
const pausedAddr = "TEST_PAUSED_ADDR"

// A process that gets no processor time at the end of its drain accepts no connections meanwhile. It does not take this for clients that have
// gone, and responds to those that connected.
func TestDrainOfAPausedProcess(t *testing.T) {
	t.Parallel()
	if addr := os.Getenv(pausedAddr); addr != "" {
		ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
		defer stop()
		err := Run(ctx, App{Name: "paused", Serve: func(_ context.Context, rt *Runtime) error {
			rt.HTTP(addr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") }))
			return nil
		}}, []string{"serve"}, io.Discard)
		if err != nil {
			t.Error(err)
		}
		return
	}
	free, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	const delay = time.Second
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDrainOfAPausedProcess$")
	process.Env = append(os.Environ(), pausedAddr+"="+address, "STOP_DELAY="+delay.String(), "METRICS_ADDR=")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	signals := func(s syscall.Signal) {
		t.Helper()
		if err := process.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signals(syscall.SIGTERM)
	time.Sleep(delay * 4 / 5)
	signals(syscall.SIGSTOP)
	var clients []net.Conn
	for range 20 {
		conn, err := net.Dial("tcp", address) // the kernel completes it
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, conn)
	}
	time.Sleep(delay)
	signals(syscall.SIGCONT)
	for i, conn := range clients {
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("connection %d: %v", i, err)
			continue
		}
		if res.StatusCode != http.StatusOK || !res.Close {
			t.Errorf("connection %d: %d", i, res.StatusCode)
		}
		_ = res.Body.Close()
	}
	if err := process.Wait(); err != nil {
		t.Error(err)
	}
}
