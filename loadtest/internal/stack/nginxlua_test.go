package stack

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"
)

const (
	luaLimit  = 3 // requests per minute
	publicURL = "https://booking.test"
)

// both are the gateway and nginx with Lua in front of the same service and Redis. Each has its own API keys, so that
// the counters of one do not affect the other.
type both struct {
	*testing.T

	redis        *redis.Client
	gateway, lua side
	seeded       time.Time

	mu     sync.Mutex
	owners map[string]caller.Caller // by the hash of an API key, as identity returns them
	last   caller.Caller            // of the last request that reached the service
}

// side is one of the programs.
type side struct {
	url, log    string
	key, narrow Peer // narrow lacks the scope of the operation
}

// startBoth starts the programs. The fake service also takes the place of identity.
func startBoth(t *testing.T) *both {
	t.Helper()
	b := &both{T: t, owners: map[string]caller.Caller{}}
	address := testservers.Getenv(t, "TEST_REDIS_URL")
	opt, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	b.redis = redis.NewClient(opt)
	secret := bytes.Repeat([]byte{0x5c, 0}, 16)
	service := httptest.NewServer(b.service(caller.Keys{"gateway": {{ID: "k1", Secret: secret}}}))
	p := &Platform{Dir: t.TempDir(), Env: map[string]string{"REDIS_URL": address}}
	if p.checkout, err = filepath.Abs("../../.."); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, one := range p.others {
			one.Stop()
		}
		service.Close()
		_ = b.redis.Close()
	})
	for _, s := range []*side{&b.gateway, &b.lua} {
		s.key = b.peer(caller.Key{ID: "k1", Secret: secret}, "write:customers", "read:customers")
		s.narrow = b.peer(s.key.Key, "write:customers")
	}
	b.startGateway(p, service.URL)
	addr, err := p.NginxLua(t.Context(), strings.TrimPrefix(service.URL, "http://"), b.lua.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.lua.narrow.register(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	b.lua.url, b.lua.log = "http://"+addr, filepath.Join(p.Dir, "nginx-lua", "access.log")
	return b
}

// startGateway starts bin/gateway.
func (b *both) startGateway(p *Platform, service string) {
	b.Helper()
	signed := ":" + hex.EncodeToString(b.gateway.key.Key.Secret)
	var keys []string
	for _, name := range proto.ServiceNames() {
		keys = append(keys, name+"=k1"+signed)
	}
	for _, dir := range []string{"bin", ".run/services"} {
		if err := os.MkdirAll(filepath.Join(p.Dir, dir), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	if err := link(filepath.Join(p.checkout, "bin", "gateway"), filepath.Join(p.Dir, "bin", "gateway")); err != nil {
		b.Fatalf("%v (run `make build`)", err)
	}
	settings := "REDIS_URL=" + p.Env["REDIS_URL"] + "\nUPSTREAM_URL=" + service + "\nCALLER_SIGN_KEYS=" + strings.Join(keys, ",") +
		"\nKAFKA_BROKERS=127.0.0.1:1\n" // nothing listens there: the gateway drops the entries of its request log
	if err := os.WriteFile(filepath.Join(p.Dir, ".run/services/gateway.env"), []byte(settings), 0o600); err != nil {
		b.Fatal(err)
	}
	addr, _, err := p.Gateway(b.Context(), "gateway", map[string]string{"RATE_LIMIT_PER_MINUTE": strconv.Itoa(luaLimit), "PUBLIC_URL": publicURL, "REDIS_TIMEOUT": "10s"})
	if err != nil {
		b.Fatal(err)
	}
	b.gateway.url, b.gateway.log = "http://"+addr, filepath.Join(p.Dir, "gateway.log")
}

// peer returns an API key of a new tenant. A window with two requests ended a moment ago, so they still count in part.
func (b *both) peer(key caller.Key, scopes ...string) Peer {
	b.Helper()
	p := Peer{
		Limit: strconv.Itoa(luaLimit), PublicURL: publicURL, Target: "customers", Key: key, Scope: "read:customers", Token: apikey.New(caller.Test),
		Caller: caller.Caller{
			Tenant: ids.New[ids.TenantPrefix](), Timezone: "Europe/Berlin", Currency: "EUR", PolicyVersion: 3, Mode: caller.Test,
			Credential: "key_" + strings.ToLower(apikey.Random(12)), Kind: "api_key", Scopes: scopes,
		},
	}
	hash := apikey.Hash(p.Token)
	b.owners[hex.EncodeToString(hash[:])] = p.Caller
	if b.seeded.IsZero() {
		b.seeded = time.Now()
	}
	if err := b.redis.HSet(b.Context(), window(p), "s", b.seeded.Add(-5*time.Second).UnixMicro(), "c", 0, "p", 2).Err(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		tag := "{" + p.Caller.Tenant.String() + "}"
		_ = b.redis.Del(context.WithoutCancel(b.Context()), window(p), stateKey(p), "rl:"+tag+":"+string(p.Caller.Mode), "mem:"+tag, p.principal()).Err()
	})
	return p
}

func window(p Peer) string { return "rl:{" + p.Caller.Tenant.String() + "}:" + p.Caller.Credential }

func stateKey(p Peer) string { return "st:{" + p.Caller.Tenant.String() + "}:" + p.Caller.Credential }

// service verifies the signed caller as a service does, and responds with a header that clients must not see. As
// identity, it returns the owners of API keys.
func (b *both) service(keys caller.Keys) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /internal/v1/credentials/lookup", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Hash string `json:"hash"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		b.mu.Lock()
		defer b.mu.Unlock()
		c, ok := b.owners[in.Hash]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":{"code":"credential_not_found","message":"Credential not found."}}`)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": c.Credential, "kind": c.Kind, "mode": c.Mode, "scopes": c.Scopes, "tenant_id": c.Tenant, "timezone": c.Timezone,
			"currency": c.Currency, "policy_version": c.PolicyVersion,
		})
	})
	verifier := &caller.Verifier{Self: "customers", Keys: keys}
	mux.HandleFunc("GET /api/v1/customers/", func(w http.ResponseWriter, r *http.Request) {
		who, from, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now())
		if err != nil || from != "gateway" || r.Header.Get("Authorization") != "" || r.Header.Get("X-Request-Id") != who.RequestID {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.last = who
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("X-Internal-Idem-Expires", "1800000000")
		_, _ = io.WriteString(w, `{"object":"customer"}`)
	})
	return mux
}

