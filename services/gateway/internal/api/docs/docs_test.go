package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
)

// address is the URL of the platform.
const address = "https://booking.test"

func pages(t *testing.T, doc []byte, assets fs.FS) *Pages {
	t.Helper()
	c, err := contract.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(doc, address, c, assets)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Pages) get(t *testing.T, path, etag string) *httptest.ResponseRecorder {
	t.Helper()
	h := p.All()[path]
	if h == nil {
		t.Fatalf("nothing at %s", path)
	}
	r, rec := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
	r.Header.Set("If-None-Match", etag)
	h.ServeHTTP(rec, r)
	return rec
}

var script = []byte("/* a bundle */")

func TestWithTheBundle(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{bundle: {Data: script}})
	html := p.get(t, "/docs", "").Body.String()
	if !p.Redoc || !strings.Contains(html, `<redoc spec-url="/docs/openapi.json" disable-telemetry="true">`) {
		t.Errorf("redoc %v: %s", p.Redoc, html)
	}
	src := regexp.MustCompile(`<script type="module" src="([^"]+)">`).FindStringSubmatch(html)
	if src == nil {
		t.Fatalf("no script in %s", html)
	}
	got := p.get(t, src[1], "")
	if got.Body.String() != string(script) || got.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("%s: %q as %q", src[1], got.Body, got.Header().Get("Content-Type"))
	}
}

func TestWithoutTheBundle(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{})
	if h := p.All()["/docs/redoc.standalone.js"]; p.Redoc || h != nil {
		t.Error("a bundle that is not there is served")
	}
	html := p.get(t, "/docs", "").Body.String()
	if strings.Contains(html, "<script") || strings.Contains(html, "<redoc") {
		t.Error("the plain page needs a script")
	}
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range c.Operations() {
		_, section, _ := strings.Cut(html, `<h2 id="`+op.ID+`">`)
		section, _, _ = strings.Cut(section, "<h2")
		for _, part := range []string{`<pre>curl `, `<a href="/docs/errors#rate_limited">`, `<summary>Show</summary>`} {
			if !strings.Contains(section, part) && (part != `<summary>Show</summary>` || op.Success != 204) {
				t.Errorf("%s: no %s", op.ID, part)
			}
		}
		for _, part := range append([]string{`href="#` + op.ID + `"`, `<h2 id="` + op.ID + `"><code>` + op.Method + " " + op.Path + `</code>`}, op.Scopes...) {
			if !strings.Contains(html, part) {
				t.Errorf("%s: no %s", op.ID, part)
			}
		}
	}
}

const odd = `openapi: 3.1.0
info: { title: "<b>T</b>", version: "1", summary: "a & b", description: "<script>alert(1)</script>" }
paths:
  /things/{id}:
    post:
      operationId: createThing
      summary: The <i>thing</i>
      description: Of <u>all</u>.
      x-service: things
      x-required-scopes: ["write:things"]
      parameters:
        - $ref: "#/components/parameters/Id"
        - { name: limit, in: query, description: Rows., schema: { type: integer, minimum: 1, maximum: 100, default: 25 } }
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Thing" } } }
      responses:
        "201": { description: Made. }
        "422": { $ref: "#/components/responses/Invalid" }
components:
  parameters:
    Id: { name: id, in: path, required: true, schema: { type: string } }
  responses:
    Invalid: { description: Not as it must be. }
  schemas:
    Kind: { type: string, enum: [small, "<large>"] }
    Thing:
      type: object
      required: [name]
      properties:
        kinds: { type: array, items: { $ref: "#/components/schemas/Kind" } }
        due: { type: [string, "null"], format: date-time, description: When. }
        name: { type: string, minLength: 1, maxLength: 9 }
`

