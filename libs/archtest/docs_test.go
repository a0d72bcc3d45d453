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

// namedFile matches a heading, or the name of a file.
var namedFile = regexp.MustCompile("(?m)^##.*|`([a-z_/.]+/)?[a-z_]+\\.(go|lua|templ|json|yaml|proto)`")

// serviceFolder matches the service of a path.
var serviceFolder = regexp.MustCompile("^/services/[a-z]+/")

// The files in docs/architecture.md exist. Each is a path from the root, or the end of a path in the service that its
// section named last.
func TestArchitectureNamesFiles(t *testing.T) {
	t.Parallel()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	present, _, _ := strings.Cut(string(text), "\n## Decisions") // decisions can name files that no longer exist
	known, found, service := files(t, root, "services", "libs", "proto", "charts"), 0, ""
	for _, match := range namedFile.FindAllString(present, -1) {
		if strings.HasPrefix(match, "##") {
			service = ""
			continue
		}
		name, folder := "/"+strings.Trim(match, "`"), service
		if own := serviceFolder.FindString(name); own != "" {
			service, folder = own, own
		} else if strings.HasPrefix(name, "/libs/") || strings.HasPrefix(name, "/proto/") {
			folder = ""
		}
		if found++; !slices.ContainsFunc(known, func(file string) bool { return strings.HasPrefix(file, folder) && strings.HasSuffix(file, name) }) {
			t.Errorf("%s does not exist in %q", match, folder)
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
