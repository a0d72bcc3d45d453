package store

import (
	"context"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/redistest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/tlstest"

	"holdfast.dev/services/gateway/internal/domain"
)

// The same tests run on one server, and with TLS on a Cluster and behind a Sentinel.
func TestRedis(t *testing.T) {
	t.Parallel()
	for kind, start := range map[string]func(testing.TB, *tlstest.Authority) (string, func()){
		"server": nil, "cluster": redistest.Cluster, "sentinel": redistest.Sentinel,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			address, opt := os.Getenv("TEST_REDIS_URL"), Options{}
			if start != nil {
				a := tlstest.New(t)
				address, _ = start(t, a)
				opt.Access = access(t, a, kind)
			} else if address == "" {
				t.Fatal("TEST_REDIS_URL is not set: run `make test`, or `bin/local with -- go test ./...`")
			}
			r := open(t, address, opt)
			for name, test := range map[string]func(t *testing.T, r *Redis){
				"script counts like domain":                  scriptCountsLikeDomain,
				"Redis's clock and expiry":                   redisClockAndExpiry,
				"script is loaded again and counts once":     scriptIsLoadedAgainAndCountsOnce,
				"stores responses until their end":           storesResponsesUntilTheirEnd,
				"tombstone holds":                            tombstoneHolds,
				"questions of many credentials share a trip": manyCredentialsAtOnce,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, r)
				})
			}
		})
	}
}

func access(t *testing.T, a *tlstest.Authority, kind string) redisx.Access {
	t.Helper()
	x := redisx.Access{CAFile: a.CAFile}
	x.ClientCertFile, x.ClientKeyFile = a.Leaf(t, "gateway")
	if kind == "sentinel" {
		x.SentinelPassword = redistest.SentinelPassword
	}
	return x
}

func open(t *testing.T, address string, opt Options) *Redis {
	t.Helper()
	if opt.Changed == nil {
		opt.Changed = func(bool) {}
	}
	if opt.Timeout == 0 {
		opt.Timeout = 2 * time.Second
	}
	opt.Queue, opt.Dropped = 4096, func() {}
	r, err := Open(address, opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done //nolint:errcheck // the test waits for the end only
		_ = r.Close()
	})
	return r
}

func credential() string { return ids.New[ids.RequestPrefix]().String() }

// The script and domain.Limit implement the same rule.
func scriptCountsLikeDomain(t *testing.T, r *Redis) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		l := domain.Limit{Max: rapid.Int64Range(1, 8).Draw(t, "limit"), Per: time.Minute.Microseconds()}
		who, now := credential(), rapid.Int64Range(1, 1<<50).Draw(t, "start")
		var w domain.Window
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			now += rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, 3*l.Per), rapid.Just(l.Per)).Draw(t, "pause")
			var ok bool
			w, ok = l.Take(w, now)
			got, err := r.Evaluate(Request{Credential: who, Limit: l, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			if got.Passed != ok || got.Window != l.Roll(w, now) || got.Now != now {
				t.Fatalf("script %+v, domain %v %+v at %d", got, ok, w, now)
			}
		}
	})
}

func redisClockAndExpiry(t *testing.T, r *Redis) {
	t.Helper()
	who := credential()
	l := domain.Limit{Max: 600, Per: time.Minute.Microseconds()}
	got, err := r.Evaluate(Request{Credential: who, Limit: l})
	if err != nil || !got.Passed || got.Marker == "" || time.Since(time.UnixMicro(got.Now)).Abs() > time.Minute {
		t.Fatalf("%+v, %v", got, err)
	}
	again, err := r.Evaluate(Request{Credential: who, Limit: l})
	if err != nil || again.Marker != got.Marker || again.Window.Cur != 2 || again.Window.Start != got.Window.Start {
		t.Errorf("%+v, %v", again, err)
	}
	for _, key := range []string{windowKey(who), markerKey(who)} {
		if ttl := r.client.PTTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("%s lives for ever", key)
		}
	}
}

func scriptIsLoadedAgainAndCountsOnce(t *testing.T, r *Redis) {
	t.Helper()
	who := credential()
	for i := range int64(20) {
		if err := r.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		got, err := r.Evaluate(Request{Credential: who, Limit: domain.Limit{Max: 100, Per: time.Minute.Microseconds()}})
		if err != nil || got.Window.Cur != i+1 {
			t.Fatalf("%+v, %v, want %d", got, err, i+1)
		}
	}
}

