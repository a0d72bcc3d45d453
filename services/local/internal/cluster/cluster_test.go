package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// record adds a program to PATH that records its arguments, and returns the file with the arguments.
func record(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	for _, name := range names {
		script := "#!/bin/sh\necho " + name + " \"$@\" >> " + calls + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	t.Setenv("HELM", "")
	return calls
}

// TestOnlyTheNamedClusterIsTouched checks that only the kind cluster is used, even if the current context is another cluster, such
// as production.
func TestOnlyTheNamedClusterIsTouched(t *testing.T) {
	for named, context := range map[string]string{"": "kind-holdfast", "lab": "kind-lab"} {
		calls := record(t, "kubectl", "helm")
		t.Setenv("KIND_CLUSTER", named)
		c, err := Open(t.Context(), t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			c.MakeNamespace(t.Context()), c.PutSecret(t.Context(), "s", nil), c.StartDatastores(t.Context(), "."),
			c.Upgrade(t.Context(), "."), c.Remove(t.Context()),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			name, args, _ := strings.Cut(line, " ")
			if flag := map[string]string{"kubectl": "--context ", "helm": "--kube-context "}[name]; !strings.HasPrefix(args, flag+context+" -n holdfast ") {
				t.Errorf("with KIND_CLUSTER=%q: %s", named, line)
			}
		}
		if n := strings.Count(string(text), "\n"); n < 10 {
			t.Errorf("%d calls", n)
		}
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(t.Context(), t.Logf); err == nil || !strings.Contains(err.Error(), "kubectl not found: install it") {
		t.Error(err)
	}
}
