package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFastTools runs the fast part of the matrix: each tool must accept the SDK view, and its output must compile.
func TestFastTools(t *testing.T) {
	t.Parallel()
	m, err := newMatrix(".", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.run(t.Context(), true, nil); err != nil {
		t.Error(err)
	}
}

// TestJudge checks that a listed failure is known, that another failure fails, and that an exception that is no longer needed fails.
func TestJudge(t *testing.T) {
	t.Parallel()
	m := &matrix{exceptions: []exception{{Tool: "broken", Views: []string{"full"}, Error: "cannot", Bug: "its bug"}}}
	for _, tc := range []struct {
		tool, view string
		err        error
		want       string
	}{
		{"other", "full", nil, "ok"},
		{"other", "full", errors.New("it cannot"), "FAIL"},
		{"broken", "full", errors.New("it cannot"), "known"},
		{"broken", "full", errors.New("it does not"), "FAIL"},
		{"broken", "full", nil, "FAIL"},
		{"broken", "sdk", errors.New("it cannot"), "FAIL"},
	} {
		if got, _ := m.judge(tc.tool, tc.view, tc.err); got != tc.want {
			t.Errorf("%s %s %v: %s, want %s", tc.tool, tc.view, tc.err, got, tc.want)
		}
	}
}

// TestExceptionsNameTools checks that each exception is about a tool of the matrix, and names its bug.
func TestExceptionsNameTools(t *testing.T) {
	t.Parallel()
	exceptions, err := readExceptions("exceptions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exceptions {
		if !slices.ContainsFunc(tools, func(x tool) bool { return x.name == e.Tool }) {
			t.Errorf("%s is not a tool of the matrix", e.Tool)
		}
	}
}

// TestVersionsArePinned checks that the versions that the matrix prints are those that it installs.
func TestVersionsArePinned(t *testing.T) {
	t.Parallel()
	pins, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Dependencies map[string]string }
	if err := json.Unmarshal(pins, &file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), "==")
		file.Dependencies[name] = version
	}
	for _, tool := range tools {
		if want, ok := file.Dependencies[tool.name]; ok && want != tool.version {
			t.Errorf("%s is %s in the list and %s in the file", tool.name, tool.version, want)
		}
	}
	for name, version := range file.Dependencies {
		if version == "" || strings.ContainsAny(version, "^~<>*") {
			t.Errorf("%s is not pinned: %q", name, version)
		}
	}
}
