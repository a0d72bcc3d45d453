package proto_test

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"
)

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
	if len(names) != 13 {
		t.Errorf("%d types, want 13", len(names))
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
