package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

// luaTest is nginx with Lua in front of a service that verifies the signed caller.
type luaTest struct {
	*testing.T

	peer   Peer
	redis  *redis.Client
	dir    string
	url    string
	served atomic.Int32 // requests that reached the service
	last   atomic.Pointer[caller.Caller]
}

const luaPath = "/api/v1/customers/cu_01m7zbmmn5exnr5ab2hvbd652e"

// startLua starts nginx with a limit of that many requests a minute. Without the packages, which only the benchmark installs, it
// skips the test.
func startLua(t *testing.T, limit int) *luaTest {
	t.Helper()
	path := lookNginx()
	if path == "" || !HasLua() {
		t.Skip("nginx with Lua is not installed: `make bench` installs it")
	}
	address := os.Getenv("TEST_REDIS_URL")
	if address == "" {
		t.Fatal("TEST_REDIS_URL is not set: run `make test`, or `bin/local with -- go test ./loadtest/...`")
	}
	opt, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	key := caller.Key{ID: "k1", Secret: bytes.Repeat([]byte{0x5c, 0}, 16)}
	l := &luaTest{T: t, redis: redis.NewClient(opt), peer: Peer{
		Limit: fmt.Sprint(limit), Target: "customers", Key: key, Scope: "read:customers", Token: apikey.New(caller.Test),
		Caller: caller.Caller{
			Tenant: ids.New[ids.TenantPrefix](), Timezone: "Europe/Berlin", Currency: "EUR", PolicyVersion: 3, Mode: caller.Test,
			Credential: "key_" + strings.ToLower(apikey.Random(12)), Kind: "api_key", Scopes: []string{"write:customers", "read:customers"},
		},
	}}
	service := httptest.NewServer(l.service())
	p := &Platform{Dir: t.TempDir(), Env: map[string]string{"REDIS_URL": address}, checkout: filepath.Join("..", "..", "..")}
	if p.checkout, err = filepath.Abs(p.checkout); err != nil {
		t.Fatal(err)
	}
	l.dir = p.Dir
	process, addr, err := p.NginxLua(t.Context(), path, strings.TrimPrefix(service.URL, "http://"), l.peer)
	t.Cleanup(func() {
		process.Stop()
		service.Close()
		for _, c := range p.closers {
			_ = c.Close()
		}
		keys, _ := l.redis.Keys(context.Background(), "*{"+l.peer.Caller.Credential+"}*").Result()
		_ = l.redis.Del(context.Background(), append(keys, l.principal())...).Err()
		_ = l.redis.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	l.url = "http://" + addr
	return l
}

func (l *luaTest) principal() string {
	sum := apikey.Hash(l.peer.Token)
	return principals + string(sum[:])
}

// service verifies the signed caller as a service does, and responds with internal headers that clients must not see.
func (l *luaTest) service() http.Handler {
	verifier := &caller.Verifier{Self: "customers", Keys: caller.Keys{"gateway": {l.peer.Key}}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.served.Add(1)
		who, from, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now())
		if err != nil || from != "gateway" || r.Header.Get("Authorization") != "" || r.Header.Get("X-Request-Id") != who.RequestID {
			http.Error(w, fmt.Sprintf("%v: %v", err, r.Header), http.StatusTeapot)
			return
		}
		l.last.Store(&who)
		w.Header().Set("X-Internal-Idem-Expires", "1800000000")
		_, _ = io.WriteString(w, "a customer")
	})
}

