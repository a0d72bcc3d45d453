package main

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// group is a heading of the navigation with its guides.
type group struct {
	Title  string  `json:"title"`
	Guides []guide `json:"guides"`
}

// guide is an entry of index.gen.json.
type guide struct {
	Slug        string    `json:"slug"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Sections    []section `json:"sections"`

	file string // its path in the folder of the guides, or that of a page of the repository from there
}

// section is a part of a guide, for its table of contents and for the search.
type section struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"` // its text without code, at most sectionText bytes
}

// listFile lists all guides in the order of the navigation.
const listFile = "README.md"

// listed matches a line of the list. The target is a guide of the folder, or a page of the repository.
var listed = regexp.MustCompile(`^- \[([^\]]+)\]\(((?:\.\./\.\./)?[A-Za-z/-]+\.md)\): (.+)$`)

// own are the pages of the repository that the portal also serves, by the name of their page. Their facts stay where they are.
var own = map[string]string{
	"../../CHANGELOG.md":                 changelog,
	"../../sdks/README.md":               "sdks",
	"../../sdks/cli/README.md":           "cli",
	"../../sdks/cli/reference.md":        "cli-reference",
	"../../sdks/collections/README.md":   "collections",
	"../../sdks/go/README.md":            "sdk-go",
	"../../sdks/python/README.md":        "sdk-python",
	"../../sdks/python/reference.md":     "sdk-python-reference",
	"../../sdks/typescript/README.md":    "sdk-typescript",
	"../../sdks/typescript/reference.md": "sdk-typescript-reference",
}

// list reads the groups of the list. It fails if the list and the folder have different guides.
func list(guides fs.FS) ([]group, error) {
	text, err := fs.ReadFile(guides, listFile)
	if err != nil {
		return nil, err
	}
	var groups []group
	var names []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			groups = append(groups, group{Title: title})
		} else if m := listed.FindStringSubmatch(line); m != nil && len(groups) > 0 {
			slug, outside := own[m[2]]
			if !outside {
				slug = strings.TrimSuffix(m[2], ".md")
				names = append(names, m[2])
			}
			last := &groups[len(groups)-1]
			last.Guides = append(last.Guides, guide{Title: m[1], Slug: slug, Description: m[3], file: m[2]})
		}
	}
	groups = slices.DeleteFunc(groups, func(g group) bool { return len(g.Guides) == 0 })
	files, err := fs.Glob(guides, "*.md")
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return name == listFile })
	if slices.Sort(names); !slices.Equal(names, files) {
		return nil, fmt.Errorf("%s lists %v, but the folder has %v", listFile, names, files)
	}
	return groups, nil
}
