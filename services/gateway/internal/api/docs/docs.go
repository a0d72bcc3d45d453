// Package docs serves the developer portal: guides, the API reference, the catalogue of error codes, their Markdown, a search, and the
// contract. The guides are rendered by generate. The reference uses Scalar if its bundle was embedded at build time, otherwise our own
// plain page. Nothing is loaded from other servers.
package docs

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto/view"
)

//go:embed all:assets
var assets embed.FS

//go:embed static
var static embed.FS

//go:embed guides
var guides embed.FS

// Embedded returns the files that include Scalar's bundle and the library of the search if they existed at build time.
func Embedded() fs.FS { return assets }

// Folder is the beginning of the paths of all pages for people except the first one.
const Folder = "/docs/"

const (
	htmlType = "text/html; charset=utf-8"
	markdown = "text/markdown; charset=utf-8"
	// policy is the Content-Security-Policy of all documents except the reference with Scalar.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// Pages are the documents by path.
type Pages struct {
	pages   map[string]page
	missing page
	Scalar  bool // the reference uses Scalar, not the plain page
}

// New renders the pages of the whole contract once. address is the URL of the platform, without a path. assets is Embedded, except
// in tests.
func New(source []byte, address string, c *contract.Contract, assets fs.FS) (*Pages, error) {
	documents, err := view.New(source, address)
	if err != nil {
		return nil, fmt.Errorf("views of the contract: %w", err)
	}
	p := &Pages{pages: map[string]page{}}
	if err := p.addContract(&documents); err != nil {
		return nil, err
	}
	var tree object
	if err := documents.Reference.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	portal, err := newPortal(address, describe(tree, c))
	if err != nil {
		return nil, err
	}
	if err := p.addReference(portal, assets); err != nil {
		return nil, err
	}
	if err := p.addSearch(portal, assets); err != nil {
		return nil, err
	}
	return p, p.addPortal(portal)
}

// addContract adds the documents of the contract. Scripts of any site can read them.
func (p *Pages) addContract(documents *view.Documents) error {
	asYAML, err := view.YAML(documents.Contract)
	if err != nil {
		return fmt.Errorf("contract as YAML: %w", err)
	}
	p.add("/openapi.yaml", "application/yaml", asYAML)
	for path, document := range map[string]*yaml.Node{
		"/openapi.json": documents.Contract, "/openapi-sdk.json": documents.SDK, "/openapi-webhooks.json": documents.Webhooks,
		referencePath: documents.Reference,
	} {
		asJSON, err := view.JSON(document)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		p.add(path, "application/json", asJSON)
	}
	for path, found := range p.pages {
		found.anyOrigin = path != referencePath
		p.pages[path] = found
	}
	return nil
}

func (p *Pages) add(path, contentType string, body []byte) {
	p.pages[path] = newPage(contentType, policy, body)
}

// addStatic adds the style sheet and the scripts of the pages.
func (p *Pages) addStatic() error {
	for name, contentType := range map[string]string{
		"portal.css": styleType, "portal.js": scriptType, "reference.css": styleType, "reference.js": scriptType, "search.js": scriptType,
	} {
		text, err := fs.ReadFile(static, "static/"+name)
		if err != nil {
			return err
		}
		p.add("/docs/static/"+name, contentType, text)
	}
	return nil
}

// Missing returns the response for a path under Folder that no document has: 404 with a search and links.
func (p *Pages) Missing() http.Handler { return p.missing }

// All returns the documents by path.
func (p *Pages) All() map[string]http.Handler {
	all := make(map[string]http.Handler, len(p.pages))
	for path, found := range p.pages {
		all[path] = found
	}
	return all
}
