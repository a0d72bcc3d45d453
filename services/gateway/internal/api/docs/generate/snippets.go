package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// language is a language of snippets. A program can lack some of them.
type language struct {
	name  string // as readers see it
	fence string // as Markdown and the highlighter name it
	path  string // of the program with a name, in the folder of the snippets
}

var languages = []language{
	{"curl", "bash", "curl/%s.sh"},
	{"Go", "go", "go/%s/main.go"},
	{"TypeScript", "ts", "typescript/%s.ts"},
	{"Python", "python", "python/%s.py"},
}

// snippet is a part of a program in one language.
type snippet struct {
	language
	code string
}

// load returns the region of a program in each language that has the program. reference is <program>#<region>.
func load(repository fs.FS, reference string) ([]snippet, error) {
	program, region, found := strings.Cut(reference, "#")
	if !found || region == "" {
		return nil, fmt.Errorf("snippet %q: write <program>#<region>", reference)
	}
	var all []snippet
	for _, l := range languages {
		file := path.Join(snippets, fmt.Sprintf(l.path, program))
		text, err := fs.ReadFile(repository, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("snippet %s: %w", reference, err)
		}
		code, err := cut(string(text), region)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, snippet{l, code})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("snippet %s: no program of that name", reference)
	}
	return all, nil
}

// cut returns the lines between the comments "snippet <region>" and "end", without their common indentation.
func cut(text, region string) (string, error) {
	var lines []string
	inside, complete := false, false
	for line := range strings.SplitSeq(text, "\n") {
		comment := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "/#"))
		isComment := comment != strings.TrimSpace(line)
		switch {
		case isComment && comment == "snippet "+region:
			if complete {
				return "", fmt.Errorf("two regions are called %s", region)
			}
			inside = true
		case isComment && comment == "end" && inside:
			inside, complete = false, true
		case inside:
			lines = append(lines, line)
		}
	}
	if !complete || len(lines) == 0 {
		return "", fmt.Errorf("no region %s: begin it with the comment %q, and end it with the comment \"end\"", region, "snippet "+region)
	}
	return dedent(lines), nil
}

func dedent(lines []string) string {
	indent := -1
	for _, line := range lines {
		if trimmed := strings.TrimLeft(line, " \t"); trimmed != "" && (indent < 0 || len(line)-len(trimmed) < indent) {
			indent = len(line) - len(trimmed)
		}
	}
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(line[min(max(indent, 0), len(line)):] + "\n")
	}
	return out.String()
}
