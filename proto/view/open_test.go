package view

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const enums = `openapi: 3.1.0
paths:
  /things:
    post:
      operationId: createThing
      description: Creates a thing.
      x-required-scopes: []
      parameters: [{ $ref: "#/components/parameters/Size" }]
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/ThingCreate" } } } }
      responses:
        "201": { description: The thing., content: { application/json: { schema: { $ref: "#/components/schemas/Thing" } } } }
components:
  parameters:
    Size: { name: size, in: query, schema: { $ref: "#/components/schemas/Size" } }
  schemas:
    Thing: { properties: { size: { $ref: "#/components/schemas/Size" }, mode: { $ref: "#/components/schemas/Mode" }, form: { $ref: "#/components/schemas/Form" } } }
    ThingCreate: { properties: { size: { $ref: "#/components/schemas/Size" }, mode: { $ref: "#/components/schemas/Mode" } } }
    Size: { type: string, enum: [small, big], default: small }
    Mode: { type: string, x-closed: true, enum: [live, test] }
    Form: { type: string, enum: [round] }
`

// TestEnumerationsAreOpenInResponses checks that the values of responses are open, that requests refer to a closed copy.
func TestEnumerationsAreOpenInResponses(t *testing.T) {
	t.Parallel()
	documents, err := New([]byte(enums), "")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := YAML(documents.Contract)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`Thing: {properties: {size: {$ref: "#/components/schemas/Size"}`,
		`ThingCreate: {properties: {size: {$ref: "#/components/schemas/SizeInput"}`,
		`Size: {name: size, in: query, schema: {$ref: "#/components/schemas/SizeInput"}}`,
		"Size: {type: string, x-known-values: [small, big]}", "SizeInput: {type: string, enum: [small, big], default: small}",
		"Mode: {type: string, enum: [live, test]}", "Form: {type: string, x-known-values: [round]}",
	} {
		if got := strings.NewReplacer("{ ", "{", " }", "}").Replace(string(whole)); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// TestAnObjectOfBothDirections checks that an object with an enumeration cannot be in requests and in responses, because it would need
// both forms.
func TestAnObjectOfBothDirections(t *testing.T) {
	t.Parallel()
	both := strings.Replace(enums, "schemas/ThingCreate", "schemas/Thing", 1)
	if _, err := New([]byte(both), ""); err == nil || !strings.Contains(err.Error(), "Thing is in requests and in responses, and so is its enumeration") {
		t.Error(err)
	}
}

// TestTextsOfUnionsAreInline checks that a union contains its text, and that a component that nothing else refers to is removed.
func TestTextsOfUnionsAreInline(t *testing.T) {
	t.Parallel()
	var top yaml.Node
	err := yaml.Unmarshal([]byte(`components:
  schemas:
    Choice: { oneOf: [{ $ref: "#/components/schemas/All" }, { $ref: "#/components/schemas/Some" }] }
    Other: { oneOf: [{ $ref: "#/components/schemas/Kept" }, { $ref: "#/components/schemas/Some" }] }
    All: { type: string, enum: [all] }
    Kept: { type: string, enum: [kept] }
    Some: { type: object, properties: { kept: { $ref: "#/components/schemas/Kept" } } }
`), &top)
	if err != nil {
		t.Fatal(err)
	}
	inlineTexts(top.Content[0])
	text, err := YAML(top.Content[0])
	if err != nil {
		t.Fatal(err)
	}
	for part, count := range map[string]int{"enum: [all]": 1, "enum: [kept]": 2, "schemas/All": 0, "schemas/Kept": 1, "schemas/Some": 2, "    All:": 0} {
		if got := strings.Count(string(text), part); got != count {
			t.Errorf("%q occurs %d times, want %d:\n%s", part, got, count, text)
		}
	}
}
