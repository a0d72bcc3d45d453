package archtest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var namedFile = regexp.MustCompile("`([a-z_/.]+/)?[a-z_]+\\.(go|lua|templ|json|yaml|proto)`")

// The files in docs/architecture.md exist. Each is a path from the root, or the end of a path if a service was named before.
func TestArchitectureNamesFiles(t *testing.T) {
	t.Parallel()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	present, _, _ := strings.Cut(string(text), "\n## Decisions") // decisions can name files that no longer exist
	known, found := files(t, root, "services", "libs", "proto", "charts"), 0
	for _, match := range namedFile.FindAllString(present, -1) {
		name := "/" + strings.Trim(match, "`")
		if found++; !slices.ContainsFunc(known, func(file string) bool { return strings.HasSuffix(file, name) }) {
			t.Errorf("%s does not exist", match)
		}
	}
	if found < 50 {
		t.Errorf("found %d names of files", found)
	}
}

// files returns the paths of all files in some folders of the root, each with a leading slash.
func files(t *testing.T, root string, folders ...string) (list []string) {
	t.Helper()
	for _, folder := range folders {
		err := fs.WalkDir(os.DirFS(root), folder, func(path string, d fs.DirEntry, err error) error {
			list = append(list, "/"+path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}
