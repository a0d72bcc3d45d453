package archtest

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxFiles is the maximum number of files in a package, without tests and generated files.
const maxFiles = 25

var generated = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.\r?$`)

// Packages returns a line for each package below dir that has too many files, and for each pair of files whose names differ only by
// an s.
func Packages(dir string) ([]string, error) {
	files, names := map[string]int{}, map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(dir, path, d)
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		if names[path] = true; strings.HasSuffix(path, "_test.go") {
			return nil
		}
		counted, err := written(path)
		if counted {
			files[filepath.Dir(path)]++
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("archtest: %w", err)
	}
	problems, err := alike(dir, names)
	if err != nil {
		return nil, err
	}
	for folder, n := range files {
		if n <= maxFiles {
			continue
		}
		name, err := filepath.Rel(dir, folder)
		if err != nil {
			return nil, fmt.Errorf("archtest: %w", err)
		}
		problems = append(problems, fmt.Sprintf("%s: %d files, at most %d", name, n, maxFiles))
	}
	slices.Sort(problems)
	return problems, nil
}

// alike returns a line for each pair of files whose names differ only by an s.
func alike(dir string, files map[string]bool) (problems []string, err error) {
	for path := range files {
		kind := ".go"
		if strings.HasSuffix(path, "_test.go") {
			kind = "_test.go"
		}
		plural := strings.TrimSuffix(path, kind) + "s" + kind
		if !files[plural] {
			continue
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, fmt.Errorf("archtest: %w", err)
		}
		problems = append(problems, fmt.Sprintf("%s: %s differs by an s only", name, filepath.Base(plural)))
	}
	return problems, nil
}

// skip excludes folders without sources of this module.
func skip(root, path string, d fs.DirEntry) error {
	if path == root {
		return nil
	}
	if n := d.Name(); n == "testdata" || n == "node_modules" || n == "vendor" || strings.HasPrefix(n, ".") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// written reports whether the file is not generated.
func written(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	return !generated.MatchString(strings.TrimSuffix(line, "\n")), nil
}
