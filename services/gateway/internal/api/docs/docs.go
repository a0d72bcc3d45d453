// Package docs serves the contract, and a page that shows it. The page is redoc where its bundle was
// embedded at build time, else a plain list of the operations; nothing is loaded from elsewhere.
package docs

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"

	"go.yaml.in/yaml/v4"

	"holdfast.dev/libs/contract"
)

//go:embed all:assets
var assets embed.FS

//go:embed plain.html
var plainPage string

const (
	bundle    = "assets/redoc.standalone.js"
	redocPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Holdfast API</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>body{margin:0}</style></head>
<body><redoc spec-url="/openapi.json" disable-telemetry="true"></redoc><script type="module" src="/docs/redoc.standalone.js"></script></body></html>
`
	policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; worker-src 'self' blob:; frame-ancestors 'none'"
)

// Pages are the documents by path.
type Pages struct {
	pages map[string]page
	Redoc bool // whether /docs is redoc rather than the plain list
}

type page struct {
	contentType string
	body        []byte
}

// New renders the pages of an OpenAPI document once.
func New(doc []byte, c *contract.Contract) (*Pages, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(doc, &tree); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	asJSON, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("contract as JSON: %w", err)
	}
	p := &Pages{pages: map[string]page{
		"/openapi.yaml": {"application/yaml", doc},
		"/openapi.json": {"application/json", asJSON},
	}}
	script, err := fs.ReadFile(assets, bundle)
	switch {
	case err == nil:
		p.Redoc = true
		p.pages["/docs/redoc.standalone.js"] = page{"text/javascript; charset=utf-8", script}
		p.pages["/docs"] = page{"text/html; charset=utf-8", []byte(redocPage)}
		return p, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	html, err := plain(tree, c)
	if err != nil {
		return nil, err
	}
	p.pages["/docs"] = page{"text/html; charset=utf-8", html}
	return p, nil
}

// plain lists the operations with what the document says of them.
func plain(tree map[string]any, c *contract.Contract) ([]byte, error) {
	t, err := template.New("docs").Parse(plainPage)
	if err != nil {
		return nil, fmt.Errorf("docs page: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, map[string]any{"Info": tree["info"], "Operations": c.Operations()}); err != nil {
		return nil, fmt.Errorf("docs page: %w", err)
	}
	return out.Bytes(), nil
}

// Find returns the document at path and its route, nil when there is none.
func (p *Pages) Find(path string) (h http.Handler, route string) {
	found, ok := p.pages[path]
	if !ok {
		return nil, ""
	}
	return found, path
}

// ServeHTTP implements http.Handler.
func (p page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", p.contentType)
	h.Set("Content-Length", strconv.Itoa(len(p.body)))
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "max-age=300")
	_, _ = w.Write(p.body) // the client is gone when this fails
}
