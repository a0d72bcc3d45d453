// Command generate renders the guides of docs/guides, and the pages of the repository that their list names, which the gateway serves
// under /docs. It writes to the folder guides of package docs: the contents of each page, its Markdown with all snippets, and
// index.gen.json. Run it in the gateway's folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	repository = "../.."
	source     = "docs/guides"
	snippets   = "sdks/scenario/snippets"
	target     = "internal/api/docs/guides"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "guides:", err)
		os.Exit(1)
	}
}

// run replaces all files of the target.
func run() error {
	files, err := Render(os.DirFS(repository))
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(target, "*.gen.*"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(target, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
