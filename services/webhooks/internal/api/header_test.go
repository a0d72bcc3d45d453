package api_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

// TestEndpointHeaders checks that headers are stored sealed, that no response contains a value, and that an update replaces all of
// them.
func TestEndpointHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := w.as(tenant, caller.Test)
	body := func(headers string) string {
		return `{"url":"https://example.com/hook","event_types":["*"],"headers":` + headers + `}`
	}
	const shown = `"headers":{"Authorization":null,"X-Env":null}`
	created := w.do(ctx, "POST", "/webhook-endpoints", body(`{"X-Env":"top-secret-1","Authorization":"Bearer top-secret-2","X-None":null}`), "Idempotency-Key: k").is(201)
	path := "/webhook-endpoints/" + created.str("id")
	replay := w.do(ctx, "POST", "/webhook-endpoints", body(`{"X-Env":"top-secret-1","Authorization":"Bearer top-secret-2","X-None":null}`), "Idempotency-Key: k").is(201)
	w.do(ctx, "POST", "/webhook-endpoints", body(`{"X-Env":"other"}`), "Idempotency-Key: k").is(422, "idempotency_mismatch")
	list := w.do(ctx, "GET", "/webhook-endpoints", "").is(200)
	rotated := w.do(ctx, "POST", path+"/rotate-secret", "").is(200)
	for name, a := range map[string]response{"create": created, "replay": replay, "list": list, "rotate": rotated, "get": w.do(ctx, "GET", path, "").is(200)} {
		if !strings.Contains(string(a.Body), shown) || strings.Contains(string(a.Body), "top-secret") {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
	version := func() float64 {
		t.Helper()
		v, _ := apitest.Decode[map[string]any](w.do(ctx, "GET", path, "").is(200).Response)["version"].(float64)
		return v
	}
	before := version()
	for i, tc := range []struct{ body, want string }{
		{`{"description":"x"}`, shown}, // absent: unchanged
		{`{"headers":{"X-Env":"top-secret-1","Authorization":"Bearer top-secret-2"},"description":"x"}`, shown}, // the same: no version
		{`{"headers":{"X-Env":"top-secret-3","Authorization":"Bearer top-secret-2"}}`, shown},
		{`{"headers":{"x-env":"top-secret-4"}}`, `"headers":{"x-env":null}`},
		{`{"headers":{"x-env":null}}`, `"headers":{}`},
		{`{"headers":{"A":"top-secret-5"}}`, `"headers":{"A":null}`},
		{`{"headers":null}`, `"headers":{}`},
		{`{"headers":{}}`, `"headers":{}`},
	} {
		if got := string(w.do(ctx, "PATCH", path, tc.body).is(200).Body); !strings.Contains(got, tc.want) || strings.Contains(got, "top-secret") {
			t.Errorf("%d: %s", i, got)
		}
		if changes := []float64{1, 1, 2, 3, 4, 5, 6, 6}; version() != before+changes[i] {
			t.Errorf("%d: version %v, want %v", i, version(), before+changes[i])
		}
		for _, table := range []string{"endpoints", "endpoint_secrets", "idempotency_keys", "outbox"} {
			if n := w.Count(`select count(*) from ` + table + ` t where t::text like '%top-secret%' or t::text like '%' || encode('top-secret', 'hex') || '%'`); n != 0 {
				t.Errorf("%d: %s contains a value", i, table)
			}
		}
	}
	if n := w.Count(`select count(*) from endpoints where sealed_headers is not null`); n != 0 {
		t.Errorf("%d endpoints without headers have sealed ones", n)
	}
}

// TestHeadersDoNotMoveToAnotherOrigin checks that an update that moves an endpoint with headers to another origin must send the headers.
func TestHeadersDoNotMoveToAnotherOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	created := func(url, headers string) string {
		t.Helper()
		body := `{"url":"` + url + `","event_types":["*"]` + headers + `}`
		return "/webhook-endpoints/" + w.do(ctx, "POST", "/webhook-endpoints", body).is(201).str("id")
	}
	const with = `,"headers":{"Authorization":"Bearer top-secret"}`
	for _, moved := range []string{
		"https://example.net/hook", "http://example.com/hook", "https://example.com:8443/hook", "https://www.example.com/hook",
		"https://example.com.example.net/hook",
	} {
		path := created("https://example.com/hook", with)
		w.do(ctx, "PATCH", path, `{"url":"`+moved+`"}`).is(422, "invalid_request", "headers")
		w.do(ctx, "PATCH", path, `{"url":"`+moved+`","description":"x","status":"disabled"}`).is(422, "invalid_request", "headers")
		if got := w.do(ctx, "GET", path, "").is(200).str("url"); got != "https://example.com/hook" {
			t.Errorf("the URL is %s", got)
		}
		w.do(ctx, "PATCH", path, `{"url":"`+moved+`","headers":{"Authorization":"Bearer other"}}`).is(200)
		w.do(ctx, "PATCH", path, `{"url":"https://example.com/hook","headers":null}`).is(200)
		w.do(ctx, "PATCH", path, `{"url":"`+moved+`"}`).is(200) // it has no headers anymore
	}
	for _, same := range []string{
		"https://example.com/hook", "https://example.com/other?a=b", "https://example.com:443/hook", "https://EXAMPLE.com/hook",
	} {
		w.do(ctx, "PATCH", created("https://example.com/hook", with), `{"url":"`+same+`"}`).is(200)
	}
	w.do(ctx, "PATCH", created("https://example.com/hook", ""), `{"url":"https://example.net/hook"}`).is(200)
}

