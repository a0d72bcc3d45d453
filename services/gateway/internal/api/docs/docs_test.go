package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"

	"holdfast.dev/services/gateway/internal/domain"
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
	return p.call(t, "GET", path, "", etag)
}

// call sends a request with an Accept-Encoding and an If-None-Match, if they are not empty.
func (p *Pages) call(t *testing.T, method, path, accepted, etag string) *httptest.ResponseRecorder {
	t.Helper()
	h := p.All()[path]
	if h == nil {
		t.Fatalf("nothing at %s", path)
	}
	r, rec := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
	for name, value := range map[string]string{"Accept-Encoding": accepted, "If-None-Match": etag} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	h.ServeHTTP(rec, r)
	return rec
}

var script = []byte("/* a bundle */")

func TestWithTheBundle(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{bundle: {Data: script}})
	first := p.get(t, referencePage, "")
	if html := first.Body.String(); !p.Scalar || !strings.Contains(html, `<script src="/docs/static/scalar.js" defer>`) {
		t.Errorf("scalar %v: %s", p.Scalar, html)
	}
	got := p.get(t, "/docs/static/scalar.js", "")
	if got.Body.String() != string(script) || got.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("%q as %q", got.Body, got.Header().Get("Content-Type"))
	}
	csp := first.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "script-src 'self';") || strings.Count(csp, "unsafe") != 1 || !strings.Contains(csp, "style-src 'self' 'unsafe-inline';") {
		t.Errorf("policy %s", csp)
	}
}

