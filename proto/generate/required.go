package main

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto/yamlnode"
)

// requireProperties adds `required` to the schemas of responses, which have a constant property "object". It lists all properties
// except those marked x-optional.
func requireProperties(schemas *yaml.Node) error {
	for name, schema := range yamlnode.Pairs(schemas) {
		properties := yamlnode.Get(schema, "properties")
		if yamlnode.Get(properties, "object", "const") == nil {
			continue
		}
		if yamlnode.Get(schema, "required") != nil {
			return fmt.Errorf("%s has required: leave it out, and mark a property that a response can omit with x-optional", name)
		}
		var names []string
		for name, property := range yamlnode.Pairs(properties) {
			if yamlnode.Get(property, "x-optional") == nil {
				names = append(names, name)
			}
			yamlnode.Remove(property, "x-optional")
		}
		before := slices.IndexFunc(schema.Content, func(n *yaml.Node) bool { return n.Value == "properties" })
		schema.Content = slices.Insert(schema.Content, before, yamlnode.Scalar("required"), yamlnode.List(names))
	}
	return nil
}
