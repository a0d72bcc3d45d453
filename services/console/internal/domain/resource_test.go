package domain

import (
	"slices"
	"testing"

	"holdfast.dev/proto"
)

// TestFieldsOfTheContractAppear checks that a field of the contract that the table does not name is on the page and in both
// forms.
func TestFieldsOfTheContractAppear(t *testing.T) {
	t.Parallel()
	body := []string{"name", "description", "service_ids", "status", "capacity", "opening_hours"}
	contract := map[string]proto.Fields{
		"get": {Response: slices.Concat([]string{"id", "object"}, body, []string{"mode", "version", "created_at", "updated_at"})}, "create": {Body: body}, "update": {Body: body},
	}
	r := completed([]Resource{{
		Get: "get", Create: "create", Update: "update", Except: []string{"status", "opening_hours"},
		Sections: []Section{{"unit", []string{"capacity", "name"}}, {"services", []string{"service_ids"}}, times},
		New:      []string{"service_ids"}, Edit: []string{"status", "name"},
	}}, contract)[0]
	for what, fields := range map[string][2][]string{
		"page":     {r.Sections[0].Fields, {"capacity", "name", "description"}},
		"new":      {r.New, {"service_ids", "name", "description", "capacity"}},
		"edit":     {r.Edit, {"status", "name", "description", "service_ids", "capacity"}},
		"services": {r.Sections[1].Fields, {"service_ids"}},
	} {
		if got, want := fields[0], fields[1]; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if r = completed([]Resource{{Get: "get", Create: "create"}}, contract)[0]; r.New != nil || r.Edit != nil || r.Sections != nil {
		t.Errorf("without forms: %+v", r)
	}
}

// TestExceptionsAreFieldsOfTheContract checks that each exception is a field of the contract. A misspelled exception would not
// hide the field.
func TestExceptionsAreFieldsOfTheContract(t *testing.T) {
	t.Parallel()
	for _, r := range Resources {
		known := slices.Concat(proto.OperationFields[r.Get].Response, proto.OperationFields[r.Create].Body, proto.OperationFields[r.Update].Body)
		for _, name := range r.Except {
			if !slices.Contains(known, name) {
				t.Errorf("%s: the contract has no %s", r.Name, name)
			}
		}
	}
}
