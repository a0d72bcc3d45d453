package proto_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"
)

var (
	contractTypes = regexp.MustCompile(`(?m)^    EventType: \{ type: string, enum: \[(.*)\] \}$`)
	writeTypes    = regexp.MustCompile(`(?m)^    EventTypeWrite: \{ type: string, enum: \["\*", (.*)\] \}$`)
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
	for _, list := range []*regexp.Regexp{contractTypes, writeTypes} {
		found := list.FindSubmatch(proto.OpenAPI)
		if found == nil || string(found[1]) != strings.Join(names, ", ") {
			t.Errorf("the contract's list is %s", found)
		}
	}
}
