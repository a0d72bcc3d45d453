package proto_test

import (
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
)

// TestPlatformMetadata checks that metadata has the same bounds in the platform API as in the public API.
func TestPlatformMetadata(t *testing.T) {
	t.Parallel()
	public, platform := namedSchemas(t, proto.OpenAPI), namedSchemas(t, proto.Platform)
	for _, name := range []string{"Metadata", "MetadataRead", "MetadataMap", "MetadataList"} {
		if platform[name] == nil || !reflect.DeepEqual(public[name], platform[name]) {
			t.Errorf("%s: public %v, platform %v", name, public[name], platform[name])
		}
	}
}

func namedSchemas(t *testing.T, document []byte) map[string]any {
	t.Helper()
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	if err := yaml.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas
}
