package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

const loopback = "127.0.0.1:0"

// safeBuffer is a log that a running process writes and the test reads.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// running starts the parts that register adds, and returns a function that stops them and waits.
func running(t *testing.T, register func(rt *Runtime)) (rt *Runtime, log *safeBuffer, stop func() error) {
	t.Helper()
	log = &safeBuffer{}
	rt = newRuntime("test", slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), Common{
		StopTimeout: 3 * time.Second,
		HTTP: HTTPLimits{
			ReadHeaderTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: 5 * time.Second,
			IdleTimeout: time.Second, MaxHeaderBytes: 4096, MaxConnections: 100,
		},
	})
	register(rt)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return rt, log, stop
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func base(t *testing.T, rt *Runtime) string {
	t.Helper()
	eventually(t, "the server listens", func() bool { return rt.Addr(loopback) != nil })
	return "http://" + rt.Addr(loopback).String()
}

func get(url string) (status int, body string, err error) {
	res, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func TestStopsInReverseOrderAndLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	rt, _, stop := running(t, func(rt *Runtime) {
		rt.OnStop("database", func(context.Context) error { note("database"); return nil })
		rt.Go("relay", func(ctx context.Context) error { <-ctx.Done(); note("relay"); return nil })
		rt.HTTP(loopback, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-release
			note("request")
			fmt.Fprint(w, "done")
		}))
	})
	response := make(chan string, 1)
	url := base(t, rt)
	go func() {
		_, body, err := get(url + "/slow")
		response <- fmt.Sprint(body, err)
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	eventually(t, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(release)
	if got := <-response; got != "done<nil>" {
		t.Errorf("the request under way got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if want := []string{"request", "relay", "database"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestAHangingPartDoesNotBlockTheOthers(t *testing.T) {
	t.Parallel()
	var closed atomic.Bool
	_, _, stop := running(t, func(rt *Runtime) {
		rt.Common.StopTimeout = 50 * time.Millisecond
		rt.OnStop("database", func(context.Context) error { closed.Store(true); return nil })
		rt.Go("hangs", func(context.Context) error { select {} })
	})
	if err := stop(); err == nil || !strings.Contains(err.Error(), "stop hangs: still running") {
		t.Errorf("got %v", err)
	}
	if !closed.Load() {
		t.Error("the database was not closed")
	}
}

func TestWorkerIsRestartedAfterErrorAndPanic(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	_, log, stop := running(t, func(rt *Runtime) {
		rt.Go("worker", func(ctx context.Context) error {
			switch runs.Add(1) {
			case 1:
				return errors.New("first")
			case 2:
				panic("second")
			}
			<-ctx.Done()
			return nil
		})
	})
	eventually(t, "a third run", func() bool { return runs.Load() == 3 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`"error":"first"`, "panic: second"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	rt, log, _ := running(t, func(rt *Runtime) {
		rt.HTTP(loopback, http.NotFoundHandler())
		rt.Ready("database", func(context.Context) error {
			if broken.Load() {
				return errors.New("password is wrong")
			}
			return nil
		})
	})
	url := base(t, rt)
	check := func(path string, want int) string {
		t.Helper()
		status, body, err := get(url + path)
		if err != nil || status != want {
			t.Errorf("%s: %d %v, want %d", path, status, err, want)
		}
		return body
	}
	check("/healthz", http.StatusOK)
	check("/readyz", http.StatusOK)
	check("//healthz", http.StatusNotFound)
	broken.Store(true)
	check("/healthz", http.StatusOK)
	if body := check("/readyz", http.StatusServiceUnavailable); body != "not ready: database\n" {
		t.Errorf("body %q", body)
	}
	if !strings.Contains(log.String(), "password is wrong") {
		t.Error("the cause is not in the log")
	}
	broken.Store(false)
	check("/readyz", http.StatusOK)
	rt.stopping.Store(true)
	check("/readyz", http.StatusServiceUnavailable)
}

func TestLimitsOfTheServer(t *testing.T) {
	t.Parallel()
	rt, _, _ := running(t, func(rt *Runtime) {
		rt.Common.HTTP.ReadHeaderTimeout, rt.Common.HTTP.ReadTimeout = 2*time.Second, time.Hour
		rt.HTTP(loopback, http.NotFoundHandler())
	})
	addr := strings.TrimPrefix(base(t, rt), "http://")
	send := func(text string) string {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, text)
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		b, err := io.ReadAll(c)
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() {
			t.Error("the connection stays open")
		}
		return string(b)
	}
	if got := send("GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 16<<10)); !strings.Contains(got, "431") {
		t.Errorf("an enormous header got %.60q", got)
	}
	send("GET / HTTP/1.1\r\nHo") // never ends its header: the server closes the connection
}

func TestATakenAddressStopsTheStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, _, stop := running(t, func(rt *Runtime) {
		rt.HTTP(l.Addr().String(), http.NotFoundHandler())
		rt.Go("never started", func(context.Context) error { return nil })
	})
	err = stop()
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "never started") {
		t.Errorf("a part that has not started was waited for: %v", err)
	}
}

type config struct {
	URL   string `env:"TEST_SERVICE_URL,required"`
	Token string `env:"TEST_SERVICE_TOKEN" secret:"true"`
	Limit int    `env:"TEST_SERVICE_LIMIT" envDefault:"600"`
	Empty string `env:"TEST_SERVICE_EMPTY" secret:"true"`
}

func TestBadConfigStopsTheStartWithOneLine(t *testing.T) {
	t.Setenv("TEST_SERVICE_LIMIT", "many")
	err := Run(context.Background(), App{Name: "x", Config: &config{}, Serve: func(context.Context, *Runtime) error {
		t.Error("served")
		return nil
	}}, []string{"serve"}, io.Discard)
	if err == nil || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "TEST_SERVICE_URL") || !strings.Contains(err.Error(), "Limit") {
		t.Errorf("got %v", err)
	}
}

func TestSampleRatio(t *testing.T) {
	for value, ok := range map[string]bool{"0": true, "0.05": true, "1": true, "-0.1": false, "1.01": false, "NaN": false, "5%": false} {
		t.Setenv("TRACE_SAMPLE_RATIO", value)
		t.Setenv("HTTP_ADDR", loopback)
		ctx, cancel := context.WithCancel(context.Background())
		err := Run(ctx, App{Name: "x", Serve: func(context.Context, *Runtime) error {
			cancel()
			return nil
		}}, []string{"serve"}, io.Discard)
		cancel()
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "TRACE_SAMPLE_RATIO") && !strings.Contains(err.Error(), "TraceRatio") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestStartLineMasksSecrets(t *testing.T) {
	t.Setenv("TEST_SERVICE_URL", "postgres://me:hunter2@h:1/db")
	t.Setenv("TEST_SERVICE_TOKEN", "hunter3")
	t.Setenv("HTTP_ADDR", loopback)
	var log safeBuffer
	ctx, cancel := context.WithCancel(context.Background())
	err := Run(ctx, App{Name: "x", Config: &config{}, Serve: func(_ context.Context, rt *Runtime) error {
		rt.HTTP(rt.Common.HTTPAddr, http.NotFoundHandler())
		cancel()
		return nil
	}}, []string{"serve"}, &log)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "hunter3"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log shows %s: %s", secret, log.String())
		}
	}
	for _, want := range []string{
		`"TEST_SERVICE_URL":"postgres://me:xxxxx@h:1/db"`, `"TEST_SERVICE_TOKEN":"***"`, `"TEST_SERVICE_LIMIT":"600"`,
		`"TEST_SERVICE_EMPTY":""`, `"STOP_TIMEOUT":"15s"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the start line lacks %s: %s", want, log.String())
		}
	}
}

// A service changes a default of shared settings with a value in its own struct.
func TestValueBeforeIsTheDefault(t *testing.T) {
	type shared struct {
		Conns   int32         `env:"TEST_SERVICE_CONNS" envDefault:"16"`
		Timeout time.Duration `env:"TEST_SERVICE_TIMEOUT" envDefault:"1s"`
		Name    string        `env:"TEST_SERVICE_NAME,required"`
	}
	t.Setenv("TEST_SERVICE_NAME", "set")
	for _, value := range []string{"", "3"} {
		want := int32(10)
		if value != "" {
			t.Setenv("TEST_SERVICE_CONNS", value)
			want = 3
		}
		cfg := struct{ Shared shared }{shared{Conns: 10, Name: "default"}}
		if err := Load(&cfg); err != nil || cfg.Shared != (shared{want, time.Second, "set"}) {
			t.Errorf("%q: %+v, %v", value, cfg, err)
		}
	}
}

func TestCommandLoadsFromTheEnvironmentThenTheFile(t *testing.T) {
	t.Setenv("TEST_SERVICE_LIMIT", "7")
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("# said by make up\nTEST_SERVICE_URL=redis://a?b=c\nTEST_SERVICE_LIMIT=8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got config
	app := App{Name: "x", Config: &config{}, Commands: []*cobra.Command{{
		Use: "show", RunE: func(*cobra.Command, []string) error { return Load(&got, file, file+".missing") },
	}}}
	if err := Run(context.Background(), app, []string{"show"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got.URL != "redis://a?b=c" || got.Limit != 7 {
		t.Errorf("got %+v", got)
	}
}
