package store

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/redistest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/testservers"
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
			address, opt := "", Options{}
			if start == nil {
				address = testservers.Getenv(t, "TEST_REDIS_URL")
			} else {
				a := tlstest.New(t)
				address, _ = start(t, a)
				opt.Access = access(t, a, kind)
			}
			r := open(t, address, opt)
			for name, test := range map[string]func(t *testing.T, r *Redis){
				"script counts like domain":                  scriptCountsLikeDomain,
				"script counts names without a tenant":       scriptCountsNames,
				"Redis's clock and expiry":                   redisClockAndExpiry,
				"script is loaded again and counts once":     scriptIsLoadedAgainAndCountsOnce,
				"stores responses until their end":           storesResponsesUntilTheirEnd,
				"tombstone holds":                            tombstoneHolds,
				"keys of a tenant":                           keysOfATenant,
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

// one returns a credential of a new tenant.
func one() Holder {
	return Holder{Tenant: ids.New[ids.TenantPrefix]().String(), Mode: "live", Credential: credential()}
}

func limits(credential, tenant int64) domain.Limits {
	per := time.Minute.Microseconds()
	return domain.Limits{Credential: domain.Limit{Max: credential, Per: per}, Tenant: domain.Limit{Max: tenant, Per: per}}
}

// The script and domain.Limits implement the same rule, for any credentials of a tenant in both modes.
func scriptCountsLikeDomain(t *testing.T, r *Redis) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		l := limits(rapid.Int64Range(1, 8).Draw(t, "limit"), rapid.Int64Range(1, 12).Draw(t, "limit of the tenant"))
		per := l.Credential.Per
		tenant, now := ids.New[ids.TenantPrefix]().String(), rapid.Int64Range(1, 1<<50).Draw(t, "start")
		holders := make([]Holder, rapid.IntRange(1, 4).Draw(t, "credentials"))
		for i := range holders {
			holders[i] = Holder{Tenant: tenant, Mode: rapid.SampledFrom([]string{"live", "test"}).Draw(t, "mode"), Credential: credential()}
		}
		own, all, apps := map[Holder]domain.Window{}, map[string]domain.Window{}, map[string]domain.Window{}
		kinds := map[Holder]string{}
		for _, h := range holders {
			kinds[h] = rapid.SampledFrom([]string{domain.KindKey, domain.KindOAuth}).Draw(t, "kind")
		}
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			now += rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, 3*per), rapid.Just(per)).Draw(t, "pause")
			h := rapid.SampledFrom(holders).Draw(t, "credential")
			l := l.For(domain.OwnLimits{}, kinds[h])
			w, ok := l.Take(domain.Windows{Credential: own[h], Tenant: all[h.Mode], Apps: apps[h.Mode]}, now)
			own[h], all[h.Mode], apps[h.Mode] = w.Credential, w.Tenant, w.Apps
			got, err := r.Evaluate(Request{Holder: h, Limits: l, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			want := domain.Windows{Credential: l.Credential.Roll(w.Credential, now), Tenant: l.Tenant.Roll(w.Tenant, now)}
			if l.HasApps() {
				want.Apps = l.Apps.Roll(w.Apps, now)
			}
			if got.Passed != ok || got.Windows != want || got.Now != now {
				t.Fatalf("script %+v, domain %v %+v at %d", got, ok, want, now)
			}
		}
	})
}

// A name without a tenant has one window.
func scriptCountsNames(t *testing.T, r *Redis) {
	t.Helper()
	who := Holder{Credential: credential()}
	l := domain.Limits{Credential: domain.Limit{Max: 2, Per: time.Minute.Microseconds()}}
	for i := range 3 {
		got, err := r.Evaluate(Request{Holder: who, Limits: l})
		if err != nil || got.Passed != (i < 2) || got.Windows.Tenant != (domain.Window{}) {
			t.Errorf("request %d: %+v, %v", i+1, got, err)
		}
	}
}

func redisClockAndExpiry(t *testing.T, r *Redis) {
	t.Helper()
	who, l := one(), limits(600, 3000)
	got, err := r.Evaluate(Request{Holder: who, Limits: l})
	if err != nil || !got.Passed || got.Marker == "" || time.Since(time.UnixMicro(got.Now)).Abs() > time.Minute {
		t.Fatalf("%+v, %v", got, err)
	}
	again, err := r.Evaluate(Request{Holder: who, Limits: l})
	if err != nil || again.Marker != got.Marker || again.Windows.Credential.Cur != 2 || again.Windows.Credential.Start != got.Windows.Credential.Start {
		t.Errorf("%+v, %v", again, err)
	}
	for _, key := range []string{who.windowKey(), who.tenantKey(), who.markerKey()} {
		if ttl := r.client.PTTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("%s lives for ever", key)
		}
	}
}

func scriptIsLoadedAgainAndCountsOnce(t *testing.T, r *Redis) {
	t.Helper()
	who := one()
	for i := range int64(20) {
		if err := r.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		got, err := r.Evaluate(Request{Holder: who, Limits: limits(100, 100)})
		if err != nil || got.Windows.Credential.Cur != i+1 || got.Windows.Tenant.Cur != i+1 {
			t.Fatalf("%+v, %v, want %d", got, err, i+1)
		}
	}
}

