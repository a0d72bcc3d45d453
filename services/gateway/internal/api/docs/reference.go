package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

const (
	bundle        = "assets/scalar.js"
	referencePath = "/docs/openapi.json" // the contract with the text of the errors of each operation
	referencePage = "/docs/reference"
	styleType     = "text/css; charset=utf-8"
	scriptType    = "text/javascript; charset=utf-8"
)

// scalarPolicy is policy with inline styles, which Scalar needs: its elements have style attributes with sizes and positions, and its
// editor adds style elements whose text depends on what was opened before, so that no list of hashes covers them. Inline scripts remain
// forbidden, and styles can load nothing from other servers, because images, fonts and connections are limited to this server.
var scalarPolicy = strings.Replace(policy, "style-src 'self'", "style-src 'self' 'unsafe-inline'", 1)

// addReference adds the API reference: Scalar if its bundle exists, otherwise the plain page.
func (p *Pages) addReference(c *portal, assets fs.FS) error {
	f := frame{
		portal: c, Title: "API reference", Description: "Every operation with its parameters, examples and errors.", Path: referencePage,
		Part: "reference", Source: referencePage + ".md",
	}
	script, err := fs.ReadFile(assets, bundle)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.render(c, "reference", f)
	case err != nil:
		return fmt.Errorf("read bundle: %w", err)
	}
	html, err := execute("scalar", f)
	if err != nil {
		return err
	}
	p.Scalar = true
	p.add("/docs/static/scalar.js", scriptType, script)
	p.pages[referencePage] = newPage(htmlType, scalarPolicy, html)
	return nil
}

// anchor returns the place of an operation in the API reference.
func (op *operation) anchor(scalar bool) string {
	if !scalar {
		return referencePage + "#" + op.ID
	}
	tag := strings.ReplaceAll(strings.ToLower(op.Tag), " ", "-")
	return referencePage + "#tag/" + tag + "/" + op.Method + op.Path
}
