package main

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
	"holdfast.dev/proto/yamlnode"
	"holdfast.dev/sdks/generate/model"
)

// goSchemas returns the document from which oapi-codegen generates the types of the Go SDK: the component schemas in a form that gives
// types as Go programmers write them. The SDK itself contains the types of errors, lists and events.
func goSchemas() (*yaml.Node, error) {
	documents, err := view.New(proto.OpenAPI, address)
	if err != nil {
		return nil, err
	}
	doc := yamlnode.Mapping()
	for _, key := range []string{"openapi", "info"} {
		yamlnode.Set(doc, key, yamlnode.Get(documents.SDK, key))
	}
	yamlnode.Set(doc, "paths", yamlnode.Mapping())
	components := yamlnode.Mapping()
	g := goTypes{schemas: yamlnode.Get(documents.SDK, "components", "schemas"), sent: map[string]bool{}, null: map[string]bool{}}
	for _, item := range yamlnode.Pairs(yamlnode.Get(documents.SDK, "paths")) {
		for _, op := range yamlnode.Pairs(item) {
			g.reach(yamlnode.Get(op, "requestBody"))
		}
	}
	g.rewrite()
	yamlnode.Set(components, "schemas", g.schemas)
	yamlnode.Set(doc, "components", components)
	return doc, nil
}

// goTypes rewrites component schemas.
type goTypes struct {
	schemas *yaml.Node
	sent    map[string]bool // the schemas of requests
	null    map[string]bool // the schemas whose type includes null
	order   int
}

const schemaRef = "#/components/schemas/"

// reach adds the schemas that a node refers to, directly or through other schemas, to those of requests.
func (g *goTypes) reach(node *yaml.Node) {
	if node == nil {
		return
	}
	if name := yamlnode.Referred(node); name != "" && !g.sent[name] {
		g.sent[name] = true
		g.reach(yamlnode.Get(g.schemas, name))
	}
	for _, child := range node.Content {
		g.reach(child)
	}
}

// written are the schemas whose types are written by hand in the SDK, with their types.
var written = map[string]string{"AppliesTo": "AppliesTo", "WebhookEvent": "Event"}

// unused are the schemas that only written types need.
var unused = []string{"AppliesToSelection", "ErrorResponse", "ErrorBody", "ErrorType"}

// rewrite removes the schemas without a generated type, and rewrites the others.
func (g *goTypes) rewrite() {
	var names []string
	for name, schema := range yamlnode.Pairs(g.schemas) {
		names = append(names, name)
		kind := yamlnode.Get(schema, "type")
		g.null[name] = kind != nil && kind.Kind == yaml.SequenceNode
	}
	for _, name := range names {
		schema := yamlnode.Get(g.schemas, name)
		base, isInput := strings.CutSuffix(name, "Input")
		copied := isInput && yamlnode.Get(schema, "enum") != nil && yamlnode.Get(g.schemas, base) != nil
		list := yamlnode.Get(schema, "properties", "next_cursor") != nil
		empty := yamlnode.Text(schema, "type") == "object" && yamlnode.Get(schema, "properties") == nil && yamlnode.Get(schema, "additionalProperties") == nil
		if written[name] != "" || slices.Contains(unused, name) || copied || list || empty {
			yamlnode.Remove(g.schemas, name)
			continue
		}
		g.schema(name, schema)
	}
}

// schema rewrites a component schema.
func (g *goTypes) schema(name string, schema *yaml.Node) {
	if known := yamlnode.Get(schema, "x-known-values"); known != nil {
		yamlnode.Set(schema, "enum", known)
		yamlnode.Remove(schema, "x-known-values")
	}
	withoutNull(schema)
	g.values(schema)
	required := yamlnode.Get(schema, "required")
	for property, value := range yamlnode.Pairs(yamlnode.Get(schema, "properties")) {
		g.order++
		if strings.HasSuffix(property, "_ids") {
			yamlnode.Set(value, "x-go-name", yamlnode.Scalar(goName(model.Split(property))))
		}
		if property == "previous_attributes" {
			yamlnode.Set(value, "x-go-type", yamlnode.Scalar("map[string]json.RawMessage"))
		}
		if g.sent[name] {
			g.optional(value)
		} else if g.nullable(value) && required != nil {
			required.Content = slices.DeleteFunc(required.Content, func(n *yaml.Node) bool { return n.Value == property })
		}
		yamlnode.Set(value, "x-order", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(g.order)})
	}
	if required != nil && len(required.Content) == 0 {
		yamlnode.Remove(schema, "required")
	}
}