func (l *luaTest) get(token string) *http.Response {
	l.Helper()
	req, err := http.NewRequestWithContext(l.Context(), http.MethodGet, l.url+luaPath+"?expand=x", nil)
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// TestLuaDoesTheWorkOfTheGateway checks the caller that the service receives, the response's headers, and the count in Redis.
func TestLuaDoesTheWorkOfTheGateway(t *testing.T) {
	t.Parallel()
	l := startLua(t, 1000)
	for n := 1; n <= 3; n++ {
		res := l.get(l.peer.Token)
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || string(body) != "a customer" {
			t.Fatalf("%d %s, %v\n%s", res.StatusCode, body, err, tail(filepath.Join(l.dir, "nginx-lua.log")))
		}
		id := res.Header.Get("X-Request-Id")
		want := l.peer.Caller
		want.RequestID = id
		if got, _ := json.Marshal(l.last.Load()); id == "" || string(got) != marshal(t, want) {
			t.Errorf("caller %s, want %s", got, marshal(t, want))
		}
		for name, value := range map[string]string{
			"RateLimit-Limit": "1000", "RateLimit-Remaining": fmt.Sprint(1000 - n), "RateLimit-Policy": `"default";q=1000;w=60`,
			"X-Service-Scope": "write:customers read:customers", "X-Internal-Idem-Expires": "",
		} {
			if got := res.Header.Get(name); got != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
		if got, reset := res.Header.Get("RateLimit"), res.Header.Get("RateLimit-Reset"); got != fmt.Sprintf(`"default";r=%d;t=%s`, 1000-n, reset) {
			t.Errorf("RateLimit: %s", got)
		}
	}
	if n, err := l.redis.HGet(t.Context(), "rl:{"+l.peer.Caller.Credential+"}", "c").Int(); n != 3 || err != nil {
		t.Errorf("Redis counted %d requests, %v", n, err)
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLuaRefusesAsTheGateway(t *testing.T) {
	t.Parallel()
	l := startLua(t, 2)
	wrong := l.peer.Token[:len(l.peer.Token)-1] + "!"
	for _, token := range []string{"", "x", wrong, apikey.New(caller.Test)} {
		if res := l.get(token); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: status %d", token, res.StatusCode)
		}
	}
	for n, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		res := l.get(l.peer.Token)
		if limited := res.Header.Get("Retry-After") != ""; res.StatusCode != want || limited != (want == http.StatusTooManyRequests) {
			t.Errorf("request %d: status %d, %v", n, res.StatusCode, res.Header)
		}
	}
	if err := l.redis.Set(t.Context(), "st:{"+l.peer.Caller.Credential+"}", "revoked", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if res := l.get(l.peer.Token); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked key: status %d", res.StatusCode)
	}
	if n := l.served.Load(); n != 2 {
		t.Errorf("the service received %d requests, want 2", n)
	}
}

// TestLuaLogsAsTheGateway checks that each request has a line of JSON with the gateway's fields.
func TestLuaLogsAsTheGateway(t *testing.T) {
	t.Parallel()
	l := startLua(t, 1000)
	id := l.get(l.peer.Token).Header.Get("X-Request-Id")
	l.get("x")
	var text []byte
	for end := time.Now().Add(20 * time.Second); bytes.Count(text, []byte("\n")) < 2; time.Sleep(10 * time.Millisecond) {
		var err error
		if text, err = os.ReadFile(filepath.Join(l.dir, "nginx-lua", "access.log")); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("the log is %q", text)
		}
	}
	first, second, _ := strings.Cut(string(text), "\n")
	var line map[string]any
	if err := json.Unmarshal([]byte(first), &line); err != nil {
		t.Fatalf("%v: %s", err, first)
	}
	for name, want := range map[string]any{
		"level": "INFO", "msg": "request", "method": "GET", "route": "/customers/{id}", "status": 200.0, "bytes": float64(len("a customer")),
		"request_id": id, "tenant": l.peer.Caller.Tenant.String(), "mode": "test", "credential": l.peer.Caller.Credential,
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	for _, name := range []string{"duration_ms", "redis_ms", "upstream_ms"} {
		if _, ok := line[name].(float64); !ok {
			t.Errorf("%s is %v", name, line[name])
		}
	}
	if err := json.Unmarshal([]byte(second), &line); err != nil || line["status"] != 401.0 {
		t.Errorf("%s: %v", second, err)
	}
}