// TestHeadersAreRefused checks the limits of headers, on create and on update.
func TestHeadersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	path := "/webhook-endpoints/" + w.endpoint(ctx)
	refused := map[string]string{
		`{"X-A":""}`: "headers.X-A", `{"X-A":" a"}`: "headers.X-A", `{"X-A":"a "}`: "headers.X-A", `{"X-A":"a\r\nX-B: c"}`: "headers.X-A",
		`{"X-A":"a\nb"}`: "headers.X-A", `{"X-A":"ä"}`: "headers.X-A", `{"X-A":"a\tb"}`: "headers.X-A", `{"X-A":"\u007f"}`: "headers.X-A",
		`{"X-A":7}`: "headers.X-A", `{"":"a"}`: "headers.", `{"X A":"a"}`: "headers.X A", `{"X:A":"a"}`: "headers.X:A", `{"Ä":"a"}`: "headers.Ä",
		fmt.Sprintf(`{"X-A":%q}`, strings.Repeat("a", 501)):    "headers.X-A",
		fmt.Sprintf(`{%q:"a"}`, strings.Repeat("a", 65)):       "headers." + strings.Repeat("a", 65),
		`{"X-A":"1","x-a":"2"}`:                                "headers.x-a",
		headersOf(11, 1):                                       "headers",
		`["X-A"]`:                                              "headers",
		`{"X-A":"a","Host":"b","x-a":"c","Content-Type":"d"}`:  "headers.Content-Type",
		`{"X-A":"a\u0000"}`:                                    "headers.X-A",
		`{"X-A":{"a":"b"}}`:                                    "headers.X-A",
		`{"Authorization":"a","AUTHORIZATION":"b","X-B":null}`: "headers.Authorization",
	}
	for _, name := range []string{
		"Host", "HOST", "User-Agent", "Content-Type", "content-length", "Content-X", "Service-Signature", "sErViCe-Other", "Webhook-Id",
		"webhook-other", "Connection", "Keep-Alive", "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "transfer-encoding", "Upgrade", "Expect",
	} {
		refused[fmt.Sprintf(`{%q:"a"}`, name)] = "headers." + name
	}
	for headers, field := range refused {
		w.do(ctx, "POST", "/webhook-endpoints", `{"url":"https://example.com/hook","event_types":["*"],"headers":`+headers+`}`).is(422, "invalid_request", field)
		w.do(ctx, "PATCH", path, `{"headers":`+headers+`}`).is(422, "invalid_request", field)
	}
	for _, headers := range []string{headersOf(10, 500), `{"X-A":"a b  c ~!"}`, `{"!#$%&'*+-.^_` + "`" + `|~":"a"}`, `{"Contents":"a","Services":"b","Proxy":"c"}`} {
		w.do(ctx, "PATCH", path, `{"headers":`+headers+`}`).is(200)
	}
}

// headersOf returns n headers with names of 64 characters and values of size characters.
func headersOf(n, size int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"%s%02d":%q`, strings.Repeat("x", 62), i, strings.Repeat("~", size))
	}
	return "{" + strings.Join(list, ",") + "}"
}
