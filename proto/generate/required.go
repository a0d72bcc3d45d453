package main

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// requireProperties adds `required` to the schemas of responses, which have a constant property "object". It lists all properties
// except those marked x-optional.
func requireProperties(schemas *yaml.Node) error {
	for name, schema := range pairs(schemas) {
		properties := get(schema, "properties")
		if get(properties, "object", "const") == nil {
			continue
		}
		if get(schema, "required") != nil {
			return fmt.Errorf("%s has required: leave it out, and mark a property that a response can omit with x-optional", name)
		}
		var names []string
		for name, property := range pairs(properties) {
			if get(property, "x-optional") == nil {
				names = append(names, name)
			}
			remove(property, "x-optional")
		}
		before := slices.IndexFunc(schema.Content, func(n *yaml.Node) bool { return n.Value == "properties" })
		schema.Content = slices.Insert(schema.Content, before, scalar("required"), list(names))
	}
	return nil
}
