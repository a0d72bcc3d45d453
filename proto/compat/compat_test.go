// Package compat checks that the contract does not break clients of the last release.
package compat

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
	"holdfast.dev/proto/yamlnode"
)

// published is the commit of the last release. Name the new commit when you tag a release.
const published = "7447cdd85ba1"

// intended are the changes since the last release that break clients on purpose, each as a text of its contract, without texts and
// examples, and the replacement. The changelog lists them under "Changed". Remove them when you name a new commit.
var intended = []struct{ before, after string }{
	// A customer can have a phone number instead of an email address.
	{"        email: {type: string, x-personal: true}\n", "        email: {type: [string, \"null\"], x-personal: true}\n"},
	// A sum of decimal rates, such as 8.875%, is no whole number of basis points.
	{"        tax_rate_bps: {type: integer, format: int64, x-personal: false}", `        tax_rate_bps: {type: [integer, "null"], format: int64, x-personal: false}`},
}

// served returns the served contract of a source without texts and examples, which cannot break a client.
func served(t *testing.T, source []byte) []byte {
	t.Helper()
	documents, err := view.New(source, "https://booking.test")
	if err != nil {
		t.Fatal(err)
	}
	withoutTexts(documents.Contract)
	text, err := view.YAML(documents.Contract)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// withoutTexts removes descriptions and examples, except properties with these names.
func withoutTexts(n *yaml.Node) {
	for _, key := range []string{"summary", "description", "example", "x-codeSamples", "x-enumDescriptions", "x-message"} {
		if value := yamlnode.Get(n, key); value != nil && (value.Kind == yaml.ScalarNode || key == "example" || strings.HasPrefix(key, "x-")) {
			yamlnode.Remove(n, key)
		}
	}
	for _, child := range n.Content {
		withoutTexts(child)
	}
}

// breaking returns what oasdiff reports about a change from one contract to another, or "" if no client breaks.
func breaking(t *testing.T, from, to []byte) string {
	t.Helper()
	tool := os.Getenv("OASDIFF")
	switch inside := os.Getenv("TEST_POSTGRES_URL") != ""; {
	case tool == "" && !inside:
		t.Skip("OASDIFF is not set: run `make test`, which builds the tools")
	case tool == "":
		t.Fatal("OASDIFF is not set: run `make test`, which builds the tools")
	}
	folder := t.TempDir()
	base, revision := filepath.Join(folder, "base.yaml"), filepath.Join(folder, "revision.yaml")
	if err := errors.Join(os.WriteFile(base, from, 0o600), os.WriteFile(revision, to, 0o600)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), tool, "breaking", base, revision, "--fail-on", "ERR", "--color", "never")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failed) && failed.ExitCode() == 1:
		return out.String()
	default:
		t.Fatalf("oasdiff: %v\n%s", err, out.String())
		return ""
	}
}

// TestNothingBreaks compares the contract with that of the last release.
func TestNothingBreaks(t *testing.T) {
	t.Parallel()
	source, err := exec.CommandContext(t.Context(), "git", "show", published+":./../api/openapi.yaml").Output()
	if err != nil {
		if shallow, _ := exec.CommandContext(t.Context(), "git", "rev-parse", "--is-shallow-repository").Output(); string(shallow) == "true\n" {
			t.Skip("the checkout has no history: run `git fetch --unshallow`")
		}
		t.Fatalf("read the contract of the commit %s from git: %v", published, err)
	}
	before, text := served(t, source), served(t, proto.OpenAPI)
	for _, change := range intended {
		if !bytes.Contains(before, []byte(change.before)) {
			t.Errorf("the contract of %s does not contain this text: %s", published, change.before)
		}
		before = bytes.ReplaceAll(before, []byte(change.before), []byte(change.after))
	}
	if found := breaking(t, before, text); found != "" {
		t.Errorf("the contract breaks clients of the last release:\n%s", found)
	}
}

// TestBreakingChangesAreFound makes one change at a time, and checks that those that break clients are found.
func TestBreakingChangesAreFound(t *testing.T) {
	t.Parallel()
	text := string(served(t, proto.OpenAPI))
	for name, tc := range map[string]struct {
		old, changed string
		breaks       bool
	}{
		"an operation is removed":           {"  /me:\n", "  /self:\n", true},
		"a property of a request is needed": {"    CustomerCreate:\n      type: object\n      required: [first_name]", "    CustomerCreate:\n      type: object\n      required: [first_name, phone]", true},
		"a bound is tighter":                {"maxLength: 5000", "maxLength: 4000", true},
		"a property is optional":            {"required: [url, event_types]", "required: [url]", false},
		"an error code is new":              {"x-error-codes: [", "x-error-codes: [another_code, ", false},
		"a known value is new":              {"x-known-values: [", "x-known-values: [another_value, ", false},
	} {
		changed := strings.Replace(text, tc.old, tc.changed, 1)
		if changed == text {
			t.Errorf("%s: the contract has no %q", name, tc.old)
			continue
		}
		if found := breaking(t, []byte(text), []byte(changed)); (found != "") != tc.breaks {
			t.Errorf("%s: found %q", name, found)
		}
	}
}
