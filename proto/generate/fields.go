package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto/yamlnode"
)

// fields returns the Go source of the fields of each operation.
func fields(source []byte) ([]byte, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(source, &top); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	doc := top.Content[0]
	var out bytes.Buffer
	out.WriteString("// Code generated from openapi.yaml by make gen. DO NOT EDIT.\n\npackage proto\n\n" +
		"// OperationFields are the fields of each operation by operationId.\nvar OperationFields = map[string]Fields{\n")
	for path, item := range yamlnode.Pairs(yamlnode.Get(doc, "paths")) {
		for method, node := range yamlnode.Pairs(item) {
			op := operation{doc: doc, node: node, id: yamlnode.Text(node, "operationId"), method: strings.ToUpper(method), path: path}
			_, response := op.success()
			fmt.Fprintf(&out, "%q: {%s},\n", op.id, strings.Join(slices.Concat(
				member("Body", propertyNames(doc, yamlnode.Get(node, "requestBody"))), member("Response", propertyNames(doc, response))), ", "))
		}
	}
	out.WriteString("}\n")
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	return formatted, nil
}

// propertyNames returns the names of the properties of a JSON body, or nil if it has none of its own.
func propertyNames(doc, body *yaml.Node) (names []string) {
	schema := yamlnode.Get(body, "content", "application/json", "schema")
	if name := yamlnode.Referred(schema); name != "" {
		schema = yamlnode.Get(doc, "components", "schemas", name)
	}
	for name := range yamlnode.Pairs(yamlnode.Get(schema, "properties")) {
		names = append(names, name)
	}
	return names
}

// member returns the Go source of a member with a list of names, or nothing if there are no names.
func member(name string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %#v", name, names)}
}
