package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"
)

// mostMissed is how many of the queries can have another first result than the expected one.
const mostMissed = 5

// program answers queries with the scripts of the pages. It reads them, and writes the first results of each.
const program = `import { readFileSync } from 'node:fs';
import { find, highlight, open } from './search.js';
const index = open(JSON.parse(readFileSync('search.json')));
const all = JSON.parse(readFileSync(0)).map((query) => find(index, query).slice(0, 3).map((r) => ({ ...r, x: highlight(r.x, r.terms) })));
console.log(JSON.stringify(all));
`

// result is a place that the search finds, with the parts of its text.
type result struct {
	URL  string `json:"u"`
	Text []struct {
		Text string `json:"text"`
		Hit  bool   `json:"hit"`
	} `json:"x"`
}

// results returns the first results of each query, as a browser computes them.
func results(t *testing.T, queries []string) [][]result {
	t.Helper()
	library, err := fs.ReadFile(Embedded(), searchLibrary)
	if err != nil {
		if !testservers.Inside() {
			t.Skip("run `make build`, which embeds the library of the search and requires Node.js")
		}
		t.Fatal(err)
	}
	p := pages(t, proto.OpenAPI, fstest.MapFS{searchLibrary: {Data: library}}) // the anchors in the list are those of the plain page
	folder := t.TempDir()
	files := map[string][]byte{"package.json": []byte(`{"type": "module"}`), "query.js": []byte(program)}
	for _, path := range []string{"/docs/search.json", "/docs/static/search.js", "/docs/static/minisearch.js"} {
		files[filepath.Base(path)] = p.get(t, path, "").Body.Bytes()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	input, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "query.js")
	cmd.Dir, cmd.Stdin, cmd.Stderr = folder, bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var all [][]result
	if err := json.Unmarshal(out, &all); err != nil || len(all) != len(queries) {
		t.Fatalf("%d responses: %v", len(all), err)
	}
	return all
}

// The search answers natural queries, with typing errors, plurals and beginnings of words. testdata/queries.tsv has the page, or the place in
// the reference or in the catalogue, that must be the first result of each.
func TestSearchFindsThePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/queries.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var queries, expected []string
	for line := range strings.Lines(string(text)) {
		query, page, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found {
			t.Fatalf("%q: write the query, a tab and the page", line)
		}
		queries, expected = append(queries, query), append(expected, page)
	}
	if len(queries) != 60 {
		t.Fatalf("%d queries", len(queries))
	}
	var missed []string
	for i, found := range results(t, queries) {
		var urls []string
		for _, one := range found {
			urls = append(urls, one.URL)
		}
		if len(urls) == 0 || urls[0] != expected[i] && !strings.HasPrefix(urls[0], expected[i]+"#") {
			missed = append(missed, fmt.Sprintf("%s: %v, want %s", queries[i], urls, expected[i]))
		}
	}
	message := fmt.Sprintf("%d of %d queries have another first result:\n%s", len(missed), len(queries), strings.Join(missed, "\n"))
	if t.Log(message); len(missed) > mostMissed {
		t.Fail()
	}
}

// A result shows the text around its first match, with the words that match the query by stem or with a typing error.
func TestSearchMarksTheMatches(t *testing.T) {
	t.Parallel()
	found := results(t, []string{"verifying signatur", "zzzz", "?", "the"})
	for _, none := range found[1:] {
		if len(none) != 0 {
			t.Errorf("results of nothing: %v", none)
		}
	}
	var marked []string
	length := 0
	for _, part := range found[0][0].Text {
		if length += len(part.Text); part.Hit {
			marked = append(marked, part.Text)
		}
	}
	if !slices.Contains(marked, "Verify") && !slices.Contains(marked, "verify") || !slices.Contains(marked, "signature") || length > 220 {
		t.Errorf("%d bytes with the marks %q", length, marked)
	}
}

// The index is small enough to be loaded when someone starts to search.
func TestSearchTransfersLittle(t *testing.T) {
	t.Parallel()
	p := pages(t, proto.OpenAPI, Embedded())
	size := 0
	for _, path := range []string{"/docs/search.json", "/docs/static/search.js", "/docs/static/minisearch.js"} {
		size += p.call(t, "GET", path, "gzip", "").Body.Len()
	}
	if size > 100<<10 {
		t.Errorf("a search transfers %d bytes", size)
	}
}
