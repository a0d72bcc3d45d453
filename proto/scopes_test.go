package proto_test

import (
	"regexp"
	"slices"
	"testing"

	"holdfast.dev/proto"
)

var (
	requiredScopes = regexp.MustCompile(`(?m)^ +x-required-scopes:(.*)$`)
	inlineList     = regexp.MustCompile(`^ \[(?:"[a-z]+:[a-z]+"(?:, )?)*\]$`)
	quoted         = regexp.MustCompile(`"([^"]*)"`)
)

func TestRequiredScopesAreInTheCatalogue(t *testing.T) {
	t.Parallel()
	found := 0
	for _, line := range requiredScopes.FindAllSubmatch(proto.OpenAPI, -1) {
		if !inlineList.Match(line[1]) {
			t.Errorf("x-required-scopes:%s: want an inline list of quoted scope ids", line[1])
		}
		for _, scope := range quoted.FindAllSubmatch(line[1], -1) {
			found++
			if !slices.Contains(proto.Scopes, string(scope[1])) {
				t.Errorf("x-required-scopes names %q, which is not in the catalogue", scope[1])
			}
		}
	}
	if found == 0 {
		t.Error("the contract requires no scope anywhere")
	}
}

func TestCatalogueHas18Scopes(t *testing.T) {
	t.Parallel()
	unique := slices.Compact(slices.Sorted(slices.Values(proto.Scopes)))
	if len(proto.Scopes) != 18 || len(unique) != 18 {
		t.Errorf("catalogue has %d scopes, %d different; want 18", len(proto.Scopes), len(unique))
	}
}

var operation = regexp.MustCompile(`(?ms)^    (post|put|patch|delete):\n      operationId: (\w+)\n.*?^      x-required-scopes: \[(.*?)\]`)

// TestWritesNeedAWriteScope checks that a read-only credential cannot change anything: each write operation requires a write scope.
func TestWritesNeedAWriteScope(t *testing.T) {
	t.Parallel()
	writes := operation.FindAllStringSubmatch(string(proto.OpenAPI), -1)
	if len(writes) < 40 {
		t.Fatalf("%d operations that write", len(writes))
	}
	for _, o := range writes {
		if !regexp.MustCompile(`"(write:\w+|payments:write)"`).MatchString(o[3]) {
			t.Errorf("%s %s needs only %s", o[1], o[2], o[3])
		}
	}
}
