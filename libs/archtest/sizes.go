package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The size limits of a file, a test file and a function, and the number of files in a package.
const (
	maxFile     = 600
	maxTestFile = 900
	maxFunc     = 80
	maxFiles    = 15
)

var generated = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.\r?$`)

// folder holds what is counted for one package.
type folder struct {
	files     int
	commented bool
}

// Measure returns a line for each file, function and package below dir that is too long, each package without a comment,
// and each read of the clock in a pure layer. Generated files are exempt, wire.go may be long, and lines of composite
// literals do not count.
func Measure(dir string) ([]string, error) {
	var problems []string
	folders := map[string]*folder{}
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
		found, err := measureFile(dir, path, folders)
		problems = append(problems, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("archtest: %w", err)
	}
	for name, f := range folders {
		if f.files > maxFiles {
			problems = append(problems, fmt.Sprintf("%s: %d files, at most %d", name, f.files, maxFiles))
		}
		if f.files > 0 && !f.commented {
			problems = append(problems, name+": the package has no comment")
		}
	}
	slices.Sort(problems)
	return problems, nil
}

// skip leaves out folders that do not belong to this module.
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

func measureFile(root, path string, folders map[string]*folder) ([]string, error) {
	src, err := os.ReadFile(path) //nolint:gosec // a source file of this module
	if err != nil {
		return nil, err //nolint:wrapcheck // names the file
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the file
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the file
	}
	test := strings.HasSuffix(name, "_test.go")
	in := folders[filepath.Dir(name)]
	if in == nil {
		in = &folder{}
		folders[filepath.Dir(name)] = in
	}
	in.commented = in.commented || file.Doc != nil
	first, _, _ := bytes.Cut(src, []byte("\n"))
	if generated.Match(first) {
		return nil, nil
	}
	if !test {
		in.files++
	}
	limit := maxFile
	if test {
		limit = maxTestFile
	}
	var problems []string
	if filepath.Base(name) != "wire.go" {
		if n := lines(fset, file.FileStart, file.FileEnd) - literals(fset, file); n > limit {
			problems = append(problems, fmt.Sprintf("%s: %d lines, at most %d", name, n, limit))
		}
		problems = append(problems, functions(fset, name, file)...)
	}
	if clocked(name) && !test {
		problems = append(problems, clocks(fset, name, file)...)
	}
	return problems, nil
}

func functions(fset *token.FileSet, name string, file *ast.File) []string {
	var problems []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := lines(fset, f.Pos(), f.End()) - literals(fset, f); n > maxFunc {
			problems = append(problems, fmt.Sprintf("%s: function %s has %d lines, at most %d", name, f.Name.Name, n, maxFunc))
		}
	}
	return problems
}

func lines(fset *token.FileSet, from, to token.Pos) int {
	return fset.Position(to).Line - fset.Position(from).Line + 1
}

// literals counts the lines inside outermost composite literals, which are tables. Functions inside them are code and
// still count.
func literals(fset *token.FileSet, node ast.Node) int {
	n := 0
	ast.Inspect(node, func(x ast.Node) bool {
		lit, ok := x.(*ast.CompositeLit)
		if ok {
			n += lines(fset, lit.Pos(), lit.End()) - 1 - closures(fset, lit)
		}
		return !ok
	})
	return n
}

// closures counts the lines of outermost function literals.
func closures(fset *token.FileSet, node ast.Node) int {
	n := 0
	ast.Inspect(node, func(x ast.Node) bool {
		f, ok := x.(*ast.FuncLit)
		if ok {
			n += lines(fset, f.Pos(), f.End()) - 1
		}
		return !ok
	})
	return n
}

// clocked reports whether the file is in a layer that gets the time as an argument.
func clocked(name string) bool {
	parts := strings.Split(filepath.ToSlash(name), "/")
	return len(parts) > 2 && parts[0] == "internal" && slices.Contains(pureLayers, parts[1])
}

func clocks(fset *token.FileSet, name string, file *ast.File) []string {
	var problems []string
	ast.Inspect(file, func(x ast.Node) bool {
		sel, ok := x.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
			problems = append(problems, fmt.Sprintf("%s:%d: reads the clock; take the time as an argument", name, fset.Position(sel.Pos()).Line))
		}
		return true
	})
	return problems
}
