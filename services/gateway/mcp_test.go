package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"holdfast.dev/proto/internalapi"
)

// tenantOf makes identity respond to getMe and getTenant, for the tests of assistants.
func (w *world) tenantOf() {
	w.identity.pages = func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/me":
			_, _ = io.WriteString(out, `{"object":"api_key","mode":"test","scopes":["read:customers"]}`)
		case "/api/v1/tenant":
			_, _ = io.WriteString(out, `{"object":"tenant","name":"Acme","mode":"test","timezone":"UTC","currency":"USD"}`)
		default:
			fmt.Fprintf(out, `{"registered":%t}`, r.URL.Query().Get("origin") == ownPage)
		}
	}
	w.service.handle = func(out http.ResponseWriter, _ *http.Request) bool {
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"object":"list","data":[`+customerBody("cu_00000000000000000000000000")+`],"has_more":false,"next_cursor":null}`)
		return true
	}
}

// credentialed sends a credential with each request, from a given address.
type credentialed struct{ key, address string }

func (c credentialed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.key)
	if c.address != "" {
		r.Header.Set("X-Forwarded-For", c.address)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// assistant connects the official client.
func (g *gateway) assistant(t *testing.T, key, address string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: g.url + "/mcp", HTTPClient: &http.Client{Transport: credentialed{key, address}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// toolNames returns the tools that a session offers.
func toolNames(t *testing.T, s *mcp.ClientSession) string {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func textOf(r *mcp.CallToolResult) string {
	text, _ := r.Content[0].(*mcp.TextContent)
	return text.Text
}

var findAda = &mcp.CallToolParams{Name: "find_customers", Arguments: map[string]any{"query": "Ada"}}

// The tools of a credential without write scopes only read. Their requests pass all checks of the API: they need the scopes, count
// towards the rate limit, and come from the client's address.
func TestAssistants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t, func(c *Config) { c.TrustedProxyHops = 1 })
	reader := g.assistant(t, w.identity.newKey("read:customers"), "203.0.113.7")
	names := toolNames(t, reader)
	if !strings.Contains(names, "find_customers") || strings.Contains(names, "hold_slot") {
		t.Errorf("a credential without write scopes has the tools %s", names)
	}
	found, err := reader.CallTool(t.Context(), findAda)
	if err != nil || found.IsError || !strings.Contains(textOf(found), "Ada <&>") {
		t.Fatalf("%+v, %v", found, err)
	}
	if from := w.service.last.Header.Get("X-Forwarded-For"); from != "203.0.113.7" {
		t.Errorf("the request of the tool came from %q", from)
	}
	handled, _ := w.service.calls()
	refused, err := reader.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_bookings", Arguments: map[string]any{}})
	if err != nil || !refused.IsError || !strings.Contains(textOf(refused), "insufficient_scope") || !strings.Contains(textOf(refused), "read:bookings") {
		t.Errorf("%+v, %v", refused, err)
	}
	if after, _ := w.service.calls(); after != handled {
		t.Error("a request without the scope reached the service")
	}
	hold, err := reader.CallTool(t.Context(), &mcp.CallToolParams{Name: "hold_slot", Arguments: map[string]any{}})
	if err != nil || !hold.IsError || !strings.Contains(textOf(hold), "connect this server again") {
		t.Errorf("%+v, %v", hold, err)
	}
	if names := toolNames(t, g.assistant(t, w.identity.newKey("read:customers", "write:bookings"), "")); !strings.Contains(names, "hold_slot") {
		t.Errorf("a credential with a write scope has the tools %s", names)
	}
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// both are the media types that a client of the transport accepts.
var both = header("Accept", "application/json, text/event-stream")

// send is a raw message of an assistant.
func (g *gateway) message(t *testing.T, method, body string, edits ...edit) *response {
	t.Helper()
	a, err := g.raw(method, "/mcp", body, append(edits, both)...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A client without a valid credential learns where to get one: RFC 9728, section 5.1.
func TestAssistantsAreChallenged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t)
	revoked, expired := w.identity.newToken(time.Now().Add(time.Hour)), w.identity.newToken(time.Now().Add(-time.Second))
	want := `Bearer resource_metadata="https://booking.test/.well-known/oauth-protected-resource/mcp"`
	if a := g.message(t, "POST", listTools, bearer(revoked)); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if err := w.redis.Set(context.Background(), w.identity.holder(revoked).StateKey(), "revoked", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		edits []edit
		code  string
		want  string
	}{
		"none":     {nil, "missing_credential", want},
		"basic":    {[]edit{header("Authorization", "Basic eDp5")}, "missing_credential", want},
		"bad":      {[]edit{bearer("svc_at_x")}, "invalid_credential", want + `, error="invalid_token"`},
		"unknown":  {[]edit{bearer(w.identity.newKey()[:9] + "x")}, "invalid_credential", want + `, error="invalid_token"`},
		"expired":  {[]edit{bearer(expired)}, "expired_credential", want + `, error="invalid_token"`},
		"revoked":  {[]edit{bearer(revoked)}, "revoked_credential", want + `, error="invalid_token"`},
		"a script": {[]edit{header("Origin", ownPage)}, "missing_credential", want},
	} {
		a := g.message(t, "POST", listTools, test.edits...)
		if a.StatusCode != 401 || a.code() != test.code || a.Header.Get("WWW-Authenticate") != test.want {
			t.Errorf("%s: %d %s %q", name, a.StatusCode, a.code(), a.Header.Get("WWW-Authenticate"))
		}
	}
}

// The metadata that a challenge names are those of the URL that the client used, with its slash: RFC 9728, section 3.3.
func TestTheChallengeNamesItsResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.identity.pages = func(out http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(out, r.URL.Path) }
	g := w.start(t)
	for _, path := range []string{"/mcp", "/mcp/"} {
		a, err := g.raw("POST", path, listTools, both)
		if err != nil {
			t.Fatal(err)
		}
		metadata := "/.well-known/oauth-protected-resource" + path
		if got := a.Header.Get("WWW-Authenticate"); got != `Bearer resource_metadata="https://booking.test`+metadata+`"` {
			t.Errorf("%s: %q", path, got)
		}
		if a, err := g.raw("GET", metadata, ""); err != nil || a.StatusCode != 200 || a.body != metadata {
			t.Errorf("%s: %+v, %v", metadata, a, err)
		}
	}
}

// A client of a later version of the protocol can ask for a stream of changes. There are none, so the response ends immediately instead of
// holding a place of the tenant.
func TestAssistantsOpenNoStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	ended := make(chan *response, 1)
	go func() {
		a, err := g.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`,
			both, bearer(w.identity.newKey()), header("Mcp-Protocol-Version", "2026-07-28"), header("Mcp-Method", "subscriptions/listen"))
		if err != nil {
			t.Error(err)
		}
		ended <- a
	}()
	select {
	case a := <-ended:
		if a == nil || a.StatusCode != 200 || !strings.Contains(a.body, "result") {
			t.Errorf("%+v", a)
		}
	case <-time.After(10 * time.Second):
		t.Error("the stream stays open")
	}
}

