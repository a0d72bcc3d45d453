package contracttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// misordered lists the objects in a body whose properties are not in the order that the schema at a JSON pointer defines.
func (a *responses) misordered(pointer, what string, body []byte) []string {
	return a.walk(a.node(pointer), what, body)
}

func (a *responses) walk(schema *yaml.Node, what string, value []byte) (out []string) {
	value = bytes.TrimSpace(value)
	switch {
	case schema == nil || len(value) == 0:
		return nil
	case value[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(value, &items) != nil {
			return nil
		}
		item := a.items(schema)
		for i, one := range items {
			out = append(out, a.walk(item, fmt.Sprintf("%s[%d]", what, i), one)...)
		}
	case value[0] == '{':
		names, values := members(value)
		var order []string
		properties := map[string]*yaml.Node{}
		a.properties(schema, &order, properties)
		var known []string
		for i, name := range names {
			if property := properties[name]; property != nil {
				known = append(known, name)
				out = append(out, a.walk(property, what+"."+name, values[i])...)
			}
		}
		place := func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) }
		if !slices.IsSortedFunc(known, place) {
			out = append(out, fmt.Sprintf("%s: the order %v, want that of the contract, %v", what, known, order))
		}
	}
	return out
}

// members returns the names and values of an object in their order.
func members(object []byte) (names []string, values []json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, nil
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return names, values
		}
		names, values = append(names, fmt.Sprint(name)), append(values, value)
	}
	return names, values
}

// properties adds the properties of a schema and of its alternatives in the order of the document.
func (a *responses) properties(schema *yaml.Node, order *[]string, to map[string]*yaml.Node) {
	schema = a.follow(schema)
	if named := member(schema, "properties"); named != nil {
		for i := 0; i+1 < len(named.Content); i += 2 {
			if name := named.Content[i].Value; to[name] == nil {
				*order, to[name] = append(*order, name), named.Content[i+1]
			}
		}
	}
	for _, alternative := range a.alternatives(schema) {
		a.properties(alternative, order, to)
	}
}

func (a *responses) items(schema *yaml.Node) *yaml.Node {
	schema = a.follow(schema)
	if items := member(schema, "items"); items != nil {
		return items
	}
	for _, alternative := range a.alternatives(schema) {
		if items := a.items(alternative); items != nil {
			return items
		}
	}
	return nil
}

func (a *responses) alternatives(schema *yaml.Node) (all []*yaml.Node) {
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		if list := member(schema, key); list != nil {
			all = append(all, list.Content...)
		}
	}
	return all
}

func (a *responses) follow(n *yaml.Node) *yaml.Node {
	if ref := member(n, "$ref"); ref != nil {
		return a.follow(a.node(strings.TrimPrefix(ref.Value, "#")))
	}
	return n
}

// node returns the part of the document at a JSON pointer, or nil if there is none.
func (a *responses) node(pointer string) *yaml.Node {
	n := a.document
	for seg := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		n = member(a.follow(n), strings.NewReplacer("~1", "/", "~0", "~").Replace(seg))
	}
	return n
}

// member returns the value of key in a mapping, or nil if there is none.
func member(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
