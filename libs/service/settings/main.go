// Command settings writes docs/settings.md: every setting of every service, read from the Config structs and their
// comments. Run it in the root of the repository; `make gen` does.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	page, err := page(".")
	if err == nil {
		err = os.WriteFile(filepath.Join("docs", "settings.md"), []byte(page), 0o644) //nolint:gosec // a page of the documentation
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "settings:", err)
		os.Exit(1)
	}
}
