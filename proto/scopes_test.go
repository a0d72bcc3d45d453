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
