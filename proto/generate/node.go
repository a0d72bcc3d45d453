package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pairs iterates over a mapping in the order of the document.
func pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
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

// get returns the value under keys, or nil if there is none.
func get(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var found *yaml.Node
		for k, v := range pairs(n) {
			if k == key {
				found = v
			}
		}
		n = found
	}
	return n
}

// text returns the scalar under key, or "" if there is none.
func text(n *yaml.Node, key string) string {
	if v := get(n, key); v != nil {
		return v.Value
	}
	return ""
}

// set adds a value at the end of a mapping, or replaces the existing one.
func set(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, scalar(key), value)
}

// remove deletes a key from a mapping.
func remove(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// scalar returns a string. Digits are quoted, because a status is also a string.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// mapping returns an empty mapping in block style.
func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// mappingOf returns a mapping of one string in flow style.
func mappingOf(key, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	set(n, key, scalar(value))
	return n
}

// list returns a sequence of strings in flow style.
func list(texts []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, s := range texts {
		n.Content = append(n.Content, scalar(s))
	}
	return n
}

// reference returns a $ref to a component.
func reference(kind, name string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	n.Content = []*yaml.Node{scalar("$ref"), {Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: "#/components/" + kind + "/" + name}}
	return n
}

// referred returns the name of the component that n references.
func referred(n *yaml.Node) string {
	ref := text(n, "$ref")
	return ref[strings.LastIndex(ref, "/")+1:]
}

// value converts a JSON document to a node in block style.
func value(document []byte) (*yaml.Node, error) {
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