func TestWithoutTheBundle(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{})
	if h := p.All()["/docs/static/scalar.js"]; p.Scalar || h != nil {
		t.Error("a bundle that is not there is served")
	}
	html := p.get(t, referencePage, "").Body.String()
	if strings.Contains(html, "scalar") {
		t.Error("the plain page needs Scalar")
	}
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range c.Operations() {
		_, section, _ := strings.Cut(html, `<h2 id="`+op.ID+`">`)
		section, _, _ = strings.Cut(section, "<h2")
		for _, part := range []string{`<pre tabindex="0">curl `, `<a href="/docs/errors#rate_limited">`, `<summary>Show</summary>`} {
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
	html := pages(t, []byte(odd), fstest.MapFS{}).get(t, referencePage, "").Body.String()
	for _, raw := range []string{"<b>T", "<script>alert", "<i>thing", "<u>", "<large>"} {
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
		if page := p.get(t, "/docs", "").Body.String(); !strings.Contains(page, `href="`+proto.ErrorsPage+`"`) {
			t.Error("/docs does not lead to the error codes")
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
	if bytes.Contains(served, []byte("x-go-")) || bytes.Contains(served, []byte("x-validate")) || bytes.Contains(served, []byte("x-aliases")) || !bytes.Contains(served, []byte("\n  /customers:\n    get:\n")) {
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

// The page of the API reference offers no authorization that it cannot complete: only an app with a redirect URI can get an OAuth token.
func TestThePageOffersNoOAuthFlow(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{bundle: {Data: script}})
	for path, want := range map[string][]string{referencePath: {"bearer"}, "/openapi.json": {"bearer", "oauth"}} {
		var doc struct {
			Security   []map[string]any
			Components struct{ SecuritySchemes map[string]any }
		}
		if err := json.Unmarshal(p.get(t, path, "").Body.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		var required []string
		for _, one := range doc.Security {
			required = slices.AppendSeq(required, maps.Keys(one))
		}
		if offered := slices.Sorted(maps.Keys(doc.Components.SecuritySchemes)); !slices.Equal(offered, want) || !slices.Equal(required, want) {
			t.Errorf("%s offers %v and requires %v, want %v", path, offered, required, want)
		}
	}
}

func TestHeadersOfTheDocuments(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{bundle: {Data: script}})
	for path := range p.pages {
		first := p.get(t, path, "")
		h := first.Header()
		csp := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self';") || strings.Contains(csp, "unsafe") && path != referencePage {
			t.Errorf("%s: policy %q", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") == "" {
			t.Errorf("%s: %v", path, h)
		}
		if again := p.get(t, path, h.Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s: %d to a client that has it", path, again.Code)
		}
		open := strings.HasPrefix(path, "/openapi")
		if (h.Get("Access-Control-Allow-Origin") == "*") != open {
			t.Errorf("%s: other sites can read it: %v", path, !open)
		}
	}
}

// A page without inline scripts and styles needs no exception in its policy.
func TestNoPageHasInlineCode(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`<style|<script>| style=| on[a-z]+="|javascript:`)
	p := pages(t, proto.OpenAPI, fstest.MapFS{bundle: {Data: script}})
	for path, page := range p.pages {
		if found := inline.Find(page.body); found != nil && page.contentType == htmlType {
			t.Errorf("%s contains %s", path, found)
		}
	}
}

// Each form of a document has the same contents and its own entity tag, and HEAD has the same headers as GET.
func TestCompressedDocuments(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{bundle: {Data: bytes.Repeat(script, 1000)}})
	for path, page := range p.pages {
		tags := map[string]bool{}
		for accepted, coding := range map[string]string{"": "", "gzip": "gzip", "zstd, gzip": "zstd", "gzip, zstd;q=0": "gzip", "br": ""} {
			if page.compressed == nil {
				coding = ""
			}
			got := p.call(t, "GET", path, accepted, "")
			h := got.Header()
			if h.Get("Content-Encoding") != coding || !bytes.Equal(decoded(t, coding, got.Body.Bytes()), page.body) {
				t.Errorf("%s to %q is in %q", path, accepted, h.Get("Content-Encoding"))
			}
			if h.Get("Content-Length") != strconv.Itoa(got.Body.Len()) || (h.Get("Vary") == "Accept-Encoding") != (page.compressed != nil) {
				t.Errorf("%s to %q: %v", path, accepted, h)
			}
			tags[h.Get("ETag")] = true
			head := p.call(t, "HEAD", path, accepted, "")
			if head.Body.Len() != 0 || !maps.EqualFunc(head.Header(), h, slices.Equal) {
				t.Errorf("HEAD %s: %v, want %v", path, head.Header(), h)
			}
			if again := p.call(t, "GET", path, accepted, `"x", W/`+h.Get("ETag")); again.Code != 304 || again.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s, unchanged, in %q: %d", path, coding, again.Code)
			}
		}
		if want := map[bool]int{true: 3, false: 1}[page.compressed != nil]; len(tags) != want {
			t.Errorf("%s has the tags %v", path, tags)
		}
	}
}

func decoded(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(body)
	var err error
	switch coding {
	case domain.Gzip:
		r, err = gzip.NewReader(r)
	case domain.Zstd:
		r, err = zstd.NewReader(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The first paint of a guide transfers its page, the style sheet and the script, and nothing else: less than 100 KB.
func TestTheFirstPaintOfAGuideIsSmall(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{})
	loads := regexp.MustCompile(`(?:<script|<link rel="(?:icon|stylesheet)"|<img)[^>]* (?:src|href)="(/[^"]+)"`)
	for path, page := range p.pages {
		if page.contentType != htmlType || path == referencePage {
			continue
		}
		size := p.call(t, "GET", path, "gzip", "").Body.Len()
		files := loads.FindAllSubmatch(page.body, -1)
		if len(files) != 2 {
			t.Errorf("%s loads %q", path, files)
		}
		for _, file := range files {
			size += p.call(t, "GET", string(file[1]), "gzip", "").Body.Len()
		}
		if size > 40<<10 {
			t.Errorf("%s transfers %d bytes", path, size)
		}
	}
}

// llms.txt lists each guide as Markdown, and llms-full.txt contains the guides, operations and codes.
func TestTextsForLanguageModels(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{})
	list, full := p.get(t, "/llms.txt", "").Body.String(), p.get(t, "/llms-full.txt", "").Body.String()
	links := regexp.MustCompile(`\]\(`+regexp.QuoteMeta(address)+`(/[^)]+)\)`).FindAllStringSubmatch(list, -1)
	guides := 0
	for _, link := range links {
		text := p.get(t, link[1], "").Body.String()
		if !strings.HasSuffix(link[1], ".md") {
			continue
		}
		guides++
		if !strings.Contains(full, text) {
			t.Errorf("llms-full.txt lacks %s", link[1])
		}
		html := strings.TrimSuffix(link[1], ".md")
		if page := p.get(t, html, "").Body.String(); !strings.Contains(page, `<link rel="alternate" type="text/markdown" href="`+link[1]+`">`) {
			t.Errorf("%s does not name its Markdown", html)
		}
	}
	if guides < 4 || !strings.Contains(full, "## POST /bookings\n") || !strings.Contains(full, "## slot_unavailable\n") {
		t.Errorf("%d documents in\n%s", guides, list)
	}
}

// Each entry of the search leads to a place that exists.
func TestSearchIndex(t *testing.T) {
	t.Parallel()
	for _, assets := range []fs.FS{fstest.MapFS{}, fstest.MapFS{bundle: {Data: script}}} {
		p := pages(t, proto.OpenAPI, assets)
		var all []entry
		if err := json.Unmarshal(p.get(t, "/docs/search.json", "").Body.Bytes(), &all); err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for _, e := range all {
			path, id, _ := strings.Cut(e.URL, "#")
			kinds[e.Kind]++
			if path == referencePage && p.Scalar {
				continue // Scalar creates the places
			}
			if html := p.get(t, path, "").Body.String(); id != "" && !strings.Contains(html, ` id="`+id+`"`) {
				t.Errorf("%s does not exist", e.URL)
			}
		}
		if kinds["Start"] < 10 || kinds["Tools"] < 50 || kinds["API reference"] < 80 || kinds["Error code"] != len(proto.ErrorCodes) {
			t.Errorf("%v", kinds)
		}
	}
}

// The guides name error codes that exist.
func TestGuidesLinkToErrorsThatExist(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, fstest.MapFS{})
	catalogue := p.get(t, proto.ErrorsPage, "").Body.String()
	for path, page := range p.pages {
		for _, m := range regexp.MustCompile(`href="/docs/errors#([^"]+)"`).FindAllSubmatch(page.body, -1) {
			if !strings.Contains(catalogue, ` id="`+string(m[1])+`"`) {
				t.Errorf("%s links to the code %s", path, m[1])
			}
		}
	}
}
