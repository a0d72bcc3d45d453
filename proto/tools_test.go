package proto_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
)

// TestToolsCanReadTheContract fails for each form of a schema that generators of code are known to reject or to misread. Each form
// broke at least one of the tools of make contract-matrix.
func TestToolsCanReadTheContract(t *testing.T) {
	t.Parallel()
	for name, doc := range served(t) {
		for _, problem := range unreadable(doc) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// TestUnreadableIsFound checks that each rejected form is reported.
func TestUnreadableIsFound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ schema, want string }{
		{"{ type: object, properties: { a: { type: string } } }", ""},
		{"{ anyOf: [{ required: [a] }] }", "components.schemas.Thing.anyOf has a branch that is only required\ncomponents.schemas.Thing.anyOf has a branch without a name"},
		{"{ properties: { a: { type: 'null' } } }", "components.schemas.Thing.properties.a can only be null"},
		{"{ type: boolean, const: false }", "components.schemas.Thing is the constant false, not a string"},
		{"{ type: string }, Other: { oneOf: [{ $ref: '#/components/schemas/Thing' }, { type: 'null' }] }", ""},
		{"{ content: { application/pdf: { schema: { type: string } } } }", "components.schemas.Thing.content.application/pdf has no format: binary"},
		{"{ content: { application/pdf: { schema: { type: string, format: binary } } } }", ""},
		{"{ type: object }, Other: { oneOf: [{ $ref: '#/components/schemas/Thing' }, { $ref: '#/components/schemas/Thing' }] }", "components.schemas.Other.oneOf has two branches of the type object"},
		{"{ oneOf: [{ type: object }, { type: array }] }", "components.schemas.Thing.oneOf has a branch without a name"},
		{"{ properties: { a: { properties: { b: { type: string } } } } }", "components.schemas.Thing.properties.a is an object without a name"},
		{"{ oneOf: [{ type: string, enum: [a] }, { $ref: '#/components/schemas/Other' }] }, Other: { type: object }", ""},
		{"{ oneOf: [{ type: string, enum: [a, b] }, { type: 'null' }] }", "components.schemas.Thing.oneOf has a branch without a name\ncomponents.schemas.Thing.oneOf.0 is an enumeration without a name"},
		{"{ items: { enum: [a] } }", "components.schemas.Thing.items is an enumeration without a name"},
		{"{ items: { x-known-values: [a] } }", "components.schemas.Thing.items is an enumeration without a name"},
		{"{ type: [string, 'null'], enum: [a, null] }", "components.schemas.Thing is an enumeration with null"},
		{"{ type: string, format: one-line }", "components.schemas.Thing has the private format one-line"},
		{"{ in: query, schema: { type: string } }", "components.schemas.Thing is a parameter without an example"},
		{"{ in: query, example: a, schema: { type: string } }", ""},
		{"{ type: string }, Error: { type: object }", "components.schemas.Error has the name of a built-in type"},
	} {
		doc := document(t, []byte("components: { schemas: { Thing: "+tc.schema+" } }"))
		if got := strings.Join(unreadable(doc), "\n"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.schema, got, tc.want)
		}
	}
}

// address is the URL of a platform.
const address = "https://booking.test"

// served returns the documents that the gateway serves, by name.
func served(t *testing.T) map[string]object {
	t.Helper()
	documents, err := view.New(proto.OpenAPI, address)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]object{}
	for name, node := range map[string]*yaml.Node{"contract": documents.Contract, "SDK": documents.SDK, "webhooks": documents.Webhooks} {
		text, err := view.YAML(node)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = document(t, text)
	}
	return all
}

func document(t *testing.T, text []byte) object {
	t.Helper()
	var doc object
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// unreadable lists the schemas of a document that tools cannot read.
func unreadable(doc object) []string {
	var out []string
	for where, schema := range schemas(doc) {
		for _, rule := range rules {
			if problem := rule(reader{doc, where}, schema); problem != "" {
				out = append(out, where+problem)
			}
		}
	}
	slices.Sort(out)
	return out
}

// reader is the position of a schema in a document.
type reader struct {
	doc   object
	where string
}

// follow returns the schema that a reference names, or the schema itself.
func (r reader) follow(schema any) object {
	o, _ := schema.(object)
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	var at any = r.doc
	for key := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		parent, _ := at.(object)
		at = parent[key]
	}
	return r.follow(at)
}

