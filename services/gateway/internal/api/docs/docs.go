// Package docs serves the contract, a page that renders it, and the catalogue of error codes. The contract's page uses Redoc if its
// bundle was embedded at build time, otherwise our own plain page. Nothing is loaded from other servers.
package docs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
)

//go:embed all:assets
var assets embed.FS

// Embedded returns the files that include Redoc's bundle if it existed at build time.
func Embedded() fs.FS { return assets }

const (
	bundle        = "assets/redoc.standalone.js"
	referencePath = "/docs/openapi.json" // the contract with the text of the errors of each operation
	redocPage     = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Holdfast API</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>body{margin:0}</style></head>
<body><redoc spec-url="` + referencePath + `" disable-telemetry="true"></redoc><script type="module" src="/docs/redoc.standalone.js"></script></body></html>
`
	policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// Pages are the documents by path.
type Pages struct {
	pages map[string]page
	Redoc bool // /docs uses Redoc, not the plain page
}

type page struct {
	contentType string
	etag        string
	body        []byte
}

// New renders the pages of the whole contract once. address is the URL of the platform, without a path. assets is Embedded, except
// in tests.
func New(source []byte, address string, c *contract.Contract, assets fs.FS) (*Pages, error) {
	documents, err := view.New(source, address)
	if err != nil {
		return nil, fmt.Errorf("views of the contract: %w", err)
	}
	p := &Pages{pages: map[string]page{}}
	asYAML, err := view.YAML(documents.Contract)
	if err != nil {
		return nil, fmt.Errorf("contract as YAML: %w", err)
	}
	p.add("/openapi.yaml", "application/yaml", asYAML)
	for path, document := range map[string]*yaml.Node{
		"/openapi.json": documents.Contract, "/openapi-sdk.json": documents.SDK, "/openapi-webhooks.json": documents.Webhooks,
		referencePath: documents.Reference,
	} {
		asJSON, err := view.JSON(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p.add(path, "application/json", asJSON)
	}
	codes, err := render("errors.html", proto.ErrorCodes)
	if err != nil {
		return nil, err
	}
	p.add(proto.ErrorsPage, "text/html; charset=utf-8", codes)
	script, err := fs.ReadFile(assets, bundle)
	switch {
	case err == nil:
		p.Redoc = true
		p.add("/docs/redoc.standalone.js", "text/javascript; charset=utf-8", script)
		p.add("/docs", "text/html; charset=utf-8", []byte(redocPage))
		return p, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	var tree object
	if err := documents.Reference.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	html, err := plain(tree, c)
	if err != nil {
		return nil, err
	}
	p.add("/docs", "text/html; charset=utf-8", html)
	return p, nil
}

func (p *Pages) add(path, contentType string, body []byte) {
	sum := sha256.Sum256(body)
	p.pages[path] = page{contentType: contentType, etag: `"` + hex.EncodeToString(sum[:8]) + `"`, body: body}
}

// All returns the documents by path.
func (p *Pages) All() map[string]http.Handler {
	all := make(map[string]http.Handler, len(p.pages))
	for path, found := range p.pages {
		all[path] = found
	}
	return all
}

// ServeHTTP implements http.Handler.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", p.contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "max-age=300")
	h.Set("ETag", p.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.body)) // 304 when the client already has it
}
