package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/yamlnode"
)

// declared returns the event types of the contract in its order: x-event-types of the schema EventType.
func declared(doc *yaml.Node) []proto.EventType {
	var types []proto.EventType
	for name, t := range yamlnode.Pairs(yamlnode.Get(doc, "components", "schemas", "EventType", "x-event-types")) {
		types = append(types, proto.EventType{Name: name, Scope: yamlnode.Text(t, "scope"), Description: yamlnode.Text(t, "description")})
	}
	return types
}

// expandEventTypes adds the values of EventType, and of EventTypeWrite, which also allows *.
func expandEventTypes(doc *yaml.Node) {
	var names []string
	meanings := yamlnode.Mapping()
	for _, t := range declared(doc) {
		names = append(names, t.Name)
		yamlnode.Set(meanings, t.Name, yamlnode.Scalar(fmt.Sprintf("%s Needs `%s`.", t.Description, t.Scope)))
	}
	schemas := yamlnode.Get(doc, "components", "schemas")
	read, write := yamlnode.Get(schemas, "EventType"), yamlnode.Get(schemas, "EventTypeWrite")
	if read == nil || write == nil {
		return
	}
	yamlnode.Remove(read, "x-event-types")
	yamlnode.Set(read, "enum", yamlnode.List(names))
	yamlnode.Set(read, "x-enumDescriptions", meanings)
	all := yamlnode.Mapping()
	yamlnode.Set(all, "*", yamlnode.Scalar("All types, those of the future included."))
	all.Content = append(all.Content, meanings.Content...)
	yamlnode.Set(write, "enum", yamlnode.List(append([]string{"*"}, names...)))
	yamlnode.Set(write, "x-enumDescriptions", all)
	boundEventTypes(doc, len(names))
}

// boundEventTypes allows a list of event types to contain each of the n types, and replaces {event types} in descriptions with n.
func boundEventTypes(node *yaml.Node, n int) {
	if item := yamlnode.Referred(yamlnode.Get(node, "items")); item == "EventType" || item == "EventTypeWrite" {
		yamlnode.Set(node, "maxItems", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(n)})
	}
	node.Value = strings.ReplaceAll(node.Value, "{event types}", strconv.Itoa(n))
	for _, child := range node.Content {
		boundEventTypes(child, n)
	}
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

// eventPage is the page of the documentation that lists the event types.
const eventPage = "../docs/guides/webhooks.md"

// eventTable is the header of the table of event types on the page.
const eventTable = "| type | scope to read it | sent when |\n|---|---|---|\n"

// documentEventTypes returns the page with the rows of the table replaced by the types of the contract.
func documentEventTypes(page, source []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(source, &doc); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	before, rest, found := strings.Cut(string(page), eventTable)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		return nil, fmt.Errorf("%s has no table that begins with %q", eventPage, eventTable)
	}
	var rows strings.Builder
	for _, t := range declared(doc.Content[0]) {
		fmt.Fprintf(&rows, "| `%s` | `%s` | %s |\n", t.Name, t.Scope, t.Description)
	}
	return []byte(before + eventTable + rows.String() + "\n" + after), nil
}

// writeEventTypes writes the table of event types into the page.
func writeEventTypes(source []byte) error {
	page, err := os.ReadFile(eventPage)
	if err != nil {
		return fmt.Errorf("read the page of events: %w", err)
	}
	if page, err = documentEventTypes(page, source); err != nil {
		return err
	}
	return os.WriteFile(eventPage, page, 0o644) //nolint:gosec // anybody may read it
}