// The rows contain the visible text. The document's text never becomes markup.
func TestThePlainPageSaysWhatTheContractSays(t *testing.T) {
	t.Parallel()
	html := pages(t, []byte(odd), fstest.MapFS{}).get(t, "/docs", "").Body.String()
	for _, raw := range []string{"<b>T", "<script", "<i>thing", "<u>", "<large>"} {
		if strings.Contains(html, raw) {
			t.Errorf("%s is not escaped", raw)
		}
	}
	for _, want := range []string{
		`<h1>&lt;b&gt;T&lt;/b&gt; 1</h1>`, `<p>a &amp; b</p>`, `<p>The &lt;i&gt;thing&lt;/i&gt;. Requires <code>write:things</code>.</p>`,
		`<tr><td><code>id</code> (required)</td><td>path</td><td>string</td><td></td></tr>`,
		`<tr><td><code>limit</code></td><td>query</td><td>integer ≥ 1 ≤ 100 default 25</td><td>Rows.</td></tr>`,
		`<tr><td><code>name</code> (required)</td><td>string length ≥ 1 length ≤ 9</td><td></td></tr>`,
		`<tr><td><code>due</code></td><td>string or null (date-time)</td><td>When.</td></tr>`,
		`<tr><td><code>kinds</code></td><td>array of string one of small, &lt;large&gt;</td><td></td></tr>`,
		`<tr><td>201</td><td>Made.</td></tr>`, `<tr><td>422</td><td>Not as it must be.</td></tr>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in\n%s", want, html)
		}
	}
}

// The catalogue is served with and without the bundle, and both pages of the contract link to it.
func TestThePageOfErrorCodes(t *testing.T) {
	t.Parallel()
	for _, assets := range []fs.FS{fstest.MapFS{}, fstest.MapFS{bundle: {Data: script}}} {
		p := pages(t, proto.OpenAPI, assets)
		html := p.get(t, proto.ErrorsPage, "").Body.String()
		for _, c := range proto.ErrorCodes {
			if n := strings.Count(html, ` id="`+c.Code+`"`); n != 1 {
				t.Errorf("%s has %d anchors", c.Code, n)
			}
			_, section, _ := strings.Cut(html, `<h2 id="`+c.Code+`"><code>`+c.Code+`</code></h2>`)
			section, _, _ = strings.Cut(section, "<h2")
			retry := "Retry:</strong> no,"
			if c.Retry {
				retry = "Retry:</strong> yes,"
			}
			for _, want := range []string{fmt.Sprintf("Status %d. ", c.Status), template.HTMLEscapeString(c.Cause), template.HTMLEscapeString(c.Remedy), retry} {
				if !strings.Contains(section, want) {
					t.Errorf("%s: no %q in %s", c.Code, want, section)
				}
			}
			if !strings.Contains(html, `<a href="#`+c.Code+`">`) {
				t.Errorf("the index does not name %s", c.Code)
			}
		}
		page, link := p.get(t, "/docs", "").Body.String(), `href="`+proto.ErrorsPage+`"`
		if p.Redoc { // redoc shows the contract's externalDocs
			page, link = p.get(t, "/docs/openapi.json", "").Body.String(), `"url":"`+proto.ErrorsPage+`"`
		}
		if !strings.Contains(page, link) {
			t.Errorf("redoc %v: /docs does not lead to the error codes", p.Redoc)
		}
	}
}

// The contract is the same as YAML and as JSON, without the keys that only our own code reads, and with absolute addresses.
func TestTheServedContract(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{})
	var asYAML, asJSON map[string]any
	served := p.get(t, "/openapi.yaml", "").Body.Bytes()
	if err := errors.Join(yaml.Unmarshal(served, &asYAML), json.Unmarshal(p.get(t, "/openapi.json", "").Body.Bytes(), &asJSON)); err != nil {
		t.Fatal(err)
	}
	plain := func(v any) string { // numbers and keys as JSON writes them, in one order
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if plain(asYAML) != plain(asJSON) {
		t.Error("the two forms differ")
	}
	if bytes.Contains(served, []byte("x-go-")) || bytes.Contains(served, []byte("x-validate")) || !bytes.Contains(served, []byte("\n  /customers:\n    get:\n")) {
		t.Errorf("served as\n%.2000s", served)
	}
	for part, want := range map[string]any{
		"servers": address + "/api/v1", "externalDocs": address + proto.ErrorsPage, "components": address + "/oauth/token",
	} {
		if !strings.Contains(plain(asJSON[part]), `"`+want.(string)+`"`) {
			t.Errorf("%s does not contain %s", part, want)
		}
	}
	c, err := contract.Load(served)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := contract.Public()
	if err != nil || len(c.Operations()) != len(ours.Operations()) {
		t.Errorf("%d operations, %v", len(c.Operations()), err)
	}
}

// The errors of an operation are on the page of the API reference, and only there.
func TestErrorsAreOnThePageOnly(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{bundle: {Data: script}})
	const list = `(/docs/errors#rate_limited)`
	if page := p.get(t, "/docs/openapi.json", "").Body.String(); strings.Count(page, list) < 80 {
		t.Errorf("%d operations list their errors", strings.Count(page, list))
	}
	for _, path := range []string{"/openapi.json", "/openapi-sdk.json"} {
		doc := p.get(t, path, "").Body.String()
		if strings.Contains(doc, "/docs/errors#") || !strings.Contains(doc, `"x-error-codes":[`) {
			t.Errorf("%s: the catalogue is in the descriptions, or the codes are missing", path)
		}
	}
}

func TestHeadersOfTheDocuments(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{bundle: {Data: script}})
	for path := range p.pages {
		first := p.get(t, path, "")
		h := first.Header()
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'self';") || strings.Contains(csp, "unsafe-eval") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") == "" {
			t.Errorf("%s: %v", path, h)
		}
		if again := p.get(t, path, h.Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s: %d to a client that has it", path, again.Code)
		}
	}
	if h := p.All()["/docs/"]; h != nil {
		t.Error("something at /docs/")
	}
}
