// Package yamldoc reads OpenAPI documents as YAML nodes, which preserve the order of their properties.
package yamldoc

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var methods = []string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodHead, http.MethodOptions,
}

// IsMethod reports whether a key of a path item is an HTTP method, in upper or lower case.
func IsMethod(key string) bool { return slices.Contains(methods, strings.ToUpper(key)) }

// Document is a parsed document.
type Document struct {
	Root *yaml.Node // a mapping
}

// Parse returns an error unless doc is one YAML mapping.
func Parse(doc []byte) (*Document, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(doc, &top); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if top.Kind != yaml.DocumentNode || len(top.Content) != 1 || top.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the document is not a mapping")
	}
	return &Document{top.Content[0]}, nil
}

// Pairs iterates over a mapping in the order of the document. Any other node, or nil, has no pairs.
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

// Child returns the value of a key in a mapping, or nil.
func Child(n *yaml.Node, key string) *yaml.Node {
	for k, v := range Pairs(n) {
		if k == key {
			return v
		}
	}
	return nil
}

// Text returns the scalar of a key in a mapping, or "".
func Text(n *yaml.Node, key string) string {
	if v := Child(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// Follow resolves $ref and returns the target and its JSON pointer. Only references within the document are supported.
func (d *Document) Follow(n *yaml.Node, pointer string) (*yaml.Node, string, error) {
	for range 32 {
		ref := Text(n, "$ref")
		if ref == "" {
			return n, pointer, nil
		}
		target := d.Root
		for seg := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			target = Child(target, strings.NewReplacer("~1", "/", "~0", "~").Replace(seg))
		}
		if target == nil || !strings.HasPrefix(ref, "#/") {
			return nil, "", fmt.Errorf("line %d: cannot resolve $ref %q", n.Line, ref)
		}
		n, pointer = target, strings.TrimPrefix(ref, "#")
	}
	return nil, "", fmt.Errorf("line %d: $ref refers to itself", n.Line)
}

// Alternatives calls each with every schema of allOf, oneOf and anyOf.
func (d *Document) Alternatives(n *yaml.Node, each func(alt *yaml.Node) error) error {
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		list := Child(n, key)
		if list == nil {
			continue
		}
		for _, alt := range list.Content {
			alt, _, err := d.Follow(alt, "")
			if err != nil {
				return err
			}
			if err := each(alt); err != nil {
				return err
			}
		}
	}
	return nil
}
