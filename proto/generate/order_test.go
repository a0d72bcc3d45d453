package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/yamlnode"
)

// TestBodiesFollowTheContract compares the fields of the generated structs with the properties of their schemas, because bodies are
// written in the order of the fields.
func TestBodiesFollowTheContract(t *testing.T) {
	t.Parallel()
	contracts := map[string]string{"../api/api.gen.go": "../api/openapi.yaml"}
	for _, name := range []string{"bookings", "customers", "identity", "payments", "webhooks"} {
		contracts["../internalapi/"+name+".gen.go"] = "../internal/" + name + ".yaml"
	}
	compared := 0
	for source, contract := range contracts {
		structs := fieldsOf(t, source)
		document, err := os.ReadFile(filepath.Clean(contract))
		if err != nil {
			t.Fatal(err)
		}
		var top yaml.Node
		if err := yaml.Unmarshal(document, &top); err != nil {
			t.Fatal(err)
		}
		schemas := yamlnode.Get(top.Content[0], "components", "schemas")
		for name, schema := range yamlnode.Pairs(schemas) {
			if goName := named(schema, "x-go-name", name); structs[goName] != nil {
				compared++
				if want := properties(schemas, schema); !slices.Equal(structs[goName], want) {
					t.Errorf("%s: %s has the fields %v, want %v: run make gen", source, goName, structs[goName], want)
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d structs were compared, want all", compared)
	}
}

// TestOrderIsThatOfTheDocument checks that an allOf has the properties of its parts one after the other, regardless of the
// position of the parts in the document.
func TestOrderIsThatOfTheDocument(t *testing.T) {
	t.Parallel()
	const document = `
components:
  schemas:
    Whole:
      allOf:
        - $ref: "#/components/schemas/Part"
        - properties:
            beta: { $ref: "#/components/schemas/Text", description: A text. }
            alpha: { type: object, properties: { second: {}, first: {} } }
    Text: { type: string }
    Part: { properties: { zeta: {}, eta: {} } }
`
	ordered, err := order([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	if err := yaml.Unmarshal(ordered, &doc); err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	want := map[string]any{
		"Whole": object{"allOf": []any{
			object{"$ref": "#/components/schemas/Part"},
			object{"properties": object{
				"beta": object{"$ref": "#/components/schemas/Text", "description": "A text.", "x-order": 3},
				"alpha": object{"type": "object", "x-order": 4, "properties": object{
					"second": object{"x-order": 5}, "first": object{"x-order": 6},
				}},
			}},
		}},
		"Text": object{"type": "string"},
		"Part": object{"properties": object{"zeta": object{"x-order": 1}, "eta": object{"x-order": 2}}},
	}
	if !reflect.DeepEqual(doc.Components.Schemas, want) {
		t.Errorf("%v, want %v", doc.Components.Schemas, want)
	}
	if strings.Contains(string(proto.OpenAPI), "x-order") {
		t.Error("the published contract has x-order")
	}
}

// named returns the scalar under key, or other if there is none.
func named(n *yaml.Node, key, other string) string {
	if value := yamlnode.Text(n, key); value != "" {
		return value
	}
	return other
}

// properties returns the names of a schema's properties in their order, including those of its allOf.
func properties(schemas, schema *yaml.Node) []string {
	if name := yamlnode.Referred(schema); name != "" {
		schema = yamlnode.Get(schemas, name)
	}
	var names []string
	for key, value := range yamlnode.Pairs(schema) {
		switch key {
		case "properties":
			for name := range yamlnode.Pairs(value) {
				names = append(names, name)
			}
		case "allOf":
			for _, part := range value.Content {
				names = append(names, properties(schemas, part)...)
			}
		}
	}
	return names
}

// fieldsOf returns the JSON names of the fields of each struct of a file, by the name of its type.
func fieldsOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	structs := map[string][]string{}
	for node := range ast.Preorder(file) {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if body, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range body.Fields.List {
				if field.Tag != nil {
					name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
					structs[spec.Name.Name] = append(structs[spec.Name.Name], name)
				}
			}
		}
	}
	return structs
}
