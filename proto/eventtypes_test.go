package proto_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// publicTypes returns the types of type.proto whose comments do not mark them as internal, in alphabetical order.
func publicTypes(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("events/v1/type.proto")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^  // ([a-z_]+\.[a-z_]+): `).FindAllSubmatch(source, -1) {
		names = append(names, string(found[1]))
	}
	slices.Sort(names)
	return names
}

func TestEventTypesAreTheContractsAndTheMessages(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range proto.EventTypes {
		names = append(names, e.Name)
		if !slices.Contains(proto.Scopes, e.Scope) || e.Description == "" {
			t.Errorf("%s: scope %q, description %q", e.Name, e.Scope, e.Description)
		}
		if constant := "TYPE_" + strings.ToUpper(strings.ReplaceAll(e.Name, ".", "_")); eventsv1.Type_value[constant] == 0 {
			t.Errorf("type.proto has no %s", constant)
		}
	}
	if public := publicTypes(t); !slices.Equal(slices.Sorted(slices.Values(names)), public) {
		t.Errorf("the contract has %v, type.proto without (internal) %v", names, public)
	}
	var contract struct {
		Components struct {
			Schemas map[string]struct {
				Enum []string `yaml:"enum"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(proto.OpenAPI, &contract); err != nil {
		t.Fatal(err)
	}
	read, write := contract.Components.Schemas["EventType"].Enum, contract.Components.Schemas["EventTypeWrite"].Enum
	if !slices.Equal(read, names) || !slices.Equal(write, append([]string{"*"}, names...)) {
		t.Errorf("the contract's lists are %v and %v", read, write)
	}
}
