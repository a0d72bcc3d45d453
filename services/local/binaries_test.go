package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/proto"
)

// run runs one of the checkout's executables, which `make build` creates, without settings.
func run(t *testing.T, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "bin", name), args...)
	var out, said bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, &out, &said
	err = cmd.Run()
	return out.String(), said.String(), err
}

// TestExecutablesExplainThemselves checks that each executable prints its help without arguments, prints its build, and prints its
// usage after a wrong call.
func TestExecutablesExplainThemselves(t *testing.T) {
	t.Parallel()
	for _, name := range append([]string{"local", "local-kafka", "local-stripe", "holdfast"}, proto.ServiceNames()...) {
		out, said, err := run(t, name)
		if help := strings.ToLower(out + said); err != nil || !strings.Contains(help, "usage:") || !strings.Contains(help, "version") {
			t.Errorf("%s alone: %v\n%s%s", name, err, out, said)
		}
		out, said, err = run(t, name, "--version")
		if err != nil || !strings.Contains(out, name) || !strings.Contains(out, "commit ") || !strings.Contains(out, "go1.") {
			t.Errorf("%s --version: %v\n%s%s", name, err, out, said)
		}
		_, said, err = run(t, name, "--nonsense")
		if err == nil || !strings.Contains(said, "nonsense") || !strings.Contains(strings.ToLower(said), "usage:") {
			t.Errorf("%s --nonsense: %v\n%s", name, err, said)
		}
	}
}
