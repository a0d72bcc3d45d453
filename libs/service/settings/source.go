package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Setting is an environment variable as declared by its field.
type Setting struct {
	Name, Type, Default, Meaning string
	Required                     bool
	Secret                       bool   // it can be given as a file
	Reloaded                     bool   // a running process follows the file
	field                        string // the Go field
}

// Struct is a struct type with settings.
type Struct struct {
	Name     string
	Settings []Setting
	Shared   bool // it contains platform.Config, whose settings are not in Settings
	own      bool // it declares a setting itself, not only through a struct inside it
}

const (
	module         = "holdfast.dev/"
	sharedPackage  = module + "libs/platform"
	sharedSettings = "Config"
)

// source reads packages of the repository, each package once.
type source struct {
	root     string
	packages map[string]map[string]declared // by import path, then by the type's name
	defaults map[string]map[string]string   // by import path: the values that the function defaults sets, by field
}

type declared struct {
	node *ast.StructType
	file *ast.File
}

func newSource(root string) *source {
	return &source{root: root, packages: map[string]map[string]declared{}, defaults: map[string]map[string]string{}}
}

// structs returns the package's struct types with settings, Config first.
func (s *source) structs(pkg string) ([]Struct, error) {
	types, err := s.load(pkg)
	if err != nil {
		return nil, err
	}
	var out []Struct
	for name := range types {
		one, err := s.read(pkg, name)
		if err != nil {
			return nil, err
		}
		if len(one.Settings) > 0 || one.Shared {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b Struct) int {
		if (a.Name == "Config") != (b.Name == "Config") {
			return map[bool]int{true: -1, false: 1}[a.Name == "Config"]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// read returns the settings of a type, with those of the structs inside it.
func (s *source) read(pkg, name string) (Struct, error) {
	types, err := s.load(pkg)
	if err != nil {
		return Struct{}, err
	}
	t, ok := types[name]
	if !ok {
		return Struct{}, fmt.Errorf("%s has no struct %s", pkg, name)
	}
	out := Struct{Name: name}
	for _, f := range t.node.Fields.List {
		setting, ok, err := s.setting(f)
		if err != nil {
			return Struct{}, fmt.Errorf("%s.%s: %w", pkg, name, err)
		}
		if ok {
			out.Settings, out.own = append(out.Settings, setting), true
			continue
		}
		inner, innerName := typeOf(f.Type, pkg, t.file)
		if !strings.HasPrefix(inner, module) {
			continue
		}
		if inner == sharedPackage && innerName == sharedSettings {
			out.Shared = true
			continue
		}
		if types, err := s.load(inner); err != nil || types[innerName].node == nil {
			continue // not a struct
		}
		nested, err := s.read(inner, innerName)
		if err != nil {
			return Struct{}, err
		}
		out.Settings = append(out.Settings, nested.Settings...)
	}
	return out, nil
}

// setting reads a field with an env tag. It returns false for a field without one.
func (s *source) setting(f *ast.Field) (Setting, bool, error) {
	if f.Tag == nil || len(f.Names) != 1 {
		return Setting{}, false, nil
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return Setting{}, false, fmt.Errorf("tag %s: %w", f.Tag.Value, err)
	}
	tag := reflect.StructTag(text)
	name, options, _ := strings.Cut(tag.Get("env"), ",")
	if name == "" {
		return Setting{}, false, nil
	}
	kind := kinds[typeText(f.Type)]
	if kind == "" {
		return Setting{}, false, fmt.Errorf("%s has the type %s: add a name for it to kinds", name, typeText(f.Type))
	}
	meaning := comment(f)
	if meaning == "" {
		return Setting{}, false, fmt.Errorf("%s has no comment, which docs/settings.md shows as its description", name)
	}
	return Setting{
		Name: name, Type: kind, Default: tag.Get("envDefault"), Meaning: meaning, field: f.Names[0].Name,
		Required: slices.Contains(strings.Split(options, ","), "required"), Secret: tag.Get("secret") != "", Reloaded: typeText(f.Type) == "secret.Setting",
	}, true, nil
}

// kinds maps Go types to the names of types on the page.
var kinds = map[string]string{
	"string": "string", "[]string": "comma-separated list", "bool": "boolean", "time.Duration": "duration",
	"int": "number", "int32": "number", "int64": "number", "float64": "number", "peer.Addresses": "URL", "secret.Setting": "string",
}

func typeText(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return typeText(t.X) + "." + t.Sel.Name
	case *ast.ArrayType:
		return "[]" + typeText(t.Elt)
	default:
		return fmt.Sprintf("%T", e)
	}
}

// typeOf returns the import path and the name of a field's type.
func typeOf(e ast.Expr, pkg string, file *ast.File) (in, name string) {
	switch t := e.(type) {
	case *ast.Ident:
		return pkg, t.Name
	case *ast.SelectorExpr:
		for _, i := range file.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); path.Base(p) == typeText(t.X) {
				return p, t.Sel.Name
			}
		}
	}
	return "", ""
}

func comment(f *ast.Field) string {
	for _, group := range []*ast.CommentGroup{f.Comment, f.Doc} {
		if group != nil {
			return strings.Join(strings.Fields(group.Text()), " ")
		}
	}
	return ""
}

// load parses a package of the repository without its tests. The commands of a service belong to it.
func (s *source) load(pkg string) (map[string]declared, error) {
	if types, ok := s.packages[pkg]; ok {
		return types, nil
	}
	dir := filepath.Join(s.root, filepath.FromSlash(strings.TrimPrefix(pkg, module)))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	commands, err := filepath.Glob(filepath.Join(dir, "internal", "command", "*.go"))
	if err != nil {
		return nil, err
	}
	types := map[string]declared{}
	for _, name := range append(files, commands...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.declarations(pkg, file, types)
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("%s has no struct: give the root of the repository", pkg)
	}
	s.packages[pkg] = types
	return types, nil
}

func (s *source) declarations(pkg string, file *ast.File, types map[string]declared) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "defaults" && d.Recv == nil {
				s.defaults[pkg] = values(d.Body)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				t, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if node, ok := t.Type.(*ast.StructType); ok {
					types[t.Name.Name] = declared{node: node, file: file}
				}
			}
		}
	}
}

// values returns the literal values of fields in the composite literals of a function.
func values(body ast.Node) map[string]string {
	out := map[string]string{}
	ast.Inspect(body, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			if value, ok := kv.Value.(*ast.BasicLit); ok {
				out[typeText(kv.Key)] = strings.Trim(value.Value, `"`)
			}
		}
		return true
	})
	return out
}