// send sends a request with a value of the Authorization header. It returns what clients see: status, headers, and
// body, without the values that differ from request to request.
func (b *both) send(s side, authorization string) (status int, header map[string]string, body string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.url+"/api/v1/customers/cu_01m7zbmmn5exnr5ab2hvbd652e?expand=x", nil)
	if err != nil {
		b.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		b.Fatal(err)
	}
	if res.StatusCode == http.StatusOK {
		b.checkCaller(s)
	}
	header = map[string]string{}
	for name, values := range res.Header {
		header[name] = strings.Join(values, ", ")
	}
	id := header["X-Request-Id"]
	if id == "" {
		b.Errorf("%s: no request id", s.url)
	}
	header["Ratelimit"], _, _ = strings.Cut(header["Ratelimit"], ";t=") // RateLimit-Reset has the time too
	for _, name := range []string{"Date", "Server", "X-Request-Id", "Connection", "Content-Length"} {
		delete(header, name)
	}
	return res.StatusCode, header, strings.ReplaceAll(string(text), id, "ID")
}

// checkCaller checks the caller that the service has received.
func (b *both) checkCaller(s side) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	want := s.key.Caller
	want.RequestID = b.last.RequestID
	if !reflect.DeepEqual(b.last, want) || !strings.HasPrefix(want.RequestID, "req_") {
		b.Errorf("caller %+v, want %+v", b.last, want)
	}
}

