package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const openAPI = `{ "definitions": {
  "io.k8s.api.apps.v1.Thing": { "description": "text", "type": "object", "x-kubernetes-group-version-kind": [{ "group": "apps", "version": "v1", "kind": "Thing" }],
    "properties": { "description": { "type": "string" }, "size": { "$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity" } } },
  "io.k8s.apimachinery.pkg.api.resource.Quantity": { "type": "string" },
  "io.k8s.Unused": { "type": "object" } } }`

const customResource = `spec:
  group: example.com
  names: { kind: Custom }
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: { type: object, properties: { port: { anyOf: [{ type: integer }, { type: string }], x-kubernetes-int-or-string: true }, any: { type: object, x-kubernetes-preserve-unknown-fields: true, properties: {} } } }
`

// TestConvert checks the names of the files, and that the schemas reject unknown fields but not those that Kubernetes preserves.
func TestConvert(t *testing.T) {
	t.Parallel()
	in, out := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"1.99.json": openAPI, "custom.yaml": customResource} {
		if err := os.WriteFile(filepath.Join(in, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := convert(in, out); err != nil {
		t.Fatal(err)
	}
	number := []any{"string", "number"}
	for file, want := range map[string]schema{
		"v1.99.0/thing-apps-v1.json": {"$ref": "#/definitions/io.k8s.api.apps.v1.Thing", "definitions": schema{
			"io.k8s.api.apps.v1.Thing": schema{
				"type": "object", "additionalProperties": false, "x-kubernetes-group-version-kind": []any{schema{"group": "apps", "version": "v1", "kind": "Thing"}},
				"properties": schema{"description": schema{"type": "string"}, "size": schema{"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"}},
			},
			"io.k8s.apimachinery.pkg.api.resource.Quantity": schema{"type": number},
		}},
		"crds/custom-example-v1.json": {"type": "object", "additionalProperties": false, "properties": schema{
			"apiVersion": schema{"type": "string"}, "kind": schema{"type": "string"}, "metadata": schema{"type": "object"},
			"spec": schema{"type": "object", "additionalProperties": false, "properties": schema{
				"port": schema{"type": number, "x-kubernetes-int-or-string": true},
				"any":  schema{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": schema{}},
			}},
		}},
	} {
		text, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			t.Error(err)
			continue
		}
		var got schema
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
	if err := os.WriteFile(filepath.Join(in, "1.99.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := convert(in, out); err == nil || !strings.Contains(err.Error(), "1.99.json") {
		t.Errorf("a broken document: %v", err)
	}
}
