package main

import (
	"bytes"
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"
)

// internal are the sections of pages of the repository that only its developers need.
var internal = []string{"Compatibility", "Development", "How it works", "How they are generated", "How they are tested", "Release"}

var (
	comment      = regexp.MustCompile(`(?m)^<!--.*-->\n`)
	heading      = regexp.MustCompile(`^# .*\n`)
	contents     = regexp.MustCompile(`^(?:\[[^\]]+\]\(#[^)]+\)(?: ·)?\s)+$`) // a line of a table of contents, which the page has anyway
	relativeLink = regexp.MustCompile(`\[([^\]\n]*)\]\(([^)\s]+)\)`)
)

// adopt returns a page of the repository as a guide: with the title of the list, without its table of contents and the sections for developers of the
// repository, and with links to pages of the portal. Links to other files become text.
func (p *page) adopt(text []byte) []byte {
	text = heading.ReplaceAll(comment.ReplaceAll(text, nil), []byte("# "+p.Title+"\n"))
	var out bytes.Buffer
	code, omit := false, false
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")) {
			code = !code
		}
		if title, ok := bytes.CutPrefix(line, []byte("## ")); ok && !code {
			omit = slices.Contains(internal, string(bytes.TrimSpace(title)))
		}
		switch {
		case omit || !code && contents.Match(line):
		case code:
			out.Write(line)
		default:
			out.Write(relativeLink.ReplaceAllFunc(line, p.adoptLink))
		}
	}
	return out.Bytes()
}

// adoptLink returns a link of a page of the repository as a link of a guide.
func (p *page) adoptLink(link []byte) []byte {
	parts := relativeLink.FindSubmatch(link)
	to, fragment, _ := strings.Cut(string(parts[2]), "#")
	if strings.Contains(to, "://") {
		return link
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	if slices.ContainsFunc(internal, func(title string) bool {
		return fragment == "#"+strings.ReplaceAll(strings.ToLower(title), " ", "-")
	}) {
		return parts[1]
	}
	if to == "" {
		return link
	}
	if slug, ok := p.pages[path.Join(source, path.Dir(p.file), to)]; ok {
		return fmt.Appendf(nil, "[%s](%s.md%s)", parts[1], slug, fragment)
	}
	return parts[1]
}

var (
	href   = regexp.MustCompile(`href="([^"]*)"`)
	anchor = regexp.MustCompile(` id="([^"]*)"`)
)

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
			for _, id := range anchor.FindAllSubmatch(files[one.Slug+".gen.html"], -1) {
				targets["/docs/"+one.Slug+"#"+string(id[1])] = true
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
