package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// snippetFence begins the info string of a block that includes a snippet.
	snippetFence = "snippet "
	// changelog is the name of the page with the changelog.
	changelog = "changelog"
	// sectionText is the maximum length of a section's text in the index, in bytes.
	sectionText = 6000
)

// shown are the languages of blocks whose text is in the guide itself. Programs are included, so that the tests run them.
var shown = []string{"json", "http", "text"}

// tested are the languages of further blocks, by guide: the tests of services/webhooks run those of its guide.
var tested = map[string][]string{"webhooks": {"go", "ts", "python", "sql"}}

// Render returns the files of the guides by name. They are in the folders source and snippets of the repository.
func Render(repository fs.FS) (map[string][]byte, error) {
	guides, err := fs.Sub(repository, source)
	if err != nil {
		return nil, err
	}
	groups, err := list(guides)
	if err != nil {
		return nil, err
	}
	files, pages := map[string][]byte{}, map[string]string{}
	for _, g := range groups {
		for _, one := range g.Guides {
			pages[path.Join(source, one.file)] = one.Slug
		}
	}
	var problems []error
	for i := range groups {
		for j := range groups[i].Guides {
			g := &groups[i].Guides[j]
			text, err := fs.ReadFile(repository, path.Join(source, g.file))
			if err != nil {
				return nil, err
			}
			p := &page{guide: g, repository: repository, pages: pages, source: text}
			if _, p.outside = own[g.file]; p.outside {
				p.source = p.adopt(text)
			}
			if err := p.render(files); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", g.file, err))
			}
		}
	}
	index, err := json.MarshalIndent(groups, "", "\t")
	if err != nil {
		return nil, err
	}
	files["index.gen.json"] = append(index, '\n')
	return files, errors.Join(append(problems, checkLinks(groups, files)...)...)
}

// page renders one guide.
type page struct {
	*guide

	repository fs.FS
	pages      map[string]string // the names of all pages by their file in the repository
	outside    bool              // the page is not a guide, but a page of the repository
	source     []byte
	tabs       int // number of snippets so far
	problems   []error
}

// render adds the files of the guide.
func (p *page) render(files map[string][]byte) error {
	if !bytes.HasPrefix(p.source, []byte("# "+p.Title+"\n")) {
		return fmt.Errorf("begin the guide with its title in %s, # %s", listFile, p.Title)
	}
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(p, 100))),
	)
	doc := markdown.Parser().Parse(text.NewReader(p.source))
	p.Sections = p.sections(doc)
	if p.Slug == changelog { // it changes with most commits, and names nearly everything
		for i := range p.Sections {
			p.Sections[i].Text = ""
		}
	}
	p.relink(doc)
	var out bytes.Buffer
	fmt.Fprintf(&out, "<!-- Generated from %s by make gen. DO NOT EDIT. -->\n", path.Join(source, p.file))
	if err := markdown.Renderer().Render(&out, p.source, doc); err != nil {
		return err
	}
	files[p.Slug+".gen.html"] = scrollable(out.Bytes())
	files[p.Slug+".gen.md"] = p.expanded()
	return errors.Join(p.problems...)
}

// scrollable makes the tables of a page regions, so that people can scroll a wide one with the keyboard.
func scrollable(page []byte) []byte {
	n := 0
	return tables.ReplaceAllFunc(page, func(table []byte) []byte {
		n++
		return fmt.Appendf(nil, `<div class="scroll" tabindex="0" role="region" aria-label="Table %d">%s</div>`, n, table)
	})
}

var tables = regexp.MustCompile(`(?s)<table>.*?</table>`)

// sections returns the sections of the guide, the first of which has no heading.
func (p *page) sections(doc ast.Node) []section {
	all := []section{{}}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		last := &all[len(all)-1]
		switch n := n.(type) {
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok && n.Level == 2 {
				all = append(all, section{ID: string(id.([]byte)), Title: plainText(n, p.source)})
			}
		case *ast.FencedCodeBlock:
		default:
			last.Text = shorten(strings.TrimSpace(last.Text+" "+plainText(n, p.source)), sectionText)
		}
	}
	return all
}

// plainText returns the text of a node without its markup.
func plainText(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(t.Segment.Value(source))
		}
		if n.Type() == ast.TypeBlock || n.Kind() == ast.KindText {
			out.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	joined := strings.Join(strings.Fields(out.String()), " ")
	return regexp.MustCompile(` ([.,:;!?)])`).ReplaceAllString(joined, "$1")
}

