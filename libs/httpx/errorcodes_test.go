package httpx_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/proto"
)

var kindNames = map[string]apperr.Kind{
	"Internal": apperr.Internal, "BadRequest": apperr.BadRequest, "Unauthenticated": apperr.Unauthenticated, "Forbidden": apperr.Forbidden,
	"NotFound": apperr.NotFound, "MethodNotAllowed": apperr.MethodNotAllowed, "Conflict": apperr.Conflict,
	"PreconditionFailed": apperr.PreconditionFailed, "TooLarge": apperr.TooLarge, "Invalid": apperr.Invalid, "RateLimited": apperr.RateLimited,
	"BadGateway": apperr.BadGateway, "Unavailable": apperr.Unavailable, "Timeout": apperr.Timeout,
}

// relay is the only file that creates errors with a computed code, because they come from another service.
const relay = "libs/peer/response.go"

// declared is an error in the source: its kind and code as literals, or "" if they are computed.
type declared struct{ kind, code string }

// Each code that a service or library declares is in the catalogue with its status, and the catalogue has no other
// codes.
func TestTheCatalogueHasEachCode(t *testing.T) {
	t.Parallel()
	catalogue := map[string]proto.ErrorCode{}
	for _, c := range slices.Concat(proto.ErrorCodes, proto.InternalErrorCodes) {
		if _, twice := catalogue[c.Code]; twice {
			t.Errorf("%s stands in the catalogue twice", c.Code)
		}
		if !strings.HasSuffix(c.Cause, ".") || !strings.HasSuffix(c.Remedy, ".") {
			t.Errorf("%s: cause %q and remedy %q must be sentences", c.Code, c.Cause, c.Remedy)
		}
		catalogue[c.Code] = c
	}
	for _, list := range [][]proto.ErrorCode{proto.ErrorCodes, proto.InternalErrorCodes} {
		if !slices.IsSortedFunc(list, func(a, b proto.ErrorCode) int {
			return cmp.Or(a.Status-b.Status, strings.Compare(a.Code, b.Code))
		}) {
			t.Error("the catalogue is not sorted by status and code")
		}
	}
	used := map[string]bool{}
	for place, errs := range sources(t) {
		for _, e := range errs {
			kind, known := kindNames[e.kind]
			entry, listed := catalogue[e.code]
			switch {
			case e.code == "" && place == relay:
			case !known || e.code == "":
				t.Errorf("%s: kind %q and code %q of an error must be written out", place, e.kind, e.code)
			case !listed:
				t.Errorf("%s: %s (%d) is not in proto.ErrorCodes", place, e.code, httpx.StatusOf(kind))
			case entry.Status != httpx.StatusOf(kind):
				t.Errorf("%s: %s is %d, in the catalogue %d", place, e.code, httpx.StatusOf(kind), entry.Status)
			}
			used[e.code] = true
		}
	}
	for code := range catalogue {
		if !used[code] {
			t.Errorf("%s stands in the catalogue, and nothing returns it", code)
		}
	}
}

// sources returns the errors that each file of the libraries and services declares.
func sources(t *testing.T) map[string][]declared {
	t.Helper()
	const root = "../.."
	found := map[string][]declared{}
	for _, dir := range []string{"libs", "services"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			place, err := filepath.Rel(root, path)
			found[filepath.ToSlash(place)] = errorsOf(file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// errorsOf finds apperr.New(kind, code, …) and apperr.Error{Kind: kind, Code: code}.
func errorsOf(file *ast.File) (out []declared) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if isApperr(file, n.Fun, "New") && len(n.Args) == 3 {
				out = append(out, declared{name(n.Args[0]), text(n.Args[1])})
			}
		case *ast.CompositeLit:
			if isApperr(file, n.Type, "Error") {
				out = append(out, literal(n))
			}
		}
		return true
	})
	if file.Name.Name == "apperr" { // New itself gets both from its caller
		out = slices.DeleteFunc(out, func(e declared) bool { return e == declared{kind: "kind"} })
	}
	return out
}

func literal(n *ast.CompositeLit) (e declared) {
	for _, element := range n.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch name(pair.Key) {
		case "Kind":
			e.kind = name(pair.Value)
		case "Code":
			e.code = text(pair.Value)
		}
	}
	return e
}

// isApperr reports whether an expression is the given name of package apperr.
func isApperr(file *ast.File, e ast.Expr, want string) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return name(s.X) == "apperr" && s.Sel.Name == want
	}
	return file.Name.Name == "apperr" && name(e) == want
}

// name returns the last part of an identifier, "" for any other expression.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}

// text returns the value of a string literal, "" for any other expression.
func text(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok {
		if s, err := strconv.Unquote(lit.Value); err == nil {
			return s
		}
	}
	return ""
}
