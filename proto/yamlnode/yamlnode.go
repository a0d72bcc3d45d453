// Package yamlnode reads and changes YAML documents without losing the order of their keys.
package yamlnode

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Pairs iterates over a mapping in the order of the document.
func Pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// Get returns the value under keys, or nil if there is none.
func Get(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var found *yaml.Node
		for k, v := range Pairs(n) {
			if k == key {
				found = v
			}
		}
		n = found
	}
	return n
}

// Text returns the scalar under key, or "" if there is none.
func Text(n *yaml.Node, key string) string {
	if v := Get(n, key); v != nil {
		return v.Value
	}
	return ""
}

// Set adds a value at the end of a mapping, or replaces the existing one.
func Set(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, Scalar(key), value)
}

// Remove deletes a key from a mapping. It ignores a mapping that is nil.
func Remove(n *yaml.Node, key string) {
	if n == nil {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// Scalar returns a string. Digits are quoted, because a status is also a string.
func Scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// Mapping returns an empty mapping in block style.
func Mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// MappingOf returns a mapping of one string in flow style.
func MappingOf(key, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	Set(n, key, Scalar(value))
	return n
}

// List returns a sequence of strings in flow style.
func List(texts []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, s := range texts {
		n.Content = append(n.Content, Scalar(s))
	}
	return n
}

// Reference returns a $ref to a component.
func Reference(kind, name string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	n.Content = []*yaml.Node{Scalar("$ref"), {Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: "#/components/" + kind + "/" + name}}
	return n
}

// Referred returns the name of the component that n references.
func Referred(n *yaml.Node) string {
	ref := Text(n, "$ref")
	return ref[strings.LastIndex(ref, "/")+1:]
}

// Value converts a JSON document to a node in block style.
func Value(document []byte) (*yaml.Node, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(document, &top); err != nil {
		return nil, fmt.Errorf("read example: %w", err)
	}
	inLines(top.Content[0])
	return top.Content[0], nil
}

func inLines(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode && len(n.Content) > 0 {
		n.Style = 0
	}
	for _, c := range n.Content {
		inLines(c)
	}
}

// Clone returns a deep copy.
func Clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = Clone(child)
	}
	return &c
}
