package obs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const repository = "../.."

// documented returns the names in the first columns of the tables of docs/telemetry.md, before and after the heading Traces.
func documented(t *testing.T) (fields, attributes []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "docs/telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	logs, traces, _ := strings.Cut(string(page), "\n## Traces\n")
	_, attributeTable, _ := strings.Cut(traces, "| attribute |")
	names := func(text string) (out []string) {
		for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(text, -1) {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
				out = append(out, name[1])
			}
		}
		slices.Sort(out)
		return out
	}
	return names(logs), names(attributeTable)
}

// emitted contains the names that the code passes to slog and attribute, and the places where they are no literals.
type emitted struct {
	fields, attributes map[string]bool
	dynamic            []string
}

var levels = regexp.MustCompile(`^(Debug|Info|Warn|Error)(Context)?$`)

// call adds the names of one call.
func (e *emitted) call(c *ast.CallExpr, at string) {
	selector, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) == 0 {
		return
	}
	pkg, _ := selector.X.(*ast.Ident)
	name := selector.Sel.Name
	switch {
	case pkg != nil && pkg.Name == "slog" && slices.Contains([]string{"String", "Int", "Int64", "Uint64", "Float64", "Bool", "Duration", "Time", "Any", "Group"}, name):
		e.add(e.fields, c.Args[0], at)
	case pkg != nil && pkg.Name == "obs" && (name == "Since" || name == "Count"):
		e.add(e.fields, c.Args[1], at)
	case pkg != nil && pkg.Name == "attribute" && slices.Contains([]string{"String", "Int", "Int64", "Float64", "Bool", "StringSlice"}, name):
		e.add(e.attributes, c.Args[0], at)
	case levels.MatchString(name) && isLog(selector.X): // names and values in turn
		first := 1
		if strings.HasSuffix(name, "Context") {
			first = 2
		}
		for i := first; i < len(c.Args); i += 2 {
			if _, ok := c.Args[i].(*ast.BasicLit); ok {
				e.add(e.fields, c.Args[i], at)
			}
		}
	}
}

// isLog reports whether an expression is slog, or a logger by its name, such as rt.Log.
func isLog(x ast.Expr) bool {
	if s, ok := x.(*ast.SelectorExpr); ok {
		x = s.Sel
	}
	id, ok := x.(*ast.Ident)
	return ok && slices.Contains([]string{"slog", "log", "logger"}, strings.ToLower(id.Name))
}

func (e *emitted) add(to map[string]bool, name ast.Expr, at string) {
	literal, ok := name.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		e.dynamic = append(e.dynamic, at)
		return
	}
	text, _ := strconv.Unquote(literal.Value)
	to[text] = true
}

// code returns what libs and services emit, without tests and the development stack.
func code(t *testing.T) *emitted {
	t.Helper()
	e := &emitted{fields: map[string]bool{"time": true, "level": true, "msg": true}, attributes: map[string]bool{}}
	for _, folder := range []string{"libs", "services"} {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "local" || d.Name() == "node_modules" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			at, _ := filepath.Rel(repository, path)
			ast.Inspect(file, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					e.call(c, filepath.ToSlash(at))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// TestTelemetryIsDocumented compares the fields and attributes that the code emits with docs/telemetry.md, in both directions.
func TestTelemetryIsDocumented(t *testing.T) {
	t.Parallel()
	fields, attributes := documented(t)
	e := code(t)
	if want := slices.Sorted(maps.Keys(e.fields)); !slices.Equal(fields, want) {
		t.Errorf("docs/telemetry.md lacks the fields %v, and has %v that nothing emits, or twice", without(want, fields), without(fields, want))
	}
	// The tracer of PostgreSQL and the SDK add the others, which TestSpansAreDocumented of libs/pg checks.
	if missing := without(slices.Sorted(maps.Keys(e.attributes)), attributes); missing != nil {
		t.Errorf("docs/telemetry.md lacks the attributes %v", missing)
	}
	// Names that are not literals: the settings inside config, and the sums of a line, whose callers pass literals.
	slices.Sort(e.dynamic)
	if got := slices.Compact(e.dynamic); !slices.Equal(got, []string{"libs/obs/line.go", "libs/service/config.go"}) {
		t.Errorf("names that are not literals in %v", got)
	}
	if len(fields) < 50 || len(attributes) < 10 {
		t.Errorf("%d fields and %d attributes", len(fields), len(attributes))
	}
}

// without returns the elements of a that b lacks, and those that a has once more than b.
func without(a, b []string) (out []string) {
	rest := slices.Clone(b)
	for _, name := range a {
		if i := slices.Index(rest, name); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			out = append(out, name)
		}
	}
	return out
}
