package main

import (
	"bytes"
	"fmt"
	"go/format"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
)

// declared returns the event types of the contract in its order: x-event-types of the schema EventType.
func declared(doc *yaml.Node) []proto.EventType {
	var types []proto.EventType
	for name, t := range pairs(get(doc, "components", "schemas", "EventType", "x-event-types")) {
		types = append(types, proto.EventType{Name: name, Scope: text(t, "scope"), Description: text(t, "description")})
	}
	return types
}

// expandEventTypes makes the values of EventType, and of EventTypeWrite, which also allows *.
func expandEventTypes(doc *yaml.Node) {
	var names []string
	meanings := mapping()
	for _, t := range declared(doc) {
		names = append(names, t.Name)
		set(meanings, t.Name, scalar(fmt.Sprintf("%s Needs `%s`.", t.Description, t.Scope)))
	}
	schemas := get(doc, "components", "schemas")
	read, write := get(schemas, "EventType"), get(schemas, "EventTypeWrite")
	if read == nil || write == nil {
		return
	}
	remove(read, "x-event-types")
	set(read, "enum", list(names))
	set(read, "x-enumDescriptions", meanings)
	all := mapping()
	set(all, "*", scalar("All types, those of the future included."))
	all.Content = append(all.Content, meanings.Content...)
	set(write, "enum", list(append([]string{"*"}, names...)))
	set(write, "x-enumDescriptions", all)
}

// eventTypes returns the Go source of the catalogue.
func eventTypes(source []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(source, &doc); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	var out bytes.Buffer
	out.WriteString("// Code generated from openapi.yaml by make gen. DO NOT EDIT.\n\npackage proto\n\n" +
		"// EventTypes is the public catalogue; Event.internal marks all others. Types of resources that are not built\n" +
		"// yet are in it from the start.\nvar EventTypes = []EventType{\n")
	for _, t := range declared(doc.Content[0]) {
		fmt.Fprintf(&out, "{%q, %q, %q},\n", t.Name, t.Scope, t.Description)
	}
	out.WriteString("}\n")
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	return formatted, nil
}