func storesResponsesUntilTheirEnd(t *testing.T, r *Redis) {
	t.Helper()
	who, print := credential(), [32]byte{1, 2, 3}
	a := domain.Response{Status: 201, ContentType: "application/json", Location: "/l", ETag: `"1"`, Body: []byte("{ }"), RecordExpiresAt: time.Now().Add(time.Hour)}
	value, err := a.Encode(print)
	if err != nil {
		t.Fatal(err)
	}
	r.CacheResponse(who, "k", value, a.RecordExpiresAt)
	got, err := r.Evaluate(Request{Credential: who, Limit: domain.Limit{Max: 1e6, Per: 1e6}, Key: "k"}) // takes the response along
	if err != nil || got.Response == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	known, err := domain.Decode(got.Response, print)
	back := known.Response
	if err != nil || !known.Same || string(back.Body) != "{ }" || back.Location != "/l" || back.ETag != `"1"` || back.Status != 201 {
		t.Errorf("%+v, %v, %v", back, known.Same, err)
	}
	if ttl := r.client.TTL(t.Context(), responseKey(who, "k")).Val(); ttl < 59*time.Minute || ttl > time.Hour {
		t.Errorf("lives %s", ttl)
	}
	if other, _ := domain.Decode(got.Response, [32]byte{}); other.Same {
		t.Error("another fingerprint is the same")
	}
	if withoutKey, _ := r.Evaluate(Request{Credential: who, Limit: domain.Limit{Max: 1e6, Per: 1e6}}); withoutKey.Response != nil {
		t.Error("a response that was not requested")
	}
	r.CacheResponse(who, "alone", value, a.RecordExpiresAt)
	stored := func() bool { return r.client.Exists(t.Context(), responseKey(who, "alone")).Val() == 1 }
	for deadline := time.Now().Add(time.Minute); !stored(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no evaluation followed, and the response is not cached")
		}
	}
}

// TestResponsesInABatch checks that the round trip of evaluations takes along a bounded number of bytes of responses.
func TestResponsesInABatch(t *testing.T) {
	t.Parallel()
	dropped := 0
	client := redis.NewClient(&redis.Options{})
	r := newRedis(client, Options{Dropped: func() { dropped++ }})
	n := &node{redis: r, responses: make(chan cachedResponse, 100), waiting: make(chan struct{}, 1)}
	r.nodes[""] = n
	close(r.ready)
	pipe := client.Pipeline()
	for range 10 {
		r.CacheResponse("c", "k", make([]byte, maxCachedResponse-1), time.Now().Add(time.Hour))
	}
	r.CacheResponse("c", "k", make([]byte, maxCachedResponse+1), time.Now().Add(time.Hour))
	if sets := n.queueResponses(t.Context(), pipe, carriedBytes); len(sets) != 2 || len(n.responses) != 8 {
		t.Errorf("took %d along, %d wait", len(sets), len(n.responses))
	}
	if sets := n.queueResponses(t.Context(), pipe, math.MaxInt); len(sets) != 8 || dropped != 0 {
		t.Errorf("took %d along, dropped %d", len(sets), dropped)
	}
	r.CacheResponse("c", "k", nil, time.Now().Add(time.Second/2))
	if sets := n.queueResponses(t.Context(), pipe, math.MaxInt); len(sets) != 0 || dropped != 1 {
		t.Errorf("took %d along, dropped %d", len(sets), dropped)
	}
}

// A revocation that identity wrote applies from the next request, and does not change the window.
func tombstoneHolds(t *testing.T, r *Redis) {
	t.Helper()
	who, l := credential(), domain.Limit{Max: 600, Per: time.Minute.Microseconds()}
	before, err := r.Evaluate(Request{Credential: who, Limit: l})
	if err != nil || before.State != "" || !before.Passed {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := r.client.Set(t.Context(), StateKey(who), Revoked, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	after, err := r.Evaluate(Request{Credential: who, Limit: l})
	if err != nil || after.Passed || after.State != Revoked || after.Window.Cur != 1 || after.Marker != before.Marker {
		t.Errorf("%+v, %v", after, err)
	}
}

// Concurrent requests of many credentials share pipelines, whose commands are sent to different nodes of a Cluster.
func manyCredentialsAtOnce(t *testing.T, r *Redis) {
	t.Helper()
	const credentials, requests = 40, 20
	l := domain.Limit{Max: 10, Per: time.Hour.Microseconds()}
	var wg sync.WaitGroup
	passed := make([]int, credentials)
	for i := range credentials {
		wg.Add(1)
		go func() {
			defer wg.Done()
			who := credential()
			for range requests {
				got, err := r.Evaluate(Request{Credential: who, Limit: l})
				if err != nil {
					t.Error(err)
					return
				}
				if got.Passed {
					passed[i]++
				}
			}
		}()
	}
	wg.Wait()
	for i, n := range passed {
		if n != 10 {
			t.Errorf("credential %d: %d passed, want 10", i, n)
		}
	}
}
