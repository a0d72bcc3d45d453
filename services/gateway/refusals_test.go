package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
)

// call sends a request to op that passes the checks before the service.
func (g *gateway) call(t *testing.T, op *contract.Operation, query string, edits ...edit) *response {
	t.Helper()
	body := ""
	if op.HasBody {
		body = "{}"
	}
	path := op.Path
	for _, name := range op.PathParams {
		path = strings.ReplaceAll(path, "{"+name+"}", "x")
	}
	a, err := g.try(t, op.Method, "/api/v1"+path+query, body, edits...)
	if err != nil {
		t.Error(op.ID, err)
		return &response{Response: &http.Response{Request: &http.Request{}}}
	}
	return a
}

// TestEveryRefusalOfEveryOperation causes every error of the gateway itself for each operation. Each response must match the
// contract, and each declared response must occur.
func TestEveryRefusalOfEveryOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := w.start(t)
	dead := w.start(t, func(c *Config) { c.Upstreams.Pattern = nowhere })
	impatient := func(c *Config) { c.UpstreamTimeout, c.GatewayTimeout = 500*time.Millisecond, 500*time.Millisecond }
	slow := w.start(t, impatient)
	w.service.set(func(f *fakeService) { f.delay = 3 * time.Second })
	// The lookups of keys use identity's own address. Clients' calls to identity fail like all others.
	dead.server.Pipeline.Upstreams["identity"] = w.start(t, at("identity", nowhere)).server.Pipeline.Upstreams["identity"]
	slow.server.Pipeline.Upstreams["identity"] = w.start(t, at("identity", w.service.url), impatient).server.Pipeline.Upstreams["identity"]
	limited := w.start(t, func(c *Config) { c.RateLimit = 1 })
	broken := w.start(t)
	broken.server.Pipeline.Upstreams = nil
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	huge := `"` + strings.Repeat("x", 1<<20) + `"`
	declared := func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(huge)), int64(len(huge))
	}
	refuse := func(op *contract.Operation) {
		good := bearer(w.identity.newKey())
		want(t, open.call(t, op, "?api_key=x", good), 400, "query_api_key_unsupported")
		if !op.Public {
			want(t, open.call(t, op, ""), 401, "missing_credential")
			spent := w.identity.newKey("read:units") // for each operation, because a minute may pass until the last one
			want(t, limited.send(t, "GET", oneCu, "", bearer(spent)), 403, "insufficient_scope")
			want(t, limited.call(t, op, "", bearer(spent)), 429, "rate_limited")
		}
		want(t, broken.call(t, op, "", good), 500, "internal_error")
		if len(op.Scopes) > 0 {
			otherScopes := slices.DeleteFunc(slices.Clone(proto.Scopes), func(s string) bool { return slices.Contains(op.Scopes, s) })
			want(t, open.call(t, op, "", bearer(w.identity.newKey(otherScopes...))), 403, "insufficient_scope")
		}
		if slices.Contains(op.Statuses, 413) {
			want(t, open.call(t, op, "", good, declared), 413, "request_too_large")
		}
		if op.HasBody {
			want(t, open.call(t, op, "", good, header("Idempotency-Key", strings.Repeat("€", 256))), 422, "invalid_request")
		}
		want(t, dead.call(t, op, "", good), 503, "unavailable")
	}
	var wg sync.WaitGroup
	places := make(chan struct{}, 16) // most of the time they wait for a service that does not respond
	for _, op := range c.Operations() {
		places <- struct{}{}
		wg.Go(func() {
			refuse(op)
			<-places
		})
	}
	wg.Wait()
	for _, op := range c.Operations() {
		key := w.identity.newKey()
		wg.Go(func() { want(t, slow.call(t, op, "", bearer(key)), 504, "upstream_timeout") })
	}
	wg.Wait()
	for _, left := range w.checker.Uncovered() {
		id, status, _ := strings.Cut(left, " ")
		ours := slices.Contains([]string{"400", "401", "413", "429", "500", "503", "504"}, status) ||
			status == "403" && len(c.Operation(id).Scopes) > 0
		if ours && (!c.Operation(id).Public || status != "429") { // TestTheRateOfAToken
			t.Errorf("%s is declared, and no test has seen it", left)
		}
	}
	t.Logf("left to the services: %s", strings.Join(w.checker.Uncovered(), ", "))
}
