package view

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto/yamlnode"
)

// sdk is the contract for generators of clients. Most of them make a type of each response, header and media type of each operation:
// from the whole contract, one generator makes 390,000 lines.
func sdk(doc *yaml.Node) *yaml.Node {
	for _, op := range operations(doc) {
		oneError(op)
		yamlnode.Remove(op, "x-csv")
		yamlnode.Remove(op, "x-codeSamples")
		for _, response := range yamlnode.Pairs(yamlnode.Get(op, "responses")) {
			yamlnode.Remove(response, "headers")
			yamlnode.Remove(yamlnode.Get(response, "content"), "text/csv")
		}
	}
	components := yamlnode.Get(doc, "components")
	schemas := yamlnode.Get(components, "schemas")
	mergeErrors(schemas)
	metadataAsMap(schemas)
	yamlnode.Remove(components, "headers")
	yamlnode.Set(components, "responses", defaultError())
	prune(doc)
	return doc
}

// oneError replaces the errors of an operation by one default response.
func oneError(op *yaml.Node) {
	responses := yamlnode.Get(op, "responses")
	retained := yamlnode.Mapping()
	for status, response := range yamlnode.Pairs(responses) {
		if strings.HasPrefix(status, "2") || strings.HasPrefix(status, "3") {
			yamlnode.Set(retained, status, response)
		}
	}
	yamlnode.Set(retained, "default", yamlnode.Reference("responses", "Error"))
	*responses = *retained
}

// defaultError returns the components with the response to each failed request.
func defaultError() *yaml.Node {
	media, content, response, all := yamlnode.Mapping(), yamlnode.Mapping(), yamlnode.Mapping(), yamlnode.Mapping()
	yamlnode.Set(media, "schema", yamlnode.Reference("schemas", "ErrorResponse"))
	yamlnode.Set(content, "application/json", media)
	yamlnode.Set(response, "description", yamlnode.Scalar("The request failed. `error.code` says why."))
	yamlnode.Set(response, "content", content)
	yamlnode.Set(all, "Error", response)
	return all
}

// mergeErrors adds to ErrorResponse what only errors of validation have, so that one type fits all errors.
func mergeErrors(schemas *yaml.Node) {
	properties := yamlnode.Get(schemas, "ErrorResponse", "properties")
	for name, property := range yamlnode.Pairs(yamlnode.Get(schemas, "ValidationError", "properties")) {
		if yamlnode.Get(properties, name) == nil {
			property = yamlnode.Clone(property)
			if description := yamlnode.Get(property, "description"); description != nil {
				description.SetString(description.Value + " Only with status 422.")
			}
			yamlnode.Set(properties, name, property)
		}
	}
}

// metadataAsMap leaves out metadata in the form of a list, which no typed client offers.
func metadataAsMap(schemas *yaml.Node) {
	pairs := yamlnode.Get(schemas, "MetadataMap")
	if pairs == nil {
		return
	}
	for name, types := range map[string][]string{"Metadata": {"object", "null"}, "MetadataRead": {"object"}} {
		flat := yamlnode.Mapping()
		kind := yamlnode.List(types)
		if len(types) == 1 {
			kind = yamlnode.Scalar(types[0])
		}
		yamlnode.Set(flat, "type", kind)
		yamlnode.Set(flat, "description", yamlnode.Get(schemas, name, "description"))
		for key, value := range yamlnode.Pairs(yamlnode.Clone(pairs)) {
			if key != "type" && key != "description" {
				yamlnode.Set(flat, key, value)
			}
		}
		yamlnode.Set(schemas, name, flat)
	}
	yamlnode.Get(schemas, "Metadata", "description").SetString("Your own key-value pairs: at most 50 keys of 1 to 40 characters and values of at most 500 characters. An update replaces all pairs.")
}

// prune removes the components that nothing refers to.
func prune(doc *yaml.Node) {
	components := yamlnode.Get(doc, "components")
	used := map[string]bool{}
	for key, part := range yamlnode.Pairs(doc) {
		if key != "components" {
			mark(doc, part, used)
		}
	}
	for kind, all := range yamlnode.Pairs(components) {
		if kind == "securitySchemes" {
			continue
		}
		retained := yamlnode.Mapping()
		for name, component := range yamlnode.Pairs(all) {
			if used["#/components/"+kind+"/"+name] {
				yamlnode.Set(retained, name, component)
			}
		}
		*all = *retained
	}
}

// mark adds the references of a node, directly or through other components.
func mark(doc, n *yaml.Node, used map[string]bool) {
	if ref := yamlnode.Text(n, "$ref"); strings.HasPrefix(ref, "#/") && !used[ref] {
		used[ref] = true
		if target := yamlnode.Get(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...); target != nil {
			mark(doc, target, used)
		}
	}
	for _, child := range n.Content {
		mark(doc, child, used)
	}
}
