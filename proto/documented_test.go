package proto_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
)

// TestDocumented fails for each part of the contract without a description or an example. make lint also runs it.
func TestDocumented(t *testing.T) {
	t.Parallel()
	var doc object
	if err := yaml.Unmarshal(proto.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	for _, missing := range undocumented(doc) {
		t.Error(missing)
	}
}

// TestUndocumentedIsFound removes each description and example in turn from a small contract, and checks that it is reported.
func TestUndocumentedIsFound(t *testing.T) {
	t.Parallel()
	const whole = `
paths:
  /things:
    post:
      summary: Create a thing
      description: Creates a thing.
      x-codeSamples: [{ lang: Shell, source: curl }]
      requestBody: { content: { application/json: { schema: {}, example: {} } } }
      responses:
        "201": { content: { application/json: { schema: {}, example: {} } } }
        "400": { content: { application/json: { schema: {} } } }
components:
  parameters:
    Kind: { description: Kind of the things., schema: { enum: [big], x-enumDescriptions: { big: Large. } } }
  schemas:
    Thing:
      description: A thing.
      properties:
        parts:
          description: Its parts.
          items: { properties: { size: { description: In metres. } } }
`
	for _, tc := range []struct{ without, want string }{
		{"", ""},
		{"      summary: Create a thing\n", "POST /things has no summary"},
		{"      description: Creates a thing.\n", "POST /things has no description"},
		{"      x-codeSamples: [{ lang: Shell, source: curl }]\n", "POST /things has no x-codeSamples"},
		{"schema: {}, example: {} } } }\n      responses", "POST /things requestBody application/json has no example"},
		{", x-enumDescriptions: { big: Large. }", "components.parameters.Kind: the value big has no description"},
		{"description: Kind of the things., ", "components.parameters.Kind has no description"},
		{"      description: A thing.\n", "components.schemas.Thing has no description"},
		{"          description: Its parts.\n", "components.schemas.Thing.parts has no description"},
		{"description: In metres.", "components.schemas.Thing.parts.size has no description"},
	} {
		text := strings.Replace(whole, tc.without, "", 1)
		if strings.HasPrefix(tc.without, "schema") {
			text = strings.Replace(whole, ", example: {}", "", 1)
		}
		var doc object
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got := strings.Join(undocumented(doc), "\n"); got != tc.want {
			t.Errorf("without %q: %q, want %q", tc.without, got, tc.want)
		}
	}
}

type object = map[string]any

// undocumented lists the parts without a description or an example.
func undocumented(doc object) []string {
	var out []string
	need := func(where string, o object, keys ...string) {
		for _, key := range keys {
			if value := o[key]; value == nil || value == "" {
				out = append(out, where+" has no "+key)
			}
		}
	}
	for path, item := range children(doc, "paths") {
		for method, op := range item {
			op, where := op.(object), strings.ToUpper(method)+" "+path
			need(where, op, "summary", "description", "x-codeSamples")
			body, _ := op["requestBody"].(object)
			for name, media := range children(body, "content") {
				need(where+" requestBody "+name, media, "example")
			}
			for status, response := range children(op, "responses") {
				for name, media := range children(response, "content") {
					if strings.HasPrefix(status, "2") {
						need(where+" "+status+" "+name, media, "example")
					}
				}
			}
		}
	}
	components, _ := doc["components"].(object)
	for _, kind := range []string{"parameters", "headers", "responses"} {
		for name, c := range children(components, kind) {
			where := "components." + kind + "." + name
			need(where, c, "description")
			out = append(out, wordless(where, c["schema"])...)
		}
	}
	for name, schema := range children(components, "schemas") {
		need("components.schemas."+name, schema, "description")
		out = append(out, wordless("components.schemas."+name, schema)...)
	}
	slices.Sort(out)
	return out
}

// wordless lists the properties and values of a schema that have no description.
func wordless(where string, schema any) []string {
	o, ok := schema.(object)
	if !ok {
		return nil
	}
	var out []string
	for name, property := range children(o, "properties") {
		if property["description"] == nil {
			out = append(out, where+"."+name+" has no description")
		}
		out = append(out, wordless(where+"."+name, property)...)
	}
	values, _ := o["enum"].([]any)
	meanings, _ := o["x-enumDescriptions"].(object)
	for _, value := range values {
		if text := fmt.Sprint(value); value != nil && text != "true" && meanings[text] == nil {
			out = append(out, where+": the value "+text+" has no description")
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		out = append(out, wordless(where, o[key])...)
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		alternatives, _ := o[key].([]any)
		for _, alternative := range alternatives {
			out = append(out, wordless(where, alternative)...)
		}
	}
	return out
}

// children returns the mappings under a key.
func children(o object, key string) map[string]object {
	out := map[string]object{}
	under, _ := o[key].(object)
	for name, value := range under {
		if child, ok := value.(object); ok {
			out[name] = child
		}
	}
	return out
}
