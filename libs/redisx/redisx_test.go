package redisx_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/testservers"
)

const bound = 20 * time.Millisecond

func address(t *testing.T) string {
	t.Helper()
	return testservers.Getenv(t, "TEST_REDIS_URL")
}

func open(t *testing.T, address string) redis.UniversalClient {
	t.Helper()
	c, err := redisx.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// fails runs a command that must fail in time, more than once, because the machine may be busy.
func fails(t *testing.T, what string, run func(ctx context.Context) error) {
	t.Helper()
	best := time.Hour
	for try := 0; try < 30 && best > bound; try++ {
		start := time.Now()
		if err := run(context.Background()); err == nil {
			t.Fatalf("%s: no error", what)
		}
		best = min(best, time.Since(start))
	}
	if best > bound {
		t.Errorf("%s: error after %v, want at most %v", what, best, bound)
	}
}

func TestCommandsAndLine(t *testing.T) {
	t.Parallel()
	c, err := redisx.Open(address(t), redisx.Options{Timeout: time.Minute}) // other tests check the bound of 20 ms
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, line := obs.WithLine(context.Background())
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if attrs := line.Attrs(); len(attrs) != 1 || attrs[0].Key != "redis_ms" {
		t.Errorf("line: %v", attrs)
	}
}

// proxy forwards to a real Redis until hung is set. Then it reads without responding, as a stopped process does.
func proxy(t *testing.T, target string, hung *atomic.Bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	forward := func(dst io.Writer, src io.Reader) {
		buf := make([]byte, 4096)
		for {
			n, err := src.Read(buf)
			if err != nil {
				return
			}
			if !hung.Load() {
				_, _ = dst.Write(buf[:n])
			}
		}
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			t.Cleanup(func() { _ = in.Close(); _ = out.Close() })
			go forward(out, in)
			go forward(in, out)
		}
	}()
	return l.Addr().String()
}

func TestHungRedisFailsFastAndComesBack(t *testing.T) {
	t.Parallel()
	real, err := url.Parse(address(t))
	if err != nil {
		t.Fatal(err)
	}
	var hung atomic.Bool
	through := *real
	through.Host = proxy(t, real.Host, &hung)
	c := open(t, through.String())
	waitUntilReachable(t, c)
	hung.Store(true)
	fails(t, "hung, open connections and new ones", func(ctx context.Context) error { return c.Ping(ctx).Err() })
	fails(t, "hung, pipeline", func(ctx context.Context) error {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { return p.Ping(ctx).Err() })
		return err
	})
	hung.Store(false)
	waitUntilReachable(t, c)
}

// waitUntilReachable waits until a command succeeds.
func waitUntilReachable(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	waitUntilSucceeds(t, func() error { return c.Ping(t.Context()).Err() })
}

// waitUntilSucceeds repeats a command of a Redis that is running: on a busy machine it can take longer than the client's time-out.
func waitUntilSucceeds(t *testing.T, command func() error) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		err := command()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("Redis is there and commands still fail: %v", err)
		}
	}
}

func TestDeadRedisFailsFast(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := open(t, "redis://"+l.Addr().String())
	fails(t, "accepts and never responds", func(ctx context.Context) error { return silent.Ping(ctx).Err() })
	_ = l.Close()
	refused := open(t, "redis://"+l.Addr().String())
	fails(t, "refuses connections", func(ctx context.Context) error { return refused.Ping(ctx).Err() })
}

func TestOpenRefusesAndHidesThePassword(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "http://u:hunter2@h:1", "redis://u:hunter2@h:x", "redis://u:hunter2@h:1/none", "redis://u:hunter2@[::1",
		"redis://u:hunter2@", "redis://u:hunter2@h:1/2?addr=b:2", "redis://u:hunter2@h:1?cluster=perhaps", "redis://u:hunter2@h:1/2?cluster=true",
		"redis://u:hunter2@h:1?cluster=true&addr=b", "redis://u:hunter2@h:1?cluster=true&master_name=m", "redis://u:hunter2@h:1?pool_size=9",
	} {
		if _, err := redisx.Open(bad); err == nil {
			t.Errorf("%q was taken", bad)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	c := open(t, "redis://a:1?addr=b:2")
	if _, ok := c.(*redis.ClusterClient); !ok {
		t.Errorf("two nodes give a %T", c)
	}
}
