package stack

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast.dev/services/local/internal/seed"
	"holdfast.dev/services/local/internal/state"
)

var (
	usedName = regexp.MustCompile(`\$\{?([A-Z][A-Z0-9_]+)`)
	// definedName and explainedRow match the names that a page sets or explains in a table.
	definedName  = regexp.MustCompile("(?m)^(?:export )?([A-Z][A-Z0-9_]+)=")
	explainedRow = regexp.MustCompile("(?m)^\\| (`[A-Z][A-Z0-9_]+`(?:, `[A-Z][A-Z0-9_]+`)*) \\|")
	quotedName   = regexp.MustCompile("`([A-Z][A-Z0-9_]+)`")
)

// TestVariablesOfTheDocs checks that the commands in the documentation use only names from .run/env and names that their page, or the
// README.md to which it refers, sets or explains.
func TestVariablesOfTheDocs(t *testing.T) {
	t.Parallel()
	p := &Platform{Servers: Servers{state: state.Memory(), brokers: []string{"127.0.0.1:9092"}}}
	known := map[string]bool{}
	for _, line := range p.publicEnv(seed.Result{}) {
		name, _, _ := strings.Cut(line, "=")
		known[name] = true
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	root := filepath.Join("..", "..", "..", "..")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		pages++
		// The path begins with the module's folder and is not cleaned: otherwise go test would use a cached result.
		text, err := os.ReadFile(here + "/" + path)
		if err != nil {
			return err
		}
		explained := string(text)
		if strings.Contains(explained, "](README.md#variables)") {
			shared, err := os.ReadFile(here + "/" + filepath.Dir(path) + "/README.md")
			if err != nil {
				return err
			}
			explained += string(shared)
		}
		own := map[string]bool{}
		for _, m := range definedName.FindAllStringSubmatch(explained, -1) {
			own[m[1]] = true
		}
		for _, row := range explainedRow.FindAllStringSubmatch(explained, -1) {
			for _, m := range quotedName.FindAllStringSubmatch(row[1], -1) {
				own[m[1]] = true
			}
		}
		for _, m := range usedName.FindAllStringSubmatch(string(text), -1) {
			if !known[m[1]] && !own[m[1]] {
				t.Errorf("%s uses $%s, which .run/env lacks and the page does not explain", path, m[1])
			}
		}
		return nil
	})
	if err != nil || pages < 5 {
		t.Errorf("%d pages: %v", pages, err)
	}
}