// There is no session and no stream, and a message is one JSON-RPC object of at most 1 MiB.
func TestMessagesOfAssistants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t)
	key := bearer(w.identity.newKey())
	for _, method := range []string{"GET", "DELETE", "PUT", "HEAD"} {
		if a := g.message(t, method, "", key); a.StatusCode != 405 || a.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, a.StatusCode, a.Header.Get("Allow"))
		}
	}
	for name, test := range map[string]struct {
		body   string
		edits  []edit
		status int
	}{
		"a message":       {listTools, nil, 200},
		"a notification":  {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202},
		"a batch":         {" \n[" + listTools + "]", nil, 400},
		"no JSON":         {"{", nil, 400},
		"nothing":         {"", nil, 400},
		"too large":       {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, nil, 413},
		"unknown version": {listTools, []edit{header("Mcp-Protocol-Version", "2020-01-01")}, 400},
	} {
		a := g.message(t, "POST", test.body, append(test.edits, key, header("Content-Type", "application/json"))...)
		if a.StatusCode != test.status || len(a.Header["Mcp-Session-Id"]) > 0 {
			t.Errorf("%s: %d %v %s", name, a.StatusCode, a.Header, a.body)
		}
	}
	a, err := g.raw("POST", "/mcp?api_key=x", listTools, key, both)
	if err != nil || a.code() != "query_api_key_unsupported" {
		t.Errorf("%s, %v", a.code(), err)
	}
}

// A client can accept JSON alone, event streams alone, or both, and can write the path with a slash.
func TestFormsOfMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t)
	key := bearer(w.identity.newKey())
	for _, test := range []struct {
		path, accept string
		status       int
		media        string
	}{
		{"/mcp", "application/json, text/event-stream", 200, "application/json"},
		{"/mcp", "application/json", 200, "application/json"},
		{"/mcp", "*/*", 200, "application/json"},
		{"/mcp", "", 200, "application/json"},
		{"/mcp", "text/event-stream", 200, "text/event-stream"},
		{"/mcp", "text/html", 400, "text/plain; charset=utf-8"},
		{"/mcp/", "application/json", 200, "application/json"},
	} {
		a, err := g.raw("POST", test.path, listTools, key, header("Content-Type", "application/json"), func(r *http.Request) { r.Header["Accept"] = []string{test.accept} })
		if err != nil {
			t.Fatal(err)
		}
		if media := a.Header.Get("Content-Type"); a.StatusCode != test.status || media != test.media {
			t.Errorf("%s, %q: %d %s", test.path, test.accept, a.StatusCode, media)
			continue
		}
		if a.StatusCode != 200 {
			continue
		}
		body := a.body
		if test.media == "text/event-stream" {
			event, found := strings.CutPrefix(body, "event: message\ndata: ")
			if !found || !strings.HasSuffix(event, "}\n\n") {
				t.Errorf("%q is not one event", body)
			}
			body = event
		}
		var got struct{ Result struct{ Tools []any } }
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Result.Tools) == 0 {
			t.Errorf("%s, %q: %v %s", test.path, test.accept, err, body)
		}
	}
	a, err := g.raw("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, key, header("Content-Type", "application/json"), header("Accept", "text/event-stream"))
	if err != nil || a.StatusCode != 202 {
		t.Errorf("a notification: %+v, %v", a, err)
	}
}

