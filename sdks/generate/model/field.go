package model

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto/yamlnode"
)

// fields returns the fields of a schema of a request. prefix is the path of the object, with a dot at its end. required reports whether
// the object itself is required.
func (r *reader) fields(schema, prefix string, required bool) []Field {
	node := yamlnode.Get(r.doc, "components", "schemas", schema)
	needed := texts(yamlnode.Get(node, "required"))
	var all []Field
	for name, property := range yamlnode.Pairs(yamlnode.Get(node, "properties")) {
		f := Field{
			Path: prefix + name, Required: required && slices.Contains(needed, name),
			Description: strings.TrimSpace(yamlnode.Text(property, "description")),
		}
		all = append(all, r.field(f, property)...)
	}
	return all
}

// field returns a property: one field, or those of its object. A property that is either an enumeration or an object has both.
func (r *reader) field(f Field, node *yaml.Node) []Field {
	name := yamlnode.Referred(node)
	if name != "" {
		node = yamlnode.Get(r.doc, "components", "schemas", name)
		if f.Description == "" {
			f.Description = strings.TrimSpace(yamlnode.Text(node, "description"))
		}
	}
	if branches := yamlnode.Get(node, "oneOf"); branches != nil {
		var all []Field
		nullable := slices.ContainsFunc(branches.Content, func(n *yaml.Node) bool { return yamlnode.Text(n, "type") == "null" })
		for _, branch := range branches.Content {
			if yamlnode.Text(branch, "type") == "null" {
				continue
			}
			for _, one := range r.field(f, branch) {
				one.Nullable = one.Nullable || nullable && one.Path == f.Path
				one.Required = one.Required && len(branches.Content) == 1
				all = append(all, one)
			}
		}
		return all
	}
	if yamlnode.Get(node, "properties") != nil {
		return r.fields(name, f.Path+".", f.Required)
	}
	return []Field{r.scalar(f, node)}
}

// scalar sets the type of a field.
func (r *reader) scalar(f Field, node *yaml.Node) Field {
	kind := yamlnode.Text(node, "type")
	if list := yamlnode.Get(node, "type"); list != nil && list.Kind == yaml.SequenceNode {
		f.Nullable, kind = slices.Contains(texts(list), "null"), list.Content[0].Value
	}
	f.Values = texts(yamlnode.Get(node, "enum"))
	switch kind {
	case "string", "integer", "boolean":
		f.Type = kind
	case "array":
		f.Array = true
		items := yamlnode.Get(node, "items")
		if name := yamlnode.Referred(items); name != "" {
			items = yamlnode.Get(r.doc, "components", "schemas", name)
		}
		f.Values = texts(yamlnode.Get(items, "enum"))
		if f.Type = yamlnode.Text(items, "type"); f.Type != "string" && f.Type != "integer" {
			f.Type = "any"
		}
	default:
		f.Type = "any"
		if value := yamlnode.Get(node, "additionalProperties"); kind == "object" && yamlnode.Text(value, "type") == "string" {
			f.Map, f.Type = true, "string"
		}
	}
	return f
}

// unshown are properties that tables leave out: they are equal in all rows, too long, a repetition, or only of use to programs.
var unshown = []string{
	"object", "mode", "version", "metadata", "description", "notes", "message", "terms", "billing_address", "timezone", "event_date",
	"client_secret", "api_version",
}

// columns returns the properties of a schema whose values fit into a cell: scalars and amounts. IDs of other objects and times are the
// last ones.
func (r *reader) columns(schema string) []string {
	var first, last []string
	node := yamlnode.Get(r.doc, "components", "schemas", schema)
	if branches := yamlnode.Get(node, "oneOf"); branches != nil { // the types of events, which have the same scalars
		node = yamlnode.Get(r.doc, "components", "schemas", yamlnode.Referred(branches.Content[0]))
	}
	for name, property := range yamlnode.Pairs(yamlnode.Get(node, "properties")) {
		if slices.Contains(unshown, name) || !r.cell(property) {
			continue
		}
		if strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_at") {
			last = append(last, name)
		} else {
			first = append(first, name)
		}
	}
	return append(first, last...)
}

// cell reports whether the values of a schema are scalars or amounts.
func (r *reader) cell(node *yaml.Node) bool {
	if name := yamlnode.Referred(node); name != "" {
		node = yamlnode.Get(r.doc, "components", "schemas", name)
	}
	if branches := yamlnode.Get(node, "oneOf"); branches != nil {
		return r.cell(branches.Content[0])
	}
	if yamlnode.Get(node, "properties", "currency") != nil {
		return true
	}
	kind := yamlnode.Text(node, "type")
	if list := yamlnode.Get(node, "type"); list != nil && list.Kind == yaml.SequenceNode {
		kind = list.Content[0].Value
	}
	return kind == "string" || kind == "integer" || kind == "boolean"
}

// anyName is the schema of a property that is a map: it has every name.
const anyName = "*"

// object adds the properties of a schema, and those of the objects in them, to the model. Each property has the names of the schemas of its
// objects, anyName for a map, or nothing for other values.
func (r *reader) object(schema string) {
	if r.model.Objects == nil {
		r.model.Objects = map[string]map[string][]string{}
	}
	if _, done := r.model.Objects[schema]; done {
		return
	}
	properties := map[string][]string{}
	r.model.Objects[schema] = properties
	node := yamlnode.Get(r.doc, "components", "schemas", schema)
	branches := []*yaml.Node{node}
	if one := yamlnode.Get(node, "oneOf"); one != nil { // the types of events
		branches = nil
		for _, branch := range one.Content {
			branches = append(branches, yamlnode.Get(r.doc, "components", "schemas", yamlnode.Referred(branch)))
		}
	}
	for _, branch := range branches {
		for name, property := range yamlnode.Pairs(yamlnode.Get(branch, "properties")) {
			properties[name] = append(properties[name], r.inner(property)...)
		}
	}
	for name, inner := range properties {
		slices.Sort(inner)
		properties[name] = slices.Compact(inner)
		for _, name := range properties[name] {
			if name != anyName {
				r.object(name)
			}
		}
	}
}

// inner returns the schemas of the objects that a property can be.
func (r *reader) inner(node *yaml.Node) []string {
	name := yamlnode.Referred(node)
	if name != "" {
		node = yamlnode.Get(r.doc, "components", "schemas", name)
	}
	if branches := yamlnode.Get(node, "oneOf"); branches != nil {
		var all []string
		for _, branch := range branches.Content {
			all = append(all, r.inner(branch)...)
		}
		return all
	}
	switch {
	case name != "" && yamlnode.Get(node, "properties") != nil:
		return []string{name}
	case yamlnode.Get(node, "additionalProperties") != nil || yamlnode.Text(node, "type") == "object":
		return []string{anyName}
	}
	return nil
}
