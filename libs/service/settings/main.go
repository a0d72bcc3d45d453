// Command settings writes docs/settings.md, every setting of every service, the names of the settings for the chart, and those of each
// Secret. It reads them from the Config structs and their comments. `make gen` runs it in the folder libs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// files returns the text of each generated file, by its path in the checkout.
var files = map[string]func(root string) (string, error){
	"docs/settings.md":                    page,
	"charts/platform/files/settings.yaml": chart,
	"proto/secrets.gen.go":                secrets,
}

func main() {
	const root = ".."
	for path, write := range files {
		text, err := write(root)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, filepath.FromSlash(path)), []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "settings:", err)
			os.Exit(1)
		}
	}
}
