package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

const (
	// searchLibrary is MiniSearch, which the search in the browser uses.
	searchLibrary = "assets/minisearch.js"
	// maxIndex is the maximum size of the index of the search in bytes, uncompressed. Browsers load it when someone searches.
	maxIndex = 400 << 10
)

// entry is a section of a page, an operation or an error code that the search finds.
type entry struct {
	Kind  string `json:"k"` // what the reader sees next to the title
	Page  string `json:"p"` // the title of its page, also searched
	Title string `json:"t"`
	URL   string `json:"u"`
	Text  string `json:"x"` // also searched
}

// addSearch adds the library of the search, if it existed at build time, and the index.
func (p *Pages) addSearch(c *portal, assets fs.FS) error {
	library, err := fs.ReadFile(assets, searchLibrary)
	switch {
	case err == nil:
		p.add("/docs/static/minisearch.js", scriptType, library)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read the library of the search: %w", err)
	}
	index, err := p.index(c)
	if err != nil {
		return err
	}
	p.add("/docs/search.json", "application/json", index)
	return nil
}

// index returns the index of the search as JSON.
func (p *Pages) index(c *portal) ([]byte, error) {
	var all []entry
	for _, group := range c.Groups {
		for _, g := range group.Guides {
			for i, s := range g.Sections {
				e := entry{group.Title, g.Title, g.Title, "/docs/" + g.Slug, g.Description + " " + s.Text}
				if i > 0 {
					e.Title, e.URL, e.Text = s.Title, e.URL+"#"+s.ID, s.Text
				}
				all = append(all, e)
			}
		}
	}
	for _, op := range c.Operations {
		all = append(all, entry{"API reference", op.Tag, op.Summary, op.anchor(p.Scalar), op.searched()})
	}
	for _, code := range c.Codes {
		all = append(all, entry{"Error code", "Errors", code.Code, "/docs/errors#" + code.Code, fmt.Sprintf("%d %s %s", code.Status, code.Cause, code.Remedy)})
	}
	text, err := json.Marshal(all)
	if err == nil && len(text) > maxIndex {
		err = fmt.Errorf("the index of the search has %d bytes, the maximum is %d", len(text), maxIndex)
	}
	return text, err
}

// searched returns the text of an operation: its request, its description, its scopes, and the names of its parameters and fields.
func (op *operation) searched() string {
	terms := append([]string{op.Method, op.Path, op.Description}, op.Scopes...)
	for _, f := range append(op.Parameters, op.Body...) {
		terms = append(terms, f.Name)
	}
	return strings.Join(terms, " ")
}
