package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// answering adds a kubectl to PATH that returns these objects. Without metrics, it finds no metrics API.
func answering(t *testing.T, nodes []string, metrics string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"nodes": `{"items":[` + strings.Join(nodes, ",") + `]}`, "metrics": metrics}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\ncase \"$*\" in\n*' get nodes '*) cat " + dir + "/nodes ;;\n*' get apiservice v1beta1.metrics.k8s.io '*) " +
		"[ -s " + dir + "/metrics ] && cat " + dir + "/metrics || { echo NotFound >&2; exit 1; } ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
}

func node(name, spec, ready string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":%s,"status":{"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":%q}]}}`, name, spec, ready)
}

// TestWhatAClusterLacksForTheTests checks that a missing requirement is reported in one line before a test disturbs the cluster.
func TestWhatAClusterLacksForTheTests(t *testing.T) {
	const (
		served   = `{"status":{"conditions":[{"type":"Available","status":"True"}]}}`
		broken   = `{"status":{"conditions":[{"type":"Available","status":"False"}]}}`
		tainted  = `{"taints":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}]}`
		cordoned = `{"unschedulable":true}`
	)
	control, a, b := node("control", tainted, "True"), node("a", `{}`, "True"), node("b", `{}`, "True")
	for name, tc := range map[string]struct {
		nodes   []string
		metrics string
		lacks   []string
	}{
		"nothing":                  {[]string{control, a, b}, served, nil},
		"a soft taint":             {[]string{a, node("b", `{"taints":[{"effect":"PreferNoSchedule"}]}`, "True")}, served, nil},
		"one node":                 {[]string{a}, served, []string{"two ready nodes", "(there are 1: a)"}},
		"one besides the control":  {[]string{control, a}, served, []string{"two ready nodes", "(there are 1: a)"}},
		"one is cordoned":          {[]string{a, node("b", cordoned, "True")}, served, []string{"two ready nodes"}},
		"one is not ready":         {[]string{a, node("b", `{}`, "Unknown")}, served, []string{"two ready nodes"}},
		"no metrics":               {[]string{a, b}, "", []string{"metrics-server"}},
		"metrics that do not work": {[]string{a, b}, broken, []string{"metrics-server"}},
		"both":                     {[]string{a}, "", []string{"two ready nodes", "metrics-server"}},
	} {
		answering(t, tc.nodes, tc.metrics)
		c, err := Open(t.Context(), t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Testable(t.Context())
		if (err == nil) != (tc.lacks == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range tc.lacks {
			if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q lacks %q", name, err, part)
			}
		}
	}
}