// A message and each request of its tools count towards the credential's limit. Over it, the response to a message says when to continue.
func TestAssistantsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t, func(c *Config) { c.RateLimit = 2 })
	key, start := bearer(w.identity.newKey()), time.Now()
	for name, what := range []string{"the tenant cannot be read", "the message itself is one too many"} {
		a := g.message(t, "POST", listTools, key)
		if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); a.StatusCode != 429 || a.code() != "rate_limited" || err != nil || wait < 1 || wait > 60 {
			t.Errorf("%d, %s: %d %s, Retry-After %q", name, what, a.StatusCode, a.body, a.Header.Get("Retry-After"))
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the responses took %s", took)
	}
}

// A page whose origin no app has registered cannot send messages, even with a valid credential.
func TestOriginsOfAssistants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t)
	for origin, status := range map[string]int{
		ownPage: 200, "https://booking.test": 200, "https://evil.example": 403, "null": 403, "http://booking.test": 403, "http://localhost:8080": 403,
	} {
		if a := g.message(t, "POST", listTools, bearer(w.identity.newKey()), header("Origin", origin)); a.StatusCode != status || status == 403 && a.code() != "origin_not_allowed" {
			t.Errorf("%s: %d %s", origin, a.StatusCode, a.body)
		}
	}
	a := g.message(t, "OPTIONS", "", header("Origin", ownPage), header("Access-Control-Request-Method", "POST"))
	if a.StatusCode != 204 || !strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "Mcp-Protocol-Version") {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

// Slow calls of one tenant hold at most their share. Calls of other tenants, and of the other mode, continue.
func TestSlowAssistantsHoldOnlyThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t, func(c *Config) { c.MCPMessagesPerTenant = 2 })
	slow, other, live := w.identity.newKey(), w.identity.newKey(), w.identity.newKey()
	tenant := w.identity.change(slow, nil).TenantID
	w.identity.change(live, func(p *internalapi.Principal) { p.TenantID, p.Mode = tenant, "live" })
	sibling := w.identity.newKey()
	w.identity.change(sibling, func(p *internalapi.Principal) { p.TenantID = tenant })
	free, entered := make(chan struct{}), atomic.Int64{}
	respond := w.service.handle
	w.service.set(func(f *fakeService) {
		f.handle = func(out http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.RawQuery, "slow") {
				entered.Add(1)
				<-free
			}
			return respond(out, r)
		}
	})
	call := func(key, query string) *response {
		return g.message(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_customers","arguments":{"query":"`+query+`"}}}`, bearer(key))
	}
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if a := call(slow, "slow"); a.StatusCode != 200 {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		})
	}
	eventually(t, "two calls run", func() bool { return entered.Load() == 2 })
	for name, key := range map[string]string{"the same credential": slow, "another credential of the tenant": sibling} {
		if a := call(key, "quick"); a.StatusCode != 429 || a.code() != "rate_limited" || a.Header.Get("Retry-After") == "" || !strings.Contains(a.body, "2 tool calls") {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	for name, key := range map[string]string{"another tenant": other, "the other mode": live} {
		if a := call(key, "quick"); a.StatusCode != 200 || !strings.Contains(a.body, "Ada") {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	close(free)
	running.Wait()
	if a := call(slow, "quick"); a.StatusCode != 200 {
		t.Errorf("after the calls: %d %s", a.StatusCode, a.body)
	}
}

// A change of a credential's scopes applies to its next message, although its tools are kept in memory.
func TestScopesOfAssistantsChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenantOf()
	g := w.start(t)
	token := w.identity.newToken(time.Now().Add(time.Hour))
	if a := g.message(t, "POST", listTools, bearer(token)); !strings.Contains(a.body, "hold_slot") {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	w.identity.change(token, func(p *internalapi.Principal) { p.Scopes, p.Version = []string{"read:customers"}, 2 })
	if err := w.redis.Set(context.Background(), w.identity.holder(token).StateKey(), "2", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if a := g.message(t, "POST", listTools, bearer(token)); strings.Contains(a.body, "hold_slot") || !strings.Contains(a.body, "find_customers") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