// rules return what is wrong with a schema, or "".
var rules = []func(r reader, schema object) string{
	onlyRequired, onlyNull, otherConstant, textOfPDF, sameType, unnamed, unnamedBranch, nullableEnum, privateFormat, withoutExample, likeBuiltIn,
}

// onlyRequired rejects alternatives that only name required properties: five generators make no class or a private union of them.
func onlyRequired(_ reader, schema object) string {
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		branches, _ := schema[key].([]any)
		for _, branch := range branches {
			if branch, ok := branch.(object); ok && branch["required"] != nil && len(branch) == 1 {
				return "." + key + " has a branch that is only required"
			}
		}
	}
	return ""
}

// inAlternatives matches the path of a branch of a oneOf.
var inAlternatives = regexp.MustCompile(`\.(oneOf|anyOf)\.\d+$`)

// onlyNull rejects a value that is always null. Generators in Go, TypeScript, Rust and Python have no such type. As a branch of a
// oneOf, null makes the value nullable.
func onlyNull(r reader, schema object) string {
	if schema["type"] == "null" && !inAlternatives.MatchString(r.where) {
		return " can only be null"
	}
	return ""
}

// otherConstant rejects constants that are not strings, because generators only know constant strings.
func otherConstant(_ reader, schema object) string {
	if value, ok := schema["const"]; ok && schema["type"] != "string" {
		return fmt.Sprintf(" is the constant %v, not a string", value)
	}
	return ""
}

// textOfPDF rejects a document whose schema is text. Clients would decode its bytes as UTF-8.
func textOfPDF(r reader, media object) string {
	schema, _ := media["schema"].(object)
	if strings.HasSuffix(r.where, "application/pdf") && schema["format"] != "binary" {
		return " has no format: binary"
	}
	return ""
}

// sameType rejects a oneOf with two branches of the same type and no discriminator: which of them a value has is not visible.
func sameType(r reader, schema object) string {
	branches, _ := schema["oneOf"].([]any)
	types := map[any]bool{}
	for _, branch := range branches {
		kind, _ := r.follow(branch)["type"].(string)
		if types[kind] && schema["discriminator"] == nil {
			return ".oneOf has two branches of the type " + kind
		}
		types[kind] = true
	}
	return ""
}

// component matches the path of a component, whose name generators use for its type.
var component = regexp.MustCompile(`^components\.schemas\.\w+$`)

// unnamed rejects objects and enumerations inside other schemas: each generator invents a different name for them.
func unnamed(r reader, schema object) string {
	if component.MatchString(r.where) {
		return ""
	}
	if _, ok := schema["properties"].(object); ok {
		return " is an object without a name"
	}
	if (schema["enum"] != nil || schema["x-known-values"] != nil) && !literal(schema) {
		return " is an enumeration without a name"
	}
	return ""
}

// literal reports whether a schema is one text. It needs no name: generators use the text itself, and typescript-fetch cannot convert a
// union that refers to a component with a text.
func literal(schema object) bool {
	values, _ := schema["enum"].([]any)
	return schema["type"] == "string" && len(values) == 1
}

// unnamedBranch rejects alternatives that are not components, one text or null, for the same reason.
func unnamedBranch(_ reader, schema object) string {
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		branches, _ := schema[key].([]any)
		for _, branch := range branches {
			if branch, ok := branch.(object); ok && branch["$ref"] == nil && branch["type"] != "null" && !literal(branch) {
				return "." + key + " has a branch without a name"
			}
		}
	}
	return ""
}

