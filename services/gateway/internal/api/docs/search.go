package docs

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxIndex is the maximum size of the index of the search in bytes. Browsers load it when someone searches.
const maxIndex = 160 << 10

// entry is a page, a section, an operation or an error code that the search finds.
type entry struct {
	Kind  string `json:"k"` // what the reader sees next to the title
	Title string `json:"t"`
	URL   string `json:"u"`
	Text  string `json:"x"` // also searched
}

// index returns the index of the search as JSON.
func (p *Pages) index(c *portal) ([]byte, error) {
	var all []entry
	for _, g := range c.guides() {
		for i, s := range g.Sections {
			e := entry{"Guide", g.Title, "/docs/" + g.Slug, g.Description + " " + s.Text}
			if i > 0 {
				e = entry{g.Title, s.Title, "/docs/" + g.Slug + "#" + s.ID, s.Text}
			}
			all = append(all, e)
		}
	}
	for _, op := range c.Operations {
		all = append(all, entry{"API reference", op.Summary, op.anchor(p.Scalar), op.Method + " " + op.Path + " " + strings.Join(op.Scopes, " ")})
	}
	for _, code := range c.Codes {
		all = append(all, entry{"Error", code.Code, "/docs/errors#" + code.Code, fmt.Sprintf("%d %s", code.Status, code.Cause)})
	}
	text, err := json.Marshal(all)
	if err == nil && len(text) > maxIndex {
		err = fmt.Errorf("the index of the search has %d bytes, the maximum is %d", len(text), maxIndex)
	}
	return text, err
}
