package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
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
	// sectionText is the maximum length of a section's text in the index, in bytes.
	sectionText = 300
)

// shown are the languages of blocks whose text is in the guide itself. Programs are included, so that the tests run them.
var shown = []string{"json", "http", "text"}

// Render returns the files of the guides by name.
func Render(guides, programs fs.FS) (map[string][]byte, error) {
	groups, err := list(guides)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var problems []error
	for i := range groups {
		for j := range groups[i].Guides {
			g := &groups[i].Guides[j]
			source, err := fs.ReadFile(guides, g.Slug+".md")
			if err != nil {
				return nil, err
			}
			p := &page{guide: g, programs: programs, source: source}
			if err := p.render(files); err != nil {
				problems = append(problems, fmt.Errorf("%s.md: %w", g.Slug, err))
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

	programs fs.FS
	source   []byte
	tabs     int // number of snippets so far
	problems []error
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
	p.relink(doc)
	var out bytes.Buffer
	out.WriteString("<!-- Generated from docs/guides by make gen. DO NOT EDIT. -->\n")
	if err := markdown.Renderer().Render(&out, p.source, doc); err != nil {
		return err
	}
	files[p.Slug+".gen.html"] = out.Bytes()
	files[p.Slug+".gen.md"] = p.expanded()
	return errors.Join(p.problems...)
}

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
		parts, err := load(p.programs, reference)
		if err != nil {
			p.problems = append(p.problems, err)
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkSkipChildren, p.writeTabs(w, parts)
	}
	if !slices.Contains(shown, info) {
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
		parts, err := load(p.programs, string(include.FindSubmatch(block)[1]))
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

var href = regexp.MustCompile(`href="([^"]*)"`)

// served are the pages under /docs that are not guides.
var served = []string{"/docs", "/docs/errors", "/docs/reference", "/openapi.json", "/openapi.yaml", "/openapi-sdk.json", "/openapi-webhooks.json"}

// checkLinks returns an error for each link to a page or a section that does not exist.
func checkLinks(groups []group, files map[string][]byte) (problems []error) {
	targets := map[string]bool{}
	for _, path := range served {
		targets[path] = true
	}
	for _, g := range groups {
		for _, one := range g.Guides {
			for _, s := range one.Sections {
				targets["/docs/"+one.Slug+"#"+s.ID] = true
			}
			targets["/docs/"+one.Slug] = true
		}
	}
	for name, text := range files {
		slug, isPage := strings.CutSuffix(name, ".gen.html")
		for _, m := range href.FindAllSubmatch(text, -1) {
			to := html.UnescapeString(string(m[1]))
			if strings.HasPrefix(to, "#") {
				to = "/docs/" + slug + to
			}
			known := targets[to] || strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "/docs/errors#") || strings.HasPrefix(to, "/docs/reference#")
			if isPage && !known {
				problems = append(problems, fmt.Errorf("%s.md: a link to %s, which does not exist", slug, to))
			}
		}
	}
	return problems
}
