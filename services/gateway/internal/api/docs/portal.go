package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"

	"holdfast.dev/proto"
)

// portal contains what the pages have in common.
type portal struct {
	Address    string // of the platform, without a path
	Groups     []group
	Operations []operation
	Codes      []proto.ErrorCode
	Info       object // of the contract
	markdown   map[string][]byte
	content    map[string]template.HTML // by slug
}

// group, guide and section are the entries of guides/index.gen.json.
type group struct {
	Title  string
	Guides []guide
}

type guide struct {
	Slug, Title, Description string
	Sections                 []section
}

type section struct{ ID, Title, Text string }

// newPortal reads the guides.
func newPortal(address string, r reference) (*portal, error) {
	p := &portal{
		Address: strings.TrimSuffix(address, "/"), Operations: r.operations, Codes: proto.ErrorCodes, Info: r.info,
		markdown: map[string][]byte{}, content: map[string]template.HTML{},
	}
	index, err := fs.ReadFile(guides, "guides/index.gen.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(index, &p.Groups); err != nil {
		return nil, fmt.Errorf("index of the guides: %w", err)
	}
	for _, g := range p.Groups {
		for _, one := range g.Guides {
			html, err := fs.ReadFile(guides, "guides/"+one.Slug+".gen.html")
			if err != nil {
				return nil, err
			}
			p.content[one.Slug] = template.HTML(html) //nolint:gosec // generated, and without HTML of the guides' authors
			if p.markdown[one.Slug], err = fs.ReadFile(guides, "guides/"+one.Slug+".gen.md"); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// frame is what a page shows, in addition to its own part.
type frame struct {
	*portal

	Title, Description string
	Path               string // of the page
	Source             string // path of the page as Markdown; empty if it has none
	Part               string // of the navigation at the top
	Sections           []section
	Content            template.HTML
	Previous, Next     *guide
}

// addPortal adds the pages of the guides, of the errors and of the whole portal, and their Markdown.
func (p *Pages) addPortal(c *portal) error {
	if err := p.addStatic(); err != nil {
		return err
	}
	pages := []struct {
		template string
		frame    frame
	}{
		{"front", frame{Title: "Holdfast", Description: "Booking API.", Path: "/"}},
		{"home", frame{Title: "Documentation", Description: "Guides for developers who build on Holdfast.", Path: "/docs", Part: "guides", Source: "/llms.txt"}},
		{"errors", frame{Title: "Error codes", Description: "What causes each error, what to do, and whether to retry.", Path: proto.ErrorsPage, Part: "errors", Source: proto.ErrorsPage + ".md"}},
		{"search", frame{Title: "Search", Description: "Search guides, the API reference, error codes, the command line and the SDKs.", Path: "/docs/search"}},
	}
	all := c.guides()
	for i, g := range all {
		f := frame{
			Title: g.Title, Description: g.Description, Path: "/docs/" + g.Slug, Part: "guides", Source: "/docs/" + g.Slug + ".md",
			Sections: g.Sections[1:], Content: c.content[g.Slug],
		}
		if i > 0 {
			f.Previous = &all[i-1]
		}
		if i+1 < len(all) {
			f.Next = &all[i+1]
		}
		pages = append(pages, struct {
			template string
			frame    frame
		}{"guide", f})
		p.add(f.Source, markdown, c.markdown[g.Slug])
	}
	for _, one := range pages {
		if err := p.render(c, one.template, one.frame); err != nil {
			return err
		}
	}
	missing, err := execute("missing", frame{portal: c, Title: "Page not found", Description: "This page does not exist."})
	if err != nil {
		return err
	}
	p.missing = newPage(htmlType, policy, missing)
	p.missing.status = http.StatusNotFound
	return p.addTexts(c)
}

// guides returns all guides in the order of the navigation.
func (c *portal) guides() (all []guide) {
	for _, g := range c.Groups {
		all = append(all, g.Guides...)
	}
	return all
}

// render adds a page.
func (p *Pages) render(c *portal, name string, f frame) error {
	f.portal = c
	html, err := execute(name, f)
	if err != nil {
		return err
	}
	p.add(f.Path, htmlType, html)
	return nil
}

// addTexts adds the documents for programs: llms.txt, llms-full.txt, and the errors and the operations as Markdown.
func (p *Pages) addTexts(c *portal) error {
	texts := map[string][]byte{}
	for _, name := range []string{"llms.txt", "errors.md", "reference.md"} {
		text, err := executeText(name, c)
		if err != nil {
			return err
		}
		texts[name] = text
	}
	p.add("/llms.txt", markdown, texts["llms.txt"])
	p.add(proto.ErrorsPage+".md", markdown, texts["errors.md"])
	p.add("/docs/reference.md", markdown, texts["reference.md"])
	var full bytes.Buffer
	for _, g := range c.guides() {
		full.Write(c.markdown[g.Slug])
		full.WriteByte('\n')
	}
	full.Write(texts["errors.md"])
	full.WriteByte('\n')
	full.Write(texts["reference.md"])
	p.add("/llms-full.txt", markdown, full.Bytes())
	return nil
}