// values rewrites the schemas in a schema whose form is the same in requests and responses.
func (g *goTypes) values(n *yaml.Node) {
	if name := yamlnode.Referred(n); name != "" {
		if written[name] != "" {
			*n = *yamlnode.MappingOf("x-go-type", written[name])
		} else if base, ok := strings.CutSuffix(name, "Input"); ok && yamlnode.Text(yamlnode.Get(g.schemas, base), "type") == "string" {
			yamlnode.Get(n, "$ref").SetString(schemaRef + base)
		}
		return
	}
	if items := yamlnode.Get(n, "items"); yamlnode.Referred(items) == "WebhookEvent" {
		yamlnode.Set(n, "items", yamlnode.MappingOf("type", "object"))
		yamlnode.Set(n, "x-go-type", yamlnode.Scalar("Events"))
		yamlnode.Set(n, "x-go-type-skip-optional-pointer", yes())
		return
	}
	for _, keyword := range []string{"const", "pattern", "minLength", "maxLength", "x-enumDescriptions"} {
		if yamlnode.Get(n, "type") != nil {
			yamlnode.Remove(n, keyword)
		}
	}
	if format := yamlnode.Text(n, "format"); format != "date-time" && format != "int64" {
		yamlnode.Remove(n, "format")
	}
	for _, child := range n.Content {
		g.values(child)
	}
}

// withoutNull removes null from the type of a component: the properties that refer to it say whether they can be null.
func withoutNull(schema *yaml.Node) {
	if kind := yamlnode.Get(schema, "type"); kind != nil && kind.Kind == yaml.SequenceNode {
		yamlnode.Set(schema, "type", yamlnode.Scalar(kind.Content[0].Value))
	}
}

// nullable reports whether a property of a response can be null, and rewrites it to one that can be missing: a pointer, or a slice or
// map that is nil.
func (g *goTypes) nullable(property *yaml.Node) bool {
	if kind := yamlnode.Get(property, "type"); kind != nil && kind.Kind == yaml.SequenceNode {
		single := kind.Content[0].Value
		yamlnode.Set(property, "type", yamlnode.Scalar(single))
		if single == "array" || single == "object" {
			yamlnode.Set(property, "x-go-type-skip-optional-pointer", yes())
		}
		return true
	}
	alternatives := yamlnode.Get(property, "oneOf")
	if alternatives == nil {
		return false
	}
	for _, alternative := range alternatives.Content {
		if name := yamlnode.Referred(alternative); name != "" {
			yamlnode.Remove(property, "oneOf")
			yamlnode.Set(property, "$ref", yamlnode.Scalar(schemaRef+name))
			return true
		}
	}
	return false
}

// optional rewrites a property of a request. An optional list or map is sent unless it is nil. A property whose component can be null is
// nullable itself, except metadata, which {} clears.
func (g *goTypes) optional(property *yaml.Node) {
	kind, name := yamlnode.Get(property, "type"), yamlnode.Referred(property)
	if g.null[name] && name != "Metadata" {
		yamlnode.Remove(property, "$ref")
		yamlnode.Set(property, "oneOf", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{yamlnode.Reference("schemas", name), yamlnode.MappingOf("type", "null")}})
		return
	}
	container := kind != nil && kind.Kind == yaml.ScalarNode && (kind.Value == "array" || kind.Value == "object")
	if !container && name != "Metadata" {
		return
	}
	yamlnode.Set(property, "x-go-type-skip-optional-pointer", yes())
	yamlnode.Set(property, "x-omitempty", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "false"})
	yamlnode.Set(property, "x-omitzero", yes())
}

func yes() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"} }
