// Command terms fails when an identifier or a file name of Go code contains a word that is not a standard term of the field.
//
// usage: terms LIST FILE...
//
// LIST is a YAML file, such as .ci/prose/terms.yml. A word is a part of a name between capitals or underscores: cancelTold has the
// words cancel and told. Each file is parsed, not compiled; only declarations are checked, because each used name is declared
// somewhere.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Rule forbids words in the names of a part of the repository.
type Rule struct {
	Terms []string `yaml:"words"` // lower case
	Use   string   `yaml:"use"`   // what to write instead
	Only  []string `yaml:"only"`  // patterns of path.Match for the folders that the rule applies to; all if empty
	Allow []string `yaml:"allow"` // names that may contain the words
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: terms LIST FILE...")
		os.Exit(2)
	}
	found, err := Check(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// Check returns a line "file:line: name: ..." for each name in files that a rule of the list forbids.
func Check(list string, files []string) ([]string, error) {
	rules, err := read(list)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		check := func(name string, at token.Pos) {
			for _, r := range rules {
				if word := r.finds(file, name); word != "" {
					found = append(found, fmt.Sprintf("%s:%d: %s: %q is not the field's term; use %s", file, set.Position(at).Line, name, word, r.Use))
				}
			}
		}
		check(strings.TrimSuffix(filepath.Base(file), ".go"), parsed.Package)
		declared(parsed, func(id *ast.Ident) { check(id.Name, id.Pos()) })
	}
	return found, nil
}

func read(list string) ([]Rule, error) {
	file, err := os.Open(list) //nolint:gosec // the list is an argument of the command
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	var rules []Rule
	if err := decoder.Decode(&rules); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	for _, r := range rules {
		for _, folder := range r.Only {
			if _, err := path.Match(folder, ""); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", list, folder, err)
			}
		}
	}
	return rules, nil
}

// finds returns the first word of name that the rule forbids in file, or "" if there is none.
func (r Rule) finds(file, name string) string {
	inside := func(folder string) bool {
		parts, n := strings.Split(file, "/"), strings.Count(folder, "/")+1
		if len(parts) <= n {
			return false
		}
		ok, _ := path.Match(folder, strings.Join(parts[:n], "/")) // read has checked the pattern
		return ok
	}
	if slices.Contains(r.Allow, name) || len(r.Only) > 0 && !slices.ContainsFunc(r.Only, inside) {
		return ""
	}
	for _, word := range split(name) {
		if slices.Contains(r.Terms, word) {
			return word
		}
	}
	return ""
}

// declared calls visit with each identifier that file declares: types, functions, values, fields, parameters and local variables.
func declared(file *ast.File, visit func(*ast.Ident)) {
	expressions := func(list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok {
				visit(id)
			}
		}
	}
	each := func(ids []*ast.Ident) {
		for _, id := range ids {
			visit(id)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			visit(n.Name)
		case *ast.TypeSpec:
			visit(n.Name)
		case *ast.ValueSpec:
			each(n.Names)
		case *ast.Field:
			each(n.Names)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				expressions(n.Lhs...)
			}
		case *ast.RangeStmt:
			expressions(n.Key, n.Value)
		}
		return true
	})
}

// split returns the words of a name in lower case: HTTPServerError_test has http, server, error and test.
func split(name string) []string {
	var parts []string
	start := 0
	runes := []rune(name)
	cut := func(end int) {
		if end > start {
			parts = append(parts, strings.ToLower(string(runes[start:end])))
		}
	}
	for i, r := range runes {
		switch {
		case r == '_' || r == '.':
			cut(i)
			start = i + 1
		case i > start && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			cut(i)
			start = i
		}
	}
	cut(len(runes))
	return parts
}
