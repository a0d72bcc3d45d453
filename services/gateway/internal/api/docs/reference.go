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
	scriptType    = "text/javascript; charset=utf-8"
)

// scalarStyles are the hashes of the style elements that the pinned version of Scalar creates. Its elements also have style
// attributes with sizes and positions that depend on the window, so hashes cannot cover them. No other inline style is allowed, and no
// inline script. When you change the version, TestPortalInABrowser prints the new hashes.
var scalarStyles = []string{
	"sha256-d7niGYA9R/xp7r1pyc/+3ntTepKCabnrqd2exao76s4=", // Tailwind and the components
	"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", // an empty one
	"sha256-ZW1GSuo0pKyEx5Ar7ZC5Dflb/mjatjeTW9aVx0iZAzE=", // notifications
	"sha256-DLlkYCuDYGe6ME23YkUFB7Tc36rGDeo4mVBFbZX3uaU=", // notifications
	"sha256-rO+6k1mDRASa9Q8IQu9I3bF+bjRdxDreAZCyGSaxzeI=", // the theme
}

func scalarPolicy() string {
	elements := "style-src-elem 'self' '" + strings.Join(scalarStyles, "' '") + "'; style-src-attr 'unsafe-inline'"
	return strings.Replace(policy, "style-src 'self'", elements, 1)
}

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
	p.pages[referencePage] = newPage(htmlType, scalarPolicy(), html)
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
