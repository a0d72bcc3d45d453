package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto/yamlnode"
)

// orderedFolder contains the input of the generator of Go types: the contracts with x-order. It is as deep as the folder internal,
// so that the same relative references work. It is not committed.
const orderedFolder = "ordered"

// writeOrdered writes the public contract, the internal ones and that of the platform with x-order, which is not published. Without x-order the generator
// of Go types would sort the fields of structs, and therefore of bodies, by name.
func writeOrdered(public []byte) error {
	files := map[string][]byte{"openapi.yaml": public}
	others, err := filepath.Glob("internal/*.yaml")
	if err != nil {
		return fmt.Errorf("internal contracts: %w", err)
	}
	for _, path := range append(others, "platform.yaml") {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return fmt.Errorf("contracts: %w", err)
		}
	}
	if err := os.MkdirAll(orderedFolder, 0o755); err != nil {
		return fmt.Errorf("contracts with x-order: %w", err)
	}
	for name, document := range files {
		ordered, err := order(document)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(orderedFolder, name), ordered, 0o644); err != nil {
			return fmt.Errorf("contracts with x-order: %w", err)
		}
	}
	return nil
}

// order returns a document whose properties have x-order, according to their position in the document.
func order(document []byte) ([]byte, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(document, &top); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	n := numbering{schemas: yamlnode.Get(top.Content[0], "components", "schemas"), seen: map[*yaml.Node]bool{}}
	n.number(n.schemas)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	if err := errors.Join(encoder.Encode(&top), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write contract: %w", err)
	}
	return out.Bytes(), nil
}

// numbering numbers properties. The numbers increase throughout the whole document, so that the parts of an allOf are in order. A
// schema that such a part references is numbered first.
type numbering struct {
	schemas *yaml.Node
	seen    map[*yaml.Node]bool
	last    int
}

func (n *numbering) number(schema *yaml.Node) {
	if schema == nil || n.seen[schema] {
		return
	}
	n.seen[schema] = true
	for _, child := range schema.Content {
		if schema.Kind == yaml.SequenceNode {
			n.number(child)
		}
	}
	for key, value := range yamlnode.Pairs(schema) {
		switch key {
		case "allOf":
			for _, part := range value.Content {
				n.number(yamlnode.Get(n.schemas, yamlnode.Referred(part)))
			}
		case "properties":
			for _, property := range yamlnode.Pairs(value) {
				n.last++
				yamlnode.Set(property, "x-order", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(n.last)})
			}
		}
		n.number(value)
	}
}
