package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/archtest"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	archtest.Sizes(t)
}

// layers maps each package to the packages of this folder that it may import. Only the command itself imports cobra.
var layers = map[string]string{
	"":                    "cluster parts stack terminal",
	"cluster":             "parts seed stack state supervise terminal",
	"cluster/clustertest": "cluster",
	"e2e":                 "",
	"history":             "",
	"kindtest":            "",
	"parts":               "supervise",
	"prove":               "",
	"seed":                "state",
	"stack":               "parts seed state supervise terminal",
	"state":               "",
	"supervise":           "",
	"terminal":            "supervise",
}

func TestLayers(t *testing.T) {
	t.Parallel()
	const module, internal = "holdfast.dev/services/local", "holdfast.dev/services/local/internal/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, ".", "./internal/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		of := strings.TrimPrefix(strings.TrimPrefix(imports[0], internal), module)
		allowed, known := layers[of]
		if !known {
			t.Errorf("%s has no row in layers", imports[0])
		}
		seen++
		for _, imp := range imports[1:] {
			if other, inside := strings.CutPrefix(imp, internal); inside && !slices.Contains(strings.Fields(allowed), other) {
				t.Errorf("%s may not import %s", imports[0], imp)
			}
			if of != "" && imp == "github.com/spf13/cobra" {
				t.Errorf("%s imports cobra: commands belong in package main", imports[0])
			}
		}
	}
	if seen != len(layers) {
		t.Errorf("%d packages, and %d rows", seen, len(layers))
	}
}
