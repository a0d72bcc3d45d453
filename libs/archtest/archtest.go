// Package archtest checks what linters do not: which layers a layer may import, how many files a package may have, and how they are
// named. Each service runs Check in its folder, and other programs run Sizes. .golangci.yml checks the libraries that only one layer
// may import, the clock in pure layers, and the length of files and functions.
package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers maps each layer of a service to the layers that it may import.
var layers = map[string][]string{
	"domain":  {},
	"view":    {"domain"},
	"store":   {"domain"},
	"peers":   {"domain"},
	"app":     {"domain", "view", "store", "peers"},
	"api":     {"domain", "view", "store", "app", "pages"},
	"consume": {"domain", "app"},
	"pages":   {"domain", "view", "app", "peers"},
	"command": {"domain", "view", "store", "peers", "app"},
}

// The layers in core do not depend on HTTP: neither they nor packages below them import httpPackages.
var (
	core         = []string{"app", "domain"}
	httpPackages = []string{"net/http", "github.com/gin-gonic/gin", "holdfast.dev/libs/httpx", "holdfast.dev/libs/idem", "holdfast.dev/libs/web"}
)

// HTTPInVerbs names the rule that forbids HTTP in use cases. A service passes it to Check when its use cases still return
// an HTTP response, or when it is a proxy.
const HTTPInVerbs = "a verb knows nothing of HTTP"

const services = "holdfast.dev/services/"

// Check fails on each package with too many files and on each forbidden import in the folder of the test, except imports that only the
// rules in except forbid.
func Check(t *testing.T, except ...string) {
	t.Helper()
	report(t, except, Imports, Packages)
}

// Sizes is Check for a folder without layers: it checks sizes only.
func Sizes(t *testing.T) {
	t.Helper()
	report(t, nil, Packages)
}

func report(t *testing.T, except []string, checks ...func(dir string) ([]string, error)) {
	t.Helper()
	for _, check := range checks {
		problems, err := check(".")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if !slices.ContainsFunc(except, func(rule string) bool { return strings.HasSuffix(p, rule) }) {
				t.Error(p)
			}
		}
	}
}

type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string

	of string // import path of the service, or of the folder that is checked
}

// Imports returns a line for each forbidden import in the folder dir.
func Imports(dir string) ([]string, error) {
	pkgs, err := list(dir)
	if err != nil {
		return nil, err
	}
	root, err := goList(dir, "-e", "-f={{.ImportPath}}", ".") // -e: it may contain no package itself
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, p := range pkgs {
		p.of = strings.TrimSpace(string(root))
		layer, known := layerOf(p)
		if !known {
			problems = append(problems, fmt.Sprintf("%s: there is no layer %q", p.ImportPath, layer))
			continue
		}
		for _, imp := range p.Imports {
			if why := forbidden(p, layer, imp); why != "" {
				problems = append(problems, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imp, why))
			}
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			if foreign(p, imp) {
				problems = append(problems, fmt.Sprintf("%s imports %s in a test: no service imports another", p.ImportPath, imp))
			}
		}
	}
	return problems, nil
}

func goList(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", dir, err, stderr.String())
	}
	return out, nil
}

func list(dir string) ([]listed, error) {
	out, err := goList(dir, "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	if err != nil {
		return nil, err
	}
	var pkgs []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		pkgs = append(pkgs, p)
	}
}

// layerOf returns the layer of a package, or "" for the service's root and for packages outside internal.
func layerOf(p listed) (layer string, known bool) {
	rest, inside := strings.CutPrefix(p.ImportPath, p.of+"/internal/")
	if !inside {
		return "", true
	}
	layer, _, _ = strings.Cut(rest, "/")
	_, known = layers[layer]
	return layer, known
}

func foreign(p listed, imp string) bool {
	return strings.HasPrefix(imp, services) && !within(imp, p.of)
}

// forbidden returns the reason why the import is forbidden, or "" if it is allowed.
func forbidden(p listed, layer, imp string) string {
	if foreign(p, imp) {
		return "no service imports another, and libs imports none"
	}
	if layer == "" {
		return ""
	}
	if other, ok := layerOf(listed{ImportPath: imp, of: p.of}); ok && other != "" && other != layer &&
		!slices.Contains(layers[layer], other) {
		return fmt.Sprintf("%s may not import %s", layer, other)
	}
	if slices.Contains(core, layer) && slices.ContainsFunc(httpPackages, func(pkg string) bool { return within(imp, pkg) }) {
		return HTTPInVerbs
	}
	return ""
}

// within reports whether imp is pkg or a package below it.
func within(imp, pkg string) bool {
	return imp == pkg || strings.HasPrefix(imp, pkg+"/")
}
