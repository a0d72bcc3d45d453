package view

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto/yamlnode"
)

// input is the suffix of the closed copy of an enumeration, for requests.
const input = "Input"

// openEnums opens the enumerations of responses: a client must accept values that are added later. Their values are x-known-values
// instead of enum. Requests that use the same enumeration refer to a closed copy, <name>Input. An enumeration with x-closed stays
// closed everywhere.
func openEnums(doc *yaml.Node) error {
	schemas := yamlnode.Get(doc, "components", "schemas")
	sent, received := used(doc)
	var copies []*yaml.Node
	renamed := map[string]string{}
	for name, schema := range yamlnode.Pairs(schemas) {
		closed := yamlnode.Text(schema, "x-closed") == "true"
		yamlnode.Remove(schema, "x-closed")
		if yamlnode.Get(schema, "enum") == nil || closed || !received[name] {
			continue
		}
		if sent[name] {
			renamed[name] = name + input
			copies = append(copies, yamlnode.Scalar(name+input), yamlnode.Clone(schema))
		}
		rename(schema, "enum", "x-known-values")
		yamlnode.Remove(schema, "default")
	}
	var mixed []error
	for name, schema := range yamlnode.Pairs(schemas) {
		if both := refers(schema, renamed); both != "" && sent[name] && received[name] {
			mixed = append(mixed, fmt.Errorf("%s is in requests and in responses, and so is its enumeration %s: give them different objects", name, both))
		} else if sent[name] {
			redirect(schema, renamed)
		}
	}
	for _, parameter := range yamlnode.Pairs(yamlnode.Get(doc, "components", "parameters")) {
		redirect(parameter, renamed)
	}
	for _, op := range operations(doc) {
		redirect(yamlnode.Get(op, "parameters"), renamed)
		redirect(yamlnode.Get(op, "requestBody"), renamed)
	}
	if schemas != nil {
		schemas.Content = append(schemas.Content, copies...)
	}
	return errors.Join(mixed...)
}

// operations returns the operations of a document by method and path.
func operations(doc *yaml.Node) map[string]*yaml.Node {
	all := map[string]*yaml.Node{}
	for path, item := range yamlnode.Pairs(yamlnode.Get(doc, "paths")) {
		for method, op := range yamlnode.Pairs(item) {
			all[method+" "+path] = op
		}
	}
	return all
}

// used returns the names of the schemas that requests and responses use, directly or through other schemas.
func used(doc *yaml.Node) (sent, received map[string]bool) {
	sent, received = map[string]bool{}, map[string]bool{}
	reach(doc, yamlnode.Get(doc, "components", "parameters"), sent)
	reach(doc, yamlnode.Get(doc, "components", "responses"), received)
	for _, op := range operations(doc) {
		reach(doc, yamlnode.Get(op, "parameters"), sent)
		reach(doc, yamlnode.Get(op, "requestBody"), sent)
		reach(doc, yamlnode.Get(op, "responses"), received)
	}
	return sent, received
}

const schemaRef = "#/components/schemas/"

// reach adds the names of the schemas that a node refers to.
func reach(doc, node *yaml.Node, names map[string]bool) {
	if node == nil {
		return
	}
	if name, ok := strings.CutPrefix(yamlnode.Text(node, "$ref"), schemaRef); ok && !names[name] {
		names[name] = true
		reach(doc, yamlnode.Get(doc, "components", "schemas", name), names)
	}
	for _, child := range node.Content {
		reach(doc, child, names)
	}
}

// refers returns a schema that a node refers to and that is renamed, or "".
func refers(node *yaml.Node, renamed map[string]string) string {
	found := map[string]bool{}
	reach(nil, node, found)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if renamed[name] != "" {
			return name
		}
	}
	return ""
}

// redirect changes the references of a node to renamed schemas.
func redirect(node *yaml.Node, renamed map[string]string) {
	if node == nil {
		return
	}
	if name, ok := strings.CutPrefix(yamlnode.Text(node, "$ref"), schemaRef); ok && renamed[name] != "" {
		yamlnode.Get(node, "$ref").SetString(schemaRef + renamed[name])
		yamlnode.Get(node, "$ref").Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		redirect(child, renamed)
	}
}

// rename changes a key of a mapping.
func rename(n *yaml.Node, key, to string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i].Value = to
		}
	}
}
