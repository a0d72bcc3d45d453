// Command migrationlint fails when a migration does what the previous version of a service, which still runs during an upgrade, cannot
// tolerate: long locks, dropped or renamed objects, changed types. docs/releases.md lists the rules.
//
// usage: migrationlint FOLDER...
package main

import (
	"fmt"
	"os"

	"holdfast.dev/release/internal/migration"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: migrationlint FOLDER...")
		os.Exit(2)
	}
	failed := false
	for _, folder := range os.Args[1:] {
		findings, err := migration.Lint(os.DirFS(folder))
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", folder, err)
			os.Exit(2)
		}
		for _, f := range findings {
			fmt.Printf("%s/%v\n", folder, f)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