// shorten cuts a text after a word.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:strings.LastIndexByte(text[:most-len("…")], ' ')] + "…"
}

var guideLink = regexp.MustCompile(`^([a-z-]+)\.md(#.*)?$`)

// relink replaces links between files by links between pages.
func (p *page) relink(doc ast.Node) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if l, ok := n.(*ast.Link); ok && entering {
			l.Destination = guideLink.ReplaceAll(l.Destination, []byte("/docs/$1$2"))
		}
		return ast.WalkContinue, nil
	})
}

// RegisterFuncs implements renderer.NodeRenderer.
func (p *page) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, p.block)
	r.Register(ast.KindCodeBlock, func(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
		return ast.WalkStop, errors.New("indented text is a program: use a snippet")
	})
	r.Register(ast.KindHTMLBlock, p.noHTML)
	r.Register(ast.KindRawHTML, p.noHTML)
}

func (p *page) noHTML(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkStop, errors.New("guides have no HTML")
}

// block writes a block of code, or the tabs of a snippet.
func (p *page) block(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	info := ""
	if fence := n.(*ast.FencedCodeBlock); fence.Info != nil {
		info = string(fence.Info.Segment.Value(source))
	}
	if reference, ok := strings.CutPrefix(info, snippetFence); ok {
		parts, err := load(p.repository, reference)
		if err != nil {
			p.problems = append(p.problems, err)
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkSkipChildren, p.writeTabs(w, parts)
	}
	if !p.outside && !slices.Contains(shown, info) && !slices.Contains(tested[p.Slug], info) {
		p.problems = append(p.problems, fmt.Errorf("a block in %q: a program must be a snippet; other blocks are one of %v", info, shown))
		return ast.WalkSkipChildren, nil
	}
	return ast.WalkSkipChildren, highlight(w, info, string(n.Lines().Value(source)))
}

// writeTabs writes one radio button per language, and the code of the selected language. It works without a script.
func (p *page) writeTabs(w util.BufWriter, parts []snippet) error {
	p.tabs++
	fmt.Fprintf(w, "<fieldset class=\"tabs\"><legend>Language of example %d</legend>\n", p.tabs)
	for i, s := range parts {
		checked := ""
		if i == 0 {
			checked = " checked"
		}
		id := fmt.Sprintf("tab-%d-%d", p.tabs, i+1)
		fmt.Fprintf(w, "<input type=\"radio\" name=\"tab-%d\" id=%q value=%q%s><label for=%q>%s</label>\n", p.tabs, id, s.fence, checked, id, s.name)
	}
	for _, s := range parts {
		if err := highlight(w, s.fence, s.code); err != nil {
			return err
		}
	}
	_, err := w.WriteString("</fieldset>\n")
	return err
}

// formatter writes classes, which portal.css colors.
var formatter = chromahtml.New(chromahtml.WithClasses(true), chromahtml.PreventSurroundingPre(true))

// uncolored are the tokens that the style sheet does not color, such as spaces and operators.
var uncolored = regexp.MustCompile(`<span class="(?:w|p|n|nx|nn|o|err)">([^<]*)</span>`)

func highlight(w util.BufWriter, name, code string) error {
	lexer := lexers.Get(name)
	if lexer == nil {
		lexer = lexers.Fallback
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := formatter.Format(&out, styles.Fallback, tokens); err != nil {
		return err
	}
	colored := uncolored.ReplaceAll(out.Bytes(), []byte("$1"))
	_, err = fmt.Fprintf(w, "<pre tabindex=\"0\" data-language=%q><code>%s</code></pre>\n", name, colored)
	return err
}

var include = regexp.MustCompile("(?m)^```" + snippetFence + "(\\S+)\n```$")

// expanded returns the Markdown with the code of all snippets, for programs that read it.
func (p *page) expanded() []byte {
	return include.ReplaceAllFunc(p.source, func(block []byte) []byte {
		parts, err := load(p.repository, string(include.FindSubmatch(block)[1]))
		if err != nil {
			return block // block has reported the error
		}
		var out bytes.Buffer
		for i, s := range parts {
			if i > 0 {
				out.WriteString("\n")
			}
			fmt.Fprintf(&out, "```%s\n%s```\n", s.fence, s.code)
		}
		return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	})
}
