// Command settings writes docs/settings.md: every setting of every service, read from the Config structs and their comments. `make
// gen` runs it in the folder libs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	const root = ".."
	page, err := page(root)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "docs", "settings.md"), []byte(page), 0o644) //nolint:gosec // a page of the documentation
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "settings:", err)
		os.Exit(1)
	}
}
