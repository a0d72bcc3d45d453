package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// The committed files are those that make gen would write. Only `make verify` compares the changelog, so that a line in it needs no other change.
func TestGuidesAreCurrent(t *testing.T) {
	t.Parallel()
	root := "../../../.."
	files, err := Render(os.DirFS(filepath.Join(root, repository)))
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(root, target, "*"))
	if err != nil || len(names) != len(files) {
		t.Errorf("%d files, want %d: run make gen (%v)", len(names), len(files), err)
	}
	for name, want := range files {
		isChangelog := strings.HasPrefix(name, changelog+".")
		if got, err := os.ReadFile(filepath.Join(root, target, name)); err != nil || !isChangelog && !bytes.Equal(got, want) {
			t.Errorf("%s is not current: run make gen (%v)", name, err)
		}
	}
}

// Each program is in a guide, so that none is run for nothing.
func TestEachProgramIsShown(t *testing.T) {
	t.Parallel()
	root := "../../../.."
	var text strings.Builder
	guides, err := filepath.Glob(filepath.Join(root, repository, source, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range guides {
		one, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(one)
	}
	programs, err := filepath.Glob(filepath.Join(root, repository, snippets, "go", "*"))
	if err != nil || len(programs) == 0 {
		t.Fatal(err)
	}
	for _, program := range programs {
		if name := filepath.Base(program); !strings.Contains(text.String(), "```"+snippetFence+name+"#") {
			t.Errorf("no guide shows a part of %s", name)
		}
	}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// Each request with a body asks for errors on unknown fields, so that readers who copy it notice misspelled names. The SDKs do so themselves.
func TestCurlRequestsAreStrict(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob(filepath.Join("../../../..", repository, snippets, "curl", "*.sh"))
	if err != nil || len(programs) == 0 {
		t.Fatal(err)
	}
	const header, function = "-H 'Prefer: handling=strict'", "api() { curl -sS --fail-with-body " + "-H 'Prefer: handling=strict'"
	for _, name := range programs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			inFunction := regexp.MustCompile(`\bapi /`).MatchString(line) && strings.Contains(string(text), function)
			if strings.Contains(line, " --json ") && !strings.Contains(line, header) && !inFunction {
				t.Errorf("%s: without %s:\n%s", filepath.Base(name), header, line)
			}
		}
	}
}

// portal returns a repository with one guide, and a program in two languages.
func portal(body string) fstest.MapFS {
	return fstest.MapFS{
		source + "/README.md":      file("# Guides\n\n## Start\n\n- [One](one.md): The first.\n"),
		source + "/one.md":         file("# One\n\n" + body + "\n"),
		snippets + "/curl/p.sh":    file("set -e\n# snippet show\ncurl \"$A\" <x\n# end\n"),
		snippets + "/go/p/main.go": file("func main() {\n\t// snippet show\n\tif ok {\n\t\trun()\n\t}\n\t// end\n}\n"),
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	files, err := Render(portal("Text & `code`, [errors](/docs/errors#rate_limited), [here](one.md#next).\n\n## Next\n\n```snippet p#show\n```\n\n```json\n{\"a\": 1}\n```"))
	if err != nil {
		t.Fatal(err)
	}
	html, markdown := string(files["one.gen.html"]), string(files["one.gen.md"])
	for _, want := range []string{
		"<p>Text &amp; <code>code</code>", `<a href="/docs/one#next">here</a>`, `<h2 id="next">Next</h2>`,
		`<input type="radio" name="tab-1" id="tab-1-1" value="bash" checked><label for="tab-1-1">curl</label>`,
		`value="go"><label for="tab-1-2">Go</label>`, `&lt;x`, `<pre tabindex="0" data-language="json">`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in\n%s", want, html)
		}
	}
	if !strings.Contains(markdown, "```bash\ncurl \"$A\" <x\n```\n\n```go\nif ok {\n\trun()\n}\n```\n") || strings.Contains(markdown, snippetFence) {
		t.Errorf("Markdown\n%s", markdown)
	}
	if index := string(files["index.gen.json"]); !strings.Contains(index, `"id": "next"`) || !strings.Contains(index, `"text": "Text \u0026 code, errors, here."`) {
		t.Errorf("index\n%s", index)
	}
}

// A guide with a program that no test runs, with HTML, or with a broken link is rejected.
func TestRejectedGuides(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, want string }{
		"a program in the guide":      {"```go\nfmt.Println()\n```", "a program must be a snippet"},
		"a block without a language":  {"```\nx\n```", "a program must be a snippet"},
		"an indented program":         {"Text\n\n    curl x", "indented"},
		"a program that is missing":   {"```snippet q#show\n```", "snippet q#show: no program"},
		"a region that is missing":    {"```snippet p#other\n```", `no region other`},
		"a snippet without a region":  {"```snippet p\n```", "write <program>#<region>"},
		"HTML":                        {"<b>x</b>", "no HTML"},
		"a script":                    {"<script>x</script>", "no HTML"},
		"a guide that does not exist": {"[x](two.md)", "/docs/two"},
		"a section of another name":   {"[x](#two)", "/docs/one#two"},
		"a page that does not exist":  {"[x](/docs/two)", "/docs/two"},
		"a script as a link":          {"[x](javascript:alert)", `a link to`},
	} {
		_, err := Render(portal(tc.body))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	guides := portal("")
	guides[source+"/two.md"] = guides[source+"/one.md"]
	if _, err := Render(guides); err == nil || !strings.Contains(err.Error(), "the folder has [one.md two.md]") {
		t.Errorf("a guide that is not listed: %v", err)
	}
}

// A page of the repository gets the title of the list. It keeps its code, loses the sections for developers, and its links lead to pages of
// the portal or become text.
func TestAPageOfTheRepository(t *testing.T) {
	t.Parallel()
	repository := portal("[Go](sdk-go.md#use)")
	repository[source+"/README.md"].Data = append(repository[source+"/README.md"].Data, "- [Go SDK](../../sdks/go/README.md): The client.\n"...)
	repository["sdks/go/README.md"] = file("<!-- Generated. -->\n# Holdfast for Go\n\n[One](../../docs/guides/one.md), [all](../README.md#x), [how](#how-it-works), [use](#use), " +
		"[out](https://example.com)\n\n[Use](#use) · [How it works](#how-it-works) ·\n[End](#end)\n\n## Use\n\n```go\nx := a[0](b)\n```\n\n## How it works\n\nSecret.\n\n## End\n")
	files, err := Render(repository)
	if err != nil {
		t.Fatal(err)
	}
	html := string(files["sdk-go.gen.html"])
	want := `<p><a href="/docs/one">One</a>, all, how, <a href="#use">use</a>, <a href="https://example.com">out</a></p>`
	for _, part := range []string{`<h1 id="go-sdk">Go SDK</h1>`, want, `<h2 id="end">`, `a[`} {
		if !strings.Contains(html, part) {
			t.Errorf("no %s in\n%s", part, html)
		}
	}
	if strings.Contains(html, "Secret") || strings.Contains(html, " · ") || strings.Contains(html, `href="#end"`) {
		t.Errorf("a section for developers, or a table of contents, in\n%s", html)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	const program = "# snippet a\n  x\n    y\n\n  z\n# end\n# snippet b\n# end\n# snippet c\nx\n"
	got := map[string]string{}
	for _, region := range []string{"a", "b", "c"} {
		code, err := cut(program, region)
		got[region] = fmt.Sprintf("%q %v", code, err == nil)
	}
	want := map[string]string{"a": `"x\n  y\n\nz\n" true`, "b": `"" false`, "c": `"" false`}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := cut(program+program, "a"); err == nil {
		t.Error("two regions with the same name are accepted")
	}
}