// nullableEnum rejects null as a value of an enumeration. Write oneOf with the enumeration and null.
func nullableEnum(_ reader, schema object) string {
	values, _ := schema["enum"].([]any)
	if types, ok := schema["type"].([]any); len(values) > 0 && (ok && slices.Contains(types, "null") || slices.Contains(values, nil)) {
		return " is an enumeration with null"
	}
	return ""
}

// formats are those of the format registry of OpenAPI that the contract uses.
var formats = []any{nil, "date", "date-time", "int64", "email", "uri", "binary"}

// privateFormat rejects formats that only the platform knows. They are called x-format.
func privateFormat(_ reader, schema object) string {
	if _, isProperty := schema["format"].(object); !isProperty && !slices.Contains(formats, schema["format"]) {
		return fmt.Sprintf(" has the private format %v", schema["format"])
	}
	return ""
}

// withoutExample rejects a parameter without an example. Collections of requests and documentation send it.
func withoutExample(_ reader, parameter object) string {
	if parameter["in"] != nil && parameter["schema"] != nil && parameter["example"] == nil {
		return " is a parameter without an example"
	}
	return ""
}

// likeBuiltIn rejects a name that is a built-in type of TypeScript, Python or Rust.
func likeBuiltIn(r reader, _ object) string {
	if name, ok := strings.CutPrefix(r.where, "components.schemas."); ok && slices.Contains([]string{"Error", "Exception", "Object", "Date", "Map"}, name) {
		return " has the name of a built-in type"
	}
	return ""
}

// closedEverywhere are the enumerations that never get another value.
var closedEverywhere = []string{"Mode", "TaxBehavior"}

// TestEnumerationsOfResponsesAreOpen checks that each enumeration that a response contains is open, and that each enumeration that a
// request contains is closed.
func TestEnumerationsOfResponsesAreOpen(t *testing.T) {
	t.Parallel()
	doc := served(t)["contract"]
	sent, received := map[string]object{}, map[string]object{}
	components, _ := doc["components"].(object)
	reachable(doc, components["parameters"], sent)
	reachable(doc, components["responses"], received)
	for _, item := range children(doc, "paths") {
		for _, op := range item {
			op, _ := op.(object)
			reachable(doc, op["requestBody"], sent)
			reachable(doc, op["responses"], received)
		}
	}
	closed, open := 0, 0
	for name, schema := range received {
		if schema["enum"] != nil && !slices.Contains(closedEverywhere, name) {
			t.Errorf("%s is closed, and responses contain it", name)
		}
		if schema["x-known-values"] != nil {
			open++
		}
	}
	for name, schema := range sent {
		if schema["x-known-values"] != nil {
			t.Errorf("%s is open, and requests contain it", name)
		}
		if schema["enum"] != nil {
			closed++
		}
	}
	if open < 25 || closed < 20 {
		t.Errorf("%d open and %d closed enumerations, want more", open, closed)
	}
}

// reachable adds the components that a value refers to, directly or through others.
func reachable(doc object, value any, into map[string]object) {
	switch v := value.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok {
			name := ref[strings.LastIndexByte(ref, '/')+1:]
			if into[name] == nil {
				into[name] = reader{doc: doc}.follow(v)
				reachable(doc, into[name], into)
			}
		}
		for key, child := range v {
			if !strings.HasPrefix(key, "x-") {
				reachable(doc, child, into)
			}
		}
	case []any:
		for _, child := range v {
			reachable(doc, child, into)
		}
	}
}

// schemas returns each mapping of a document that can be a schema, by its path.
func schemas(doc object) map[string]object {
	out := map[string]object{}
	collect(doc, "", out)
	return out
}

func collect(value any, where string, out map[string]object) {
	switch v := value.(type) {
	case object:
		if where != "" {
			out[where] = v
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "example" && key != "examples" && !strings.HasPrefix(key, "x-") {
				collect(v[key], strings.TrimPrefix(where+"."+key, "."), out)
			}
		}
	case []any:
		for i, item := range v {
			collect(item, fmt.Sprintf("%s.%d", where, i), out)
		}
	}
}
