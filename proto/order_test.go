package proto_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
)

// first and last are the names at the beginning and the end of the bodies of all resources, if they exist there. The times of a
// resource's states, such as confirmed_at, are before created_at.
var (
	first = []string{"id", "object", "number", "date", "status"}
	last  = []string{"metadata", "mode", "version", "created_at", "updated_at"}
)

// envelopes are the objects whose last property is their content.
var envelopes = []string{"Event"}

// TestResourcesAreReadInOneOrder checks that the properties of all resources are in the same order.
func TestResourcesAreReadInOneOrder(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties yaml.Node `yaml:"properties"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(proto.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	resources := 0
	for name, schema := range doc.Components.Schemas {
		var names []string
		resource := false
		for i := 0; i+1 < len(schema.Properties.Content); i += 2 {
			key := schema.Properties.Content[i].Value
			var property struct{ Const string }
			if err := schema.Properties.Content[i+1].Decode(&property); err != nil {
				t.Fatalf("%s.%s: %v", name, key, err)
			}
			resource = resource || key == "object" && property.Const != ""
			names = append(names, key)
		}
		if !resource || slices.Contains(envelopes, name) {
			continue
		}
		resources++
		if err := misplaced(names); err != nil {
			t.Errorf("%s: %v in %v", name, err, names)
		}
	}
	if resources < 20 {
		t.Errorf("%d resources", resources)
	}
}

// TestMisplacedIsFound moves each property in turn, and checks that it is reported.
func TestMisplacedIsFound(t *testing.T) {
	t.Parallel()
	for names, right := range map[string]bool{
		"id object number status name due_at metadata mode version paid_at created_at updated_at": true,
		"object date status timezone":                                    true,
		"id object name unit_id mode created_at":                         true,
		"object id name":                                                 false,
		"id name object":                                                 false,
		"id object name status":                                          false,
		"id object mode name":                                            false,
		"id object name version mode":                                    false,
		"id object name updated_at created_at":                           false,
		"id object name created_at paid_at":                              false,
		"id object name created_at updated_at customer":                  false,
		"id object name metadata paid_at mode version created_at":        false,
		"id object status number name mode version created_at":           false,
		"id object name mode version confirmed_at created_at updated_at": true,
	} {
		if err := misplaced(strings.Fields(names)); (err == nil) != right {
			t.Errorf("%s: %v", names, err)
		}
	}
}

// misplaced returns an error for a property of a resource that is not in its common position, or nil if there is none.
func misplaced(names []string) error {
	var front, end []string
	for _, name := range first {
		if slices.Contains(names, name) {
			front = append(front, name)
		}
	}
	if got := names[:len(front)]; !slices.Equal(got, front) {
		return fmt.Errorf("it begins with %v, want %v", got, front)
	}
	start := slices.IndexFunc(names, func(name string) bool { return slices.Contains(last, name) })
	if start < 0 {
		return nil
	}
	for _, name := range last {
		if name == "created_at" {
			for _, state := range names[start:] {
				if strings.HasSuffix(state, "_at") && !slices.Contains(last, state) {
					end = append(end, state)
				}
			}
		}
		if slices.Contains(names, name) {
			end = append(end, name)
		}
	}
	if got := names[start:]; !slices.Equal(got, end) {
		return fmt.Errorf("it ends with %v, want %v", got, end)
	}
	return nil
}