func storesResponsesUntilTheirEnd(t *testing.T, r *Redis) {
	t.Helper()
	who, print := one(), [32]byte{1, 2, 3}
	a := domain.Response{Status: 201, ContentType: "application/json", Location: "/l", ETag: `"1"`, Body: []byte("{ }"), RecordExpiresAt: time.Now().Add(time.Hour)}
	value, err := a.Encode(print)
	if err != nil {
		t.Fatal(err)
	}
	r.CacheResponse(who, "k", value, a.RecordExpiresAt)
	got, err := r.Evaluate(Request{Holder: who, Limits: limits(1e6, 1e6), Key: "k"}) // takes the response along
	if err != nil || got.Response == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	known, err := domain.Decode(got.Response, print)
	back := known.Response
	if err != nil || !known.Same || string(back.Body) != "{ }" || back.Location != "/l" || back.ETag != `"1"` || back.Status != 201 {
		t.Errorf("%+v, %v, %v", back, known.Same, err)
	}
	if ttl := r.client.TTL(t.Context(), who.responseKey("k")).Val(); ttl < 59*time.Minute || ttl > time.Hour {
		t.Errorf("lives %s", ttl)
	}
	if other, _ := domain.Decode(got.Response, [32]byte{}); other.Same {
		t.Error("another fingerprint is the same")
	}
	if withoutKey, _ := r.Evaluate(Request{Holder: who, Limits: limits(1e6, 1e6)}); withoutKey.Response != nil {
		t.Error("a response that was not requested")
	}
	r.CacheResponse(who, "alone", value, a.RecordExpiresAt)
	stored := func() bool { return r.client.Exists(t.Context(), who.responseKey("alone")).Val() == 1 }
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
		r.CacheResponse(Holder{Credential: "c"}, "k", make([]byte, maxCachedResponse-1), time.Now().Add(time.Hour))
	}
	r.CacheResponse(Holder{Credential: "c"}, "k", make([]byte, maxCachedResponse+1), time.Now().Add(time.Hour))
	if sets := n.queueResponses(t.Context(), pipe, carriedBytes); len(sets) != 2 || len(n.responses) != 8 {
		t.Errorf("took %d along, %d wait", len(sets), len(n.responses))
	}
	if sets := n.queueResponses(t.Context(), pipe, math.MaxInt); len(sets) != 8 || dropped != 0 {
		t.Errorf("took %d along, dropped %d", len(sets), dropped)
	}
	r.CacheResponse(Holder{Credential: "c"}, "k", nil, time.Now().Add(time.Second/2))
	if sets := n.queueResponses(t.Context(), pipe, math.MaxInt); len(sets) != 0 || dropped != 1 {
		t.Errorf("took %d along, dropped %d", len(sets), dropped)
	}
}

// A revocation that identity wrote applies from the next request, and does not change the window.
func tombstoneHolds(t *testing.T, r *Redis) {
	t.Helper()
	who, l := one(), limits(600, 3000)
	before, err := r.Evaluate(Request{Holder: who, Limits: l})
	if err != nil || before.State != "" || !before.Passed {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := r.client.Set(t.Context(), who.StateKey(), Revoked, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	after, err := r.Evaluate(Request{Holder: who, Limits: l})
	if err != nil || after.Passed || after.State != Revoked || after.Windows.Credential.Cur != 1 || after.Windows.Tenant.Cur != 1 || after.Marker != before.Marker {
		t.Errorf("%+v, %v", after, err)
	}
}

// Memory grows with the credentials that sent a request: one key each, and two for each mode and one marker of the tenant. All keys are
// on the same node of a Cluster, and expire.
func keysOfATenant(t *testing.T, r *Redis) {
	t.Helper()
	const credentials = 5
	tenant := one().Tenant
	want := []string{"mem:{" + tenant + "}", "rl:{" + tenant + "}:live", "rl:{" + tenant + "}:live:apps", "rl:{" + tenant + "}:test"}
	for i := range credentials {
		who := Holder{Tenant: tenant, Mode: []string{"live", "test"}[i%2], Credential: credential()}
		want = append(want, who.windowKey())
		for range 30 { // most of them are refused
			kind := map[string]string{"live": domain.KindOAuth, "test": domain.KindKey}[who.Mode]
			if _, err := r.Evaluate(Request{Holder: who, Limits: limits(3, 14).For(domain.OwnLimits{}, kind)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := allKeys(t, r, "*{"+tenant+"}*")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	for _, key := range got {
		if ttl := r.client.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 24*time.Hour {
			t.Errorf("%s lives %s", key, ttl)
		}
		if slot := r.client.ClusterKeySlot(t.Context(), key).Val(); slot != r.client.ClusterKeySlot(t.Context(), "{"+tenant+"}").Val() {
			t.Errorf("%s is in slot %d", key, slot)
		}
	}
}

func allKeys(t *testing.T, r *Redis, pattern string) (all []string) {
	t.Helper()
	var mu sync.Mutex
	list := func(ctx context.Context, node redis.UniversalClient) error {
		keys, err := node.Keys(ctx, pattern).Result()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, keys...)
		return err
	}
	err := error(nil)
	if c, ok := r.client.(*redis.ClusterClient); ok {
		err = c.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error { return list(ctx, node) })
	} else {
		err = list(t.Context(), r.client)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Concurrent requests of many credentials share pipelines, whose commands are sent to different nodes of a Cluster.
func manyCredentialsAtOnce(t *testing.T, r *Redis) {
	t.Helper()
	const credentials, requests = 40, 20
	l := limits(10, 1000)
	var wg sync.WaitGroup
	passed := make([]int, credentials)
	for i := range credentials {
		wg.Add(1)
		go func() {
			defer wg.Done()
			who := one()
			for range requests {
				got, err := r.Evaluate(Request{Holder: who, Limits: l})
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
