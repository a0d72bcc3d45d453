package httpx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
)

const good = `{"first_name":"Ada","email":"a@b.co"}`

func TestResponses(t *testing.T) {
	t.Parallel()
	big := `{"first_name":"` + strings.Repeat("a", 1<<20) + `"}`
	for _, tc := range []struct {
		name, method, path, body string
		headers                  []string
		want                     string
	}{
		{"list", "GET", "/customers?limit=2", "", nil, "200"},
		{"last page", "GET", "/customers?limit=3", "", nil, "200"},
		{"unknown parameter", "GET", "/customers?nope=1", "", nil, "422 invalid_request nope"},
		{"bad cursor", "GET", "/customers?cursor=x", "", nil, "400 invalid_cursor"},
		{"query before cursor", "GET", "/customers?cursor=x&limit=0", "", nil, "422 invalid_request limit"},
		{"create", "POST", "/customers", good, nil, "201"},
		{"charset", "POST", "/customers", good, []string{"Content-Type", "application/json; charset=utf-8"}, "201"},
		{"no type", "POST", "/customers", good, []string{"Content-Type", ""}, "400 missing_content_type"},
		{"other type", "POST", "/customers", good, []string{"Content-Type", "text/json"}, "400 missing_content_type"},
		{"malformed type", "POST", "/customers", good, []string{"Content-Type", ";"}, "400 missing_content_type"},
		{"no body, no type", "POST", "/customers", "", nil, "400 missing_content_type"},
		{"no body", "POST", "/customers", "", []string{"Content-Type", "application/json"}, "400 malformed_json"},
		{"malformed", "POST", "/customers", `{"a":`, nil, "400 malformed_json"},
		{"trailing", "POST", "/customers", good + "{}", nil, "400 malformed_json"},
		{"repeated name", "POST", "/customers", `{"x":[{"a":1,"a":1}]}`, nil, "400 malformed_json"},
		{"repeated name before key", "POST", "/customers", `{"x":1,"x":1}`, []string{"Idempotency-Key", ""}, "400 malformed_json"},
		{"half a surrogate pair", "POST", "/customers", `{"first_name":"\ud83d","email":"a@b.co"}`, nil, "400 malformed_json"},
		{"not an object", "POST", "/customers", `[]`, nil, "400 malformed_json"},
		{"too large", "POST", "/customers", big, nil, "413 request_too_large"},
		{"size before type", "POST", "/customers", big, []string{"Content-Type", "text/plain"}, "413 request_too_large"},
		{"type before form", "POST", "/customers", "{", []string{"Content-Type", "text/plain"}, "400 missing_content_type"},
		{"form before key", "POST", "/customers", "{", []string{"Idempotency-Key", ""}, "400 malformed_json"},
		{"empty key", "POST", "/customers", good, []string{"Idempotency-Key", ""}, "422 invalid_request Idempotency-Key"},
		{"key of 255", "POST", "/customers", good, []string{"Idempotency-Key", strings.Repeat("é", 255)}, "201"},
		{"key of 256", "POST", "/customers", good, []string{"Idempotency-Key", strings.Repeat("k", 256)}, "422 invalid_request Idempotency-Key"},
		{"key not UTF-8", "POST", "/customers", good, []string{"Idempotency-Key", "\xff"}, "422 invalid_request Idempotency-Key"},
		{"key before query", "POST", "/customers?x=1", good, []string{"Idempotency-Key", ""}, "422 invalid_request Idempotency-Key"},
		{"key before 404", "PATCH", "/customers/" + missing, "{}", []string{"Idempotency-Key", ""}, "422 invalid_request Idempotency-Key"},
		{"key is nothing to a DELETE", "DELETE", "/customers/" + known, "", []string{"Idempotency-Key", ""}, "204"},
		{"query before body", "POST", "/customers?x=1", `{}`, nil, "422 invalid_request x"},
		{"body", "POST", "/customers", `{"email":"x"}`, nil, "422 invalid_request first_name"},
		{"get", "GET", "/customers/" + known, "", nil, "200"},
		{"get missing", "GET", "/customers/" + missing, "", nil, "404 customer_not_found"},
		{"get of the other mode", "GET", "/customers/" + foreign, "", nil, "403 mode_mismatch"},
		{"404 before query", "GET", "/customers/" + missing + "?x=1", "", nil, "404 customer_not_found"},
		{"query of a known id", "GET", "/customers/" + known + "?x=1", "", nil, "422 invalid_request x"},
		{"404 before body", "PATCH", "/customers/" + missing, `{"email":1}`, nil, "404 customer_not_found"},
		{"403 before body", "PATCH", "/customers/" + foreign, `{"email":1}`, nil, "403 mode_mismatch"},
		{"form before 404", "PATCH", "/customers/" + missing, `{`, nil, "400 malformed_json"},
		{"update", "PATCH", "/customers/" + known, `{}`, nil, "200"},
		{"If-Match", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", `"3"`}, "200"},
		{"If-Match any", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", `*`}, "200"},
		{"If-Match other", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", `"2"`}, "412 version_mismatch"},
		{"If-Match text", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", `"abc"`}, "412 version_mismatch"},
		{"If-Match padded", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", `"03"`}, "412 version_mismatch"},
		{"If-Match weak", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", `W/"3"`}, "412 version_mismatch"},
		{"If-Match bare", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", `3`}, "422 invalid_request If-Match"},
		{"If-Match empty", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", ``}, "422 invalid_request If-Match"},
		{"If-Match list", "PATCH", "/customers/" + known, `{}`, []string{"If-Match", `"2", "3"`}, "422 invalid_request If-Match"},
		{"If-Match after body", "PATCH", "/customers/" + known, `{"email":1}`, []string{"If-Match", `3`}, "422 invalid_request email"},
		{"404 before If-Match", "PATCH", "/customers/" + missing, `{}`, []string{"If-Match", `3`}, "404 customer_not_found"},
		{"delete", "DELETE", "/customers/" + known, "", nil, "204"},
		{"delete If-Match bare", "DELETE", "/customers/" + known, "", []string{"If-Match", "3"}, "422 invalid_request If-Match"},
		{"GET takes no If-Match", "GET", "/customers/" + known, "", []string{"If-Match", "3"}, "200"},
		{"escaped id", "GET", "/customers/cu_%2F", "", nil, "404 customer_not_found"},
		{"no route", "GET", "/nothing", "", nil, "404 not_found"},
		{"trailing slash", "GET", "/customers/", "", nil, "404 not_found"},
		{"wrong method", "PUT", "/customers", "", nil, "405 method_not_allowed"},
		{"HEAD", "HEAD", "/customers", "", nil, "405 method_not_allowed"},
		{"OPTIONS", "OPTIONS", "/customers/" + known, "", nil, "405 method_not_allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			res := open(t).call(tc.method, httpx.Base+tc.path, tc.body, tc.headers...)
			if got := verdict(t, res); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAllowIsNamed(t *testing.T) {
	t.Parallel()
	res := open(t).call("PUT", httpx.Base+"/customers", "")
	if got := res.Header.Get("Allow"); got != "GET, POST" {
		t.Errorf("Allow: %s", got)
	}
}

func TestCallerIsNeeded(t *testing.T) {
	t.Parallel()
	d := open(t)
	for name, change := range map[string]func(h http.Header){
		"absent": func(h http.Header) { h.Del(caller.Header) },
		"forged": func(h http.Header) { h.Set(caller.Header, h.Get(caller.Header)+"x") },
	} {
		// The body is also malformed: the caller is checked first.
		req := httptest.NewRequest("POST", httpx.Base+"/customers", strings.NewReader("{"))
		signed, err := d.signer.Sign(caller.Caller{}, "customers", "POST", req.URL.Path, timeNow())
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(caller.Header, signed)
		change(req.Header)
		res := d.send(req)
		if got := verdict(t, res); got != "401 invalid_credential" {
			t.Errorf("%s: %s", name, got)
		}
		if got := res.Header.Get("WWW-Authenticate"); got != `Bearer realm="holdfast", error="invalid_token"` {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestDeclaredSizeIsRefusedUnread(t *testing.T) {
	t.Parallel()
	d := open(t)
	read := false
	req := httptest.NewRequest("POST", httpx.Base+"/customers", readerFunc(func([]byte) (int, error) {
		read = true
		return 0, io.EOF
	}))
	req.ContentLength = 1<<20 + 1
	signed, err := d.signer.Sign(caller.Caller{RequestID: "req_1"}, "customers", "POST", req.URL.Path, timeNow())
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(caller.Header, signed)
	if got := verdict(t, d.send(req)); got != "413 request_too_large" || read {
		t.Errorf("%s, read: %v", got, read)
	}
}

func TestUndeclaredSizeIsBounded(t *testing.T) {
	t.Parallel()
	d := open(t)
	for size, want := range map[int]string{1 << 20: "201", 1<<20 + 1: "413 request_too_large"} {
		body := good + strings.Repeat(" ", size-len(good))
		req := httptest.NewRequest("POST", httpx.Base+"/customers", strings.NewReader(body))
		req.ContentLength = -1
		req.Header.Set("Content-Type", "application/json")
		signed, err := d.signer.Sign(caller.Caller{RequestID: "req_1"}, "customers", "POST", req.URL.Path, timeNow())
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(caller.Header, signed)
		if got := verdict(t, d.send(req)); got != want {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
	}
}

func TestReplayIsSentAsStored(t *testing.T) {
	t.Parallel()
	d := open(t)
	key := []string{"Idempotency-Key", "k"}
	first := d.call("POST", httpx.Base+"/customers", good, key...)
	if first.Header.Get("Idempotent-Replayed") != "" || first.Header.Get(httpx.HeaderIdempotencyExpires) != "1800000000" ||
		first.Header.Get(httpx.HeaderIdempotencyCache) != "no" { // the customer resource is personal
		t.Errorf("first: %v", first.Header)
	}
	again := d.call("POST", httpx.Base+"/customers", ` {"email":"a@b.co", "first_name":"Ada"}`, key...)
	if again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Location") != first.Header.Get("Location") || again.Header.Get("ETag") != `"3"` {
		t.Errorf("again: %v", again.Header)
	}
	a, b := body(t, first), body(t, again)
	if !bytes.Equal(a, b) || string(a) != customer {
		t.Errorf("%s\n%s", a, b)
	}
}

// The service uses the fingerprint that the gateway sends; for a call without one it computes the same from the body.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	const plain, spaced, escaped = good, ` { "email" : "a@b.co", "first_name":"Ada" } `, `{"first_name":"\u0041da","email":"a@b.co"}`
	canonical, err := contract.Canonical([]byte(spaced))
	if err != nil {
		t.Fatal(err)
	}
	sum := idem.Fingerprint("POST", "/customers", "", canonical)
	other := idem.Fingerprint("POST", "/customers", "", []byte("{}"))
	d := open(t)
	for i, tc := range []struct {
		body   string
		handed []byte
		want   string
	}{
		{plain, nil, "201"},
		{spaced, nil, "201 replayed"},
		{escaped, sum[:], "201 replayed"},
		{plain, sum[:31], "201 replayed"}, // no fingerprint: the service computes it
		{plain, other[:], "422 idempotency_mismatch Idempotency-Key"},
		{`{"first_name":"Ada","email":"a@b.co","phone":"1"}`, nil, "422 idempotency_mismatch Idempotency-Key"},
	} {
		req := httptest.NewRequest("POST", httpx.Base+"/customers", strings.NewReader(tc.body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "k")
		who, err := caller.Encode(caller.Caller{Mode: caller.Test, Credential: "key_1"})
		if err != nil {
			t.Fatal(err)
		}
		call := caller.Call{Target: "customers", Method: "POST", Path: req.URL.Path, RequestID: "req_1", Fingerprint: tc.handed}
		signed, err := d.signer.SignEncoded(who, call, timeNow())
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(caller.Header, signed)
		res := d.send(req)
		got := verdict(t, res)
		if res.Header.Get("Idempotent-Replayed") == "true" {
			got += " replayed"
		}
		if got != tc.want {
			t.Errorf("%d: %s, want %s", i, got, tc.want)
		}
	}
}

// A body that is not JSON is rejected with a message for its media type: none, a form, another type.
func TestMediaType(t *testing.T) {
	t.Parallel()
	const json = "The body must be JSON with Content-Type: application/json, not "
	for contentType, want := range map[string]string{
		"application/json":                  "",
		"application/json; charset=utf-8":   "",
		"":                                  "A request with a body requires Content-Type: application/json.",
		";":                                 "A request with a body requires Content-Type: application/json.",
		"application/x-www-form-urlencoded": json + "a form (application/x-www-form-urlencoded).",
		"Multipart/Form-Data; boundary=x":   json + "a form (multipart/form-data).",
		"text/json":                         json + `"text/json".`,
		"text/" + strings.Repeat("x", 100):  json + `"text/` + strings.Repeat("x", 45) + `".`,
		"application/vnd.api+json; charset=\"utf-8\"": json + `"application/vnd.api+json".`,
	} {
		err, got := httpx.CheckMediaType(contentType), ""
		if err != nil {
			got = apperr.As(err).Message
		}
		if got != want || err != nil && !errors.Is(err, httpx.ErrMediaType) {
			t.Errorf("%q: %s, want %s", contentType, got, want)
		}
	}
}

// A stored response, or a mismatch with it, takes precedence over each later error. Other requests never look for one.
func TestIdempotencyComesFirst(t *testing.T) {
	t.Parallel()
	path := httpx.Base + "/customers/" + known
	for _, tc := range []struct {
		name, path, body string
		fail             error
		want             string
		checks           int
	}{
		{"same request, handler now fails", path, `{}`, errNone, "200", 1},
		{"same request, wrong mode now", path, `{}`, apperr.ErrMode, "200", 1},
		{"same request, other state now", path, `{}`, apperr.New(apperr.Conflict, "slot_unavailable", "Taken."), "200", 1},
		{"other body, invalid", path, `{"email":1}`, nil, "422 idempotency_mismatch Idempotency-Key", 1},
		{"other query, invalid", path + "?x=1", `{}`, nil, "422 idempotency_mismatch Idempotency-Key", 1},
		{"other resource, missing", httpx.Base + "/customers/" + missing, `{}`, nil, "422 idempotency_mismatch Idempotency-Key", 1},
		{"other body, version", path, `{"phone":"1"}`, apperr.ErrVersion, "422 idempotency_mismatch Idempotency-Key", 1},
		{"mismatch is looked up once", path, `{"phone":"2"}`, apperr.ErrMismatch, "422 idempotency_mismatch Idempotency-Key", 0},
		{"in progress stays", path, `{}`, apperr.ErrInProgress, "409 idempotency_in_progress", 0},
		{"a fault is no verdict", path, `{}`, apperr.ErrUnavailable, "503 unavailable", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			if got := verdict(t, d.call("PATCH", path, `{}`, "Idempotency-Key", "k")); got != "200" {
				t.Fatal(got)
			}
			d.checks, d.fail = 0, tc.fail
			res := d.call("PATCH", tc.path, tc.body, "Idempotency-Key", "k")
			if got := verdict(t, res); got != tc.want || d.checks != tc.checks {
				t.Errorf("got %s after %d checks, want %s after %d", got, d.checks, tc.want, tc.checks)
			}
			if replayed := res.Header.Get("Idempotent-Replayed") == "true"; replayed != (tc.want == "200") {
				t.Errorf("Idempotent-Replayed: %v", replayed)
			}
		})
	}
}

func TestLookupsOnlyOnFailure(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.call("PATCH", httpx.Base+"/customers/"+known, `{}`)
	d.call("GET", httpx.Base+"/customers/"+known, "")
	if d.checks != 0 || d.exists != 2 { // the lookups by the two handlers
		t.Errorf("%d checks, %d look-ups of the id", d.checks, d.exists)
	}
}

func TestPanicIsAnEnvelope(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.panics = true
	if got := verdict(t, d.call("POST", httpx.Base+"/customers", good)); got != "500 internal_error" {
		t.Error(got)
	}
	line := d.log.String()
	if !strings.Contains(line, "a defect") || !strings.Contains(line, `"stack"`) || !strings.Contains(line, `"request_id":"req_1"`) {
		t.Errorf("log: %s", line)
	}
}

func TestLogLine(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.call("PATCH", httpx.Base+"/customers/"+known, `{"email":"secret@b.co","phone":5}`, "Authorization", "Bearer svc_test_x")
	var line map[string]any
	if err := json.Unmarshal(d.log.Bytes(), &line); err != nil {
		t.Fatalf("%s: %v", d.log.String(), err)
	}
	for key, want := range map[string]any{"route": "/customers/{id}", "status": 422.0, "code": "invalid_request", "credential": "key_1", "peer": "gateway"} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	if s := d.log.String(); strings.Contains(s, "svc_test_x") || strings.Contains(s, "secret@b.co") {
		t.Errorf("a secret or a body is in the log: %s", s)
	}
}

func TestMountRequiresExactlyTheContract(t *testing.T) {
	t.Parallel()
	c, err := contract.Load(document(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &httpx.Server{Service: "customers", Contract: c}
	for name, change := range map[string]func(map[string]httpx.Route){
		"getCustomer has no handler":                 func(r map[string]httpx.Route) { delete(r, "getCustomer") },
		"updateCustomer has no handler":              func(r map[string]httpx.Route) { r["updateCustomer"] = httpx.Route{} },
		"getTenant is not an operation of customers": func(r map[string]httpx.Route) { r["getTenant"] = httpx.Route{Handle: nothing} },
		"nothing is not an operation of customers":   func(r map[string]httpx.Route) { r["nothing"] = httpx.Route{Handle: nothing} },
	} {
		routes := (&testService{spec: c}).routes()
		change(routes)
		if err := s.Mount(httpx.NewEngine("https://booking.test"), routes); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func nothing(*gin.Context) error { return nil }

// The body of an action is optional. Without a body it needs no content type, with a body it needs one.
func TestOptionalBody(t *testing.T) {
	t.Parallel()
	c, err := contract.Load(document(t))
	if err != nil {
		t.Fatal(err)
	}
	d := open(t)
	var reason *string
	routes := map[string]httpx.Route{}
	for _, op := range c.For("bookings") {
		routes[op.ID] = httpx.Route{Handle: func(c *gin.Context) error {
			b, err := httpx.Body[struct {
				Reason *string `json:"reason"`
			}](c)
			reason = b.Reason
			if err != nil {
				return err
			}
			return httpx.JSON(c, http.StatusOK, "", []byte(`{}`))
		}}
	}
	key := d.signer.Keys.For("customers")
	keys := caller.Keys{"gateway": key}
	s := &httpx.Server{Service: "bookings", Contract: c, Verifier: &caller.Verifier{Self: "bookings", Keys: keys}}
	e := httpx.NewEngine("https://booking.test")
	if err := s.Mount(e, routes); err != nil {
		t.Fatal(err)
	}
	d.signer.Keys = caller.Keys{"bookings": key}
	for _, tc := range []struct{ body, contentType, want, reason string }{
		{"", "", "200", ""},
		{"", "application/x-www-form-urlencoded", "200", ""},
		{`{"reason":"rain"}`, "application/json", "200", "rain"},
		{`{"reason":"rain"}`, "", "400 missing_content_type", ""},
		{`{`, "application/json", "400 malformed_json", ""},
		{`{"reason":5}`, "application/json", "422 invalid_request reason", ""},
	} {
		reason = nil
		req := httptest.NewRequest("POST", httpx.Base+"/bookings/bk_1/cancel", strings.NewReader(tc.body))
		if tc.contentType != "" {
			req.Header.Set("Content-Type", tc.contentType)
		}
		signed, err := d.signer.Sign(caller.Caller{}, "bookings", "POST", req.URL.Path, timeNow())
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(caller.Header, signed)
		rec := httptest.NewRecorder()
		e.ServeHTTP(rec, req)
		got := ""
		if reason != nil {
			got = *reason
		}
		if v := verdict(t, rec.Result()); v != tc.want || got != tc.reason {
			t.Errorf("%q as %q: %s %q, want %s %q", tc.body, tc.contentType, v, got, tc.want, tc.reason)
		}
	}
}

// A resource of which each caller has at most one has a path without an id. Its absence is also reported first.
func TestExistsWithoutAnID(t *testing.T) {
	t.Parallel()
	d := open(t)
	routes := d.routes()
	list := routes["listCustomers"]
	list.Exists = func(_ context.Context, id string) error {
		d.lastID = "asked for " + id
		return d.fail
	}
	routes["listCustomers"] = list
	d.mount(routes)
	if got := verdict(t, d.call("GET", httpx.Base+"/customers?nope=1", "")); got != "422 invalid_request nope" || d.lastID != "asked for " {
		t.Errorf("it exists: %s, %q", got, d.lastID)
	}
	d.fail = apperr.New(apperr.Forbidden, "insufficient_scope", "Not for this key.")
	if got := verdict(t, d.call("GET", httpx.Base+"/customers?nope=1", "")); got != "403 insufficient_scope" {
		t.Errorf("it does not: %s", got)
	}
	if got := verdict(t, d.call("GET", httpx.Base+"/customers?limit=3", "")); got != "200" {
		t.Errorf("a valid request is the handler's: %s", got)
	}
}