// compare sends the same request to both programs and returns the status of the gateway.
func (b *both) compare(name string, authorization func(s side) string) int {
	b.Helper()
	status, header, body := b.send(b.gateway, authorization(b.gateway))
	luaStatus, luaHeader, luaBody := b.send(b.lua, authorization(b.lua))
	for _, name := range []string{"Ratelimit-Reset", "Retry-After"} { // of the same window, a moment later
		seconds, _ := strconv.Atoi(header[name])
		luaSeconds, _ := strconv.Atoi(luaHeader[name])
		if diff := seconds - luaSeconds; time.Duration(max(diff, -diff)-1)*time.Second <= time.Since(b.seeded) && luaHeader[name] != "" {
			luaHeader[name] = header[name]
		}
	}
	if luaStatus != status || luaBody != body || !maps.Equal(luaHeader, header) {
		b.Errorf("%s: nginx returns\n%d %v %s, the gateway\n%d %v %s", name, luaStatus, luaHeader, luaBody, status, header, body)
	}
	return status
}

// TestLuaRespondsAsTheGateway compares nginx with Lua with the gateway: responses, signed callers, counts in Redis, and
// log lines.
func TestLuaRespondsAsTheGateway(t *testing.T) {
	t.Parallel()
	b := startBoth(t)
	unknown := apikey.New(caller.Test)
	bearer := func(s side) string { return "Bearer " + s.key.Token }
	for _, c := range []struct {
		name          string
		authorization func(s side) string
		want          int
	}{
		{"no credential", func(side) string { return "" }, http.StatusUnauthorized},
		{"another scheme", func(side) string { return "Basic eA==" }, http.StatusUnauthorized},
		{"malformed key", func(s side) string { return bearer(s) + "0" }, http.StatusUnauthorized},
		{"wrong checksum", func(s side) string { return bearer(s)[:47] + "!" }, http.StatusUnauthorized},
		{"unknown key", func(side) string { return "Bearer " + unknown }, http.StatusUnauthorized},
		{"valid key", bearer, http.StatusOK},
		{"valid key again", func(s side) string { return "bearer " + s.key.Token }, http.StatusOK},
		{"over the limit", bearer, http.StatusTooManyRequests},
		{"key without the scope", func(s side) string { return "Bearer " + s.narrow.Token }, http.StatusForbidden},
	} {
		if got := b.compare(c.name, c.authorization); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
	b.full()
	b.compare("over a full window", bearer)
	for _, s := range []side{b.gateway, b.lua} {
		if err := b.redis.Set(t.Context(), stateKey(s.key), "revoked", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.compare("revoked key", bearer); got != http.StatusUnauthorized {
		t.Errorf("revoked key: status %d", got)
	}
	if got, want := b.names(b.lua), b.names(b.gateway); !slices.Equal(got, want) {
		t.Errorf("nginx logs %v, the gateway %v", got, want)
	}
}

// full fills the current windows, and checks that both programs have counted the same number of requests.
func (b *both) full() {
	b.Helper()
	for _, s := range []side{b.gateway, b.lua} {
		counted, err := b.redis.HGet(b.Context(), window(s.key), "c").Int()
		if counted != 2 || err != nil {
			b.Errorf("%d requests are counted, %v", counted, err)
		}
		if err := b.redis.HSet(b.Context(), window(s.key), "c", 2*luaLimit).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// names returns the names in the log line of the second request that a program has forwarded. For the first one, the
// gateway also logs the call to identity.
func (b *both) names(s side) []string {
	b.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(s.log)
		if err != nil {
			b.Fatal(err)
		}
		first := true
		for line := range strings.Lines(string(text)) {
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == "request" && fields["status"] == float64(http.StatusOK) {
				if !first {
					return slices.Sorted(maps.Keys(fields))
				}
				first = false
			}
		}
	}
	b.Fatalf("%s has no line of a request", s.log)
	return nil
}
