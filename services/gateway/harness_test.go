package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/secret"
	"holdfast.dev/libs/service"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"

	"holdfast.dev/services/gateway/internal/api"
	"holdfast.dev/services/gateway/internal/api/assistant"
	"holdfast.dev/services/gateway/internal/api/docs"
)

// TestMain runs more tests at once than there are processors, because these tests wait more than they compute.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	m.Run()
}

func testRedisURL(t testing.TB) string {
	t.Helper()
	return testservers.Getenv(t, "TEST_REDIS_URL")
}

// world holds the gateways of one test and everything around them.
type world struct {
	redis    *redis.Client
	identity *fakeIdentity
	service  *fakeService
	cfg      Config
	limits   func(*service.HTTPLimits) // changes those of the server of process
	checker  *contracttest.Checker
}

// targets are the services that the gateway signs calls to.
func targets() []string {
	self, _ := proto.ServiceNamed("gateway")
	return self.Calls
}

// at directs the calls to one service to another address.
func at(service, url string) func(*Config) {
	return func(c *Config) {
		c.Upstreams.Own = maps.Clone(c.Upstreams.Own)
		c.Upstreams.Own[service] = url
	}
}

// noBroker is an address where no broker listens.
const noBroker = "127.0.0.1:1"

// nowhere is an address where no server listens.
const nowhere = "http://127.0.0.1:1"

// newWorld starts the peers. Each credential has a new id, so that the keys of two tests never meet.
func newWorld(t testing.TB) *world {
	t.Helper()
	opt, err := redis.ParseURL(testRedisURL(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{redis: redis.NewClient(opt), checker: contracttest.New(t, proto.OpenAPI)}
	t.Cleanup(func() { _ = w.redis.Close() })
	var sign []string
	verify := map[string]string{} // by target
	for i, target := range targets() {
		verify[target] = strings.Repeat(fmt.Sprintf("%02x", i+1), 32)
		sign = append(sign, target+"=k1:"+verify[target])
	}
	w.identity = newFakeIdentity(t, verify["identity"])
	w.service = newFakeService(t, verify)
	w.cfg = Config{
		RedisURL: secret.New(testRedisURL(t)), RedisTimeout: 2 * time.Second,
		Upstreams: peer.Addresses{Pattern: w.service.url, Own: map[string]string{"identity": w.identity.url}},
		SignKeys:  secret.New(strings.Join(sign, ",")), UpstreamTimeout: 10 * time.Second, bounds: standard,
		RateLimit: 600, Compressions: 1, OAuthRateLimit: 6000, PrincipalCacheTTL: 30 * time.Second,
		Kafka: kafkax.Settings{Brokers: []string{noBroker}}, // tests of the request log set others
	}
	return w
}

// gateway is one running gateway.
type gateway struct {
	*world
	url    string
	server *api.Server
	log    *lines
}

// publicURL is the URL of the gateways of the tests, and served returns their documents, which are always the same.
const publicURL = "https://booking.test/"

var served = sync.OnceValues(func() (*docs.Pages, error) { return documents(publicURL) })

// start runs a gateway. change edits its settings first.
func (w *world) start(t testing.TB, change ...func(*Config)) *gateway {
	t.Helper()
	cfg := w.cfg
	for _, c := range change {
		c(&cfg)
	}
	log := &lines{}
	logger := slog.New(slog.NewJSONHandler(log, nil))
	pages, err := served()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := cfg.Kafka.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	writer := kafkax.NewWriter(cluster, topics(2)...)
	server, store, err := build(cfg, pages, writer, writer, logger, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	server.PublicURL = publicURL
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	logged := make(chan error, 1)
	go func() { logged <- server.Pipeline.Requests.Run(ctx) }()
	handler := obs.Handler(logger, nil, server.Handler())
	server.Assistant = assistant.New(strings.TrimSuffix(publicURL, "/"), handler, logger)
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		srv.Close()
		cancel()
		<-ended  //nolint:errcheck // the test waits for the end only
		<-logged //nolint:errcheck // like ended
		_ = writer.Close()
		_ = store.Close()
	})
	return &gateway{world: w, url: srv.URL, server: server, log: log}
}

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// response is a received response.
type response struct {
	*http.Response
	body string
}

func (a *response) code() string {
	var e struct {
		Error struct{ Code string }
	}
	_ = json.Unmarshal([]byte(a.body), &e)
	return e.Error.Code
}

type edit func(*http.Request)

func header(name, value string) edit { return func(r *http.Request) { r.Header.Add(name, value) } }

func bearer(key string) edit { return header("Authorization", "Bearer "+key) }

// send sends one request and checks the response against the contract. A body that is not empty is sent as JSON.
func (g *gateway) send(t testing.TB, method, path, body string, edits ...edit) *response {
	t.Helper()
	a, err := g.try(t, method, path, body, edits...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// try is send for other goroutines, which must not end the test.
func (g *gateway) try(t testing.TB, method, path, body string, edits ...edit) (*response, error) {
	t.Helper()
	a, err := g.raw(method, path, body, edits...)
	if err != nil {
		return nil, err
	}
	g.checker.Check(t, a.Request, a.Response, []byte(a.body))
	if id := a.Header.Get("X-Request-Id"); !strings.HasPrefix(id, "req_") {
		t.Errorf("%s %s: X-Request-Id %q", method, path, id)
	}
	return a, nil
}

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}}

// raw sends a request whose response is not in the contract.
func (g *gateway) raw(method, path, body string, edits ...edit) (*response, error) {
	req, err := http.NewRequest(method, g.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, e := range edits {
		e(req)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return &response{Response: res, body: string(b)}, err
}

func want(t testing.TB, a *response, status int, code string) {
	t.Helper()
	if a.StatusCode != status || a.code() != code {
		t.Errorf("%s %s: %d %q, want %d %q\n%s", a.Request.Method, a.Request.URL, a.StatusCode, a.code(), status, code, a.body)
	}
}

// maxWait is the deadline for waiting in tests. Only a failing test reaches it.
const maxWait = time.Minute

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(maxWait); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", maxWait, what)
		}
	}
}

func count(c prometheus.Collector) float64 { return testutil.ToFloat64(c) }
