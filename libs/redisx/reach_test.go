package redisx_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/redistest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/tlstest"
)

// access returns the settings for clients of the authority's servers.
func access(t *testing.T, a *tlstest.Authority) redisx.Access {
	t.Helper()
	if a == nil {
		return redisx.Access{}
	}
	cert, key := a.Leaf(t, "client")
	return redisx.Access{CAFile: a.CAFile, ClientCertFile: cert, ClientKeyFile: key}
}

func openTo(t *testing.T, address string, access redisx.Access) redis.UniversalClient {
	t.Helper()
	c, err := redisx.Open(address, redisx.Options{Timeout: 5 * time.Second, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// writesAndReads sends one pipeline over keys of many slots, and reads each.
func writesAndReads(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	pipe := c.Pipeline()
	for i := range 50 {
		pipe.Set(t.Context(), fmt.Sprintf("k:{%d}", i), i, time.Minute)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if n, err := c.Get(t.Context(), fmt.Sprintf("k:{%d}", i)).Int(); n != i || err != nil {
			t.Fatalf("%d: %d, %v", i, n, err)
		}
	}
}

// each runs the test without TLS and with TLS.
func each(t *testing.T, test func(t *testing.T, a *tlstest.Authority)) {
	t.Run("plain", func(t *testing.T) { t.Parallel(); test(t, nil) })
	t.Run("TLS", func(t *testing.T) { t.Parallel(); test(t, tlstest.New(t)) })
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a := tlstest.New(t)
	u := redistest.Server(t, a)
	good := access(t, a)
	writesAndReads(t, openTo(t, u, good))
	writesAndReads(t, openTo(t, strings.Replace(u, "127.0.0.1", "localhost", 1), good))
	otherCA := tlstest.New(t)
	for name, refused := range map[string]struct {
		address string
		change  func(*redisx.Access)
		want    string
	}{
		"another's CA":   {u, func(x *redisx.Access) { x.CAFile = otherCA.CAFile }, "certificate signed by unknown authority"},
		"no CA":          {u, func(x *redisx.Access) { x.CAFile = "" }, "certificate signed by unknown authority"},
		"no certificate": {u, func(x *redisx.Access) { x.ClientCertFile, x.ClientKeyFile = "", "" }, ""}, // TLS 1.3 reports it late, often as a broken connection
		"wrong password": {strings.Replace(u, "password", "pass", 1), func(*redisx.Access) {}, "WRONGPASS"},
	} {
		x := good
		refused.change(&x)
		if err := openTo(t, refused.address, x).Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), refused.want) {
			t.Errorf("%s: %v, want %q", name, err, refused.want)
		}
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *tlstest.Authority) {
		u, _ := redistest.Cluster(t, a)
		writesAndReads(t, openTo(t, u, access(t, a)))
		one, _, _ := strings.Cut(u, "&addr=")
		writesAndReads(t, openTo(t, one, access(t, a)))
	})
}

// A dead node delays its own keys by at most twice the time-out, and no others. Because the machine may be busy, a client with more
// time writes the keys, and the test uses the best of five attempts for each key.
func TestDeadNodeOfAClusterFailsFast(t *testing.T) {
	t.Parallel()
	u, kill := redistest.Cluster(t, nil)
	c, err := redisx.Open(u, redisx.Options{Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	writesAndReads(t, openTo(t, u, redisx.Access{}))
	for i := range 50 { // so that c has connections to all nodes
		waitUntilSucceeds(t, func() error { return c.Get(t.Context(), fmt.Sprintf("k:{%d}", i)).Err() })
	}
	kill()
	failed := 0
	for i := range 50 {
		var err error
		best := time.Hour
		for try := 0; try < 5 && best > 400*time.Millisecond; try++ {
			start := time.Now()
			err = c.Get(context.Background(), fmt.Sprintf("k:{%d}", i)).Err()
			best = min(best, time.Since(start))
		}
		if best > 400*time.Millisecond {
			t.Errorf("%d responded after %v", i, best)
		}
		if err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no key was on the dead node")
	}
}

func TestSentinelNamesTheNextMaster(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *tlstest.Authority) {
		u, kill := redistest.Sentinel(t, a)
		x := access(t, a)
		if err := openTo(t, u, x).Ping(t.Context()).Err(); err == nil {
			t.Error("the Sentinel responds without its password")
		}
		x.SentinelPassword = redistest.SentinelPassword
		c := openTo(t, u, x)
		writesAndReads(t, c)
		kill()
		for end := time.Now().Add(30 * time.Second); c.Set(t.Context(), "after", "1", time.Minute).Err() != nil; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the replica never was reached")
			}
		}
	})
}

func TestSettingsThatDoNotFit(t *testing.T) {
	t.Parallel()
	a := tlstest.New(t)
	cert, _ := a.Leaf(t, "client")
	for _, one := range []struct {
		address string
		access  redisx.Access
		want    string
	}{
		{"redis://h:1", redisx.Access{CAFile: a.CAFile}, "REDIS_URL must begin with rediss://"},
		{"rediss://h:1", redisx.Access{CAFile: "/nowhere.pem"}, "REDIS_CA_FILE: open /nowhere.pem"},
		{"rediss://h:1", redisx.Access{ClientCertFile: cert}, "REDIS_CLIENT_CERT_FILE is set without REDIS_CLIENT_KEY_FILE"},
		{"redis://h:1", redisx.Access{SentinelPassword: "hunter2"}, "no master_name"},
	} {
		if _, err := redisx.Open(one.address, redisx.Options{Access: one.access}); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%v, want %q", err, one.want)
		}
	}
}
