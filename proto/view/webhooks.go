package view

import (
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/yamlnode"
)

//go:embed webhooks.yaml
var webhooksYAML []byte

// webhooks returns the document of the webhooks. It is separate, because two generators of clients fail at webhooks in a contract.
func webhooks(contract *yaml.Node) (*yaml.Node, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(webhooksYAML, &top); err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	doc := top.Content[0]
	doc.Content[0].HeadComment = ""
	components := yamlnode.Get(doc, "components")
	headers := &yaml.Node{Kind: yaml.SequenceNode}
	for name := range yamlnode.Pairs(yamlnode.Get(components, "parameters")) {
		headers.Content = append(headers.Content, yamlnode.Reference("parameters", name))
	}
	requests := yamlnode.Mapping()
	for _, t := range proto.EventTypes {
		item := yamlnode.Mapping()
		yamlnode.Set(item, "post", request(t, headers))
		yamlnode.Set(requests, t.Name, item)
	}
	yamlnode.Set(doc, "webhooks", requests)
	schemas := yamlnode.Mapping()
	if all := yamlnode.Get(contract, "components", "schemas"); all != nil {
		schemas = yamlnode.Clone(all)
	}
	yamlnode.Set(components, "schemas", schemas)
	// The union of all types is for programs that receive all of them.
	union := yamlnode.Get(schemas, webhookEvent)
	prune(doc)
	if union != nil {
		yamlnode.Set(schemas, webhookEvent, union)
	}
	return doc, nil
}

// request returns the request that delivers an event.
func request(t proto.EventType, headers *yaml.Node) *yaml.Node {
	op, body, content, media, responses := yamlnode.Mapping(), yamlnode.Mapping(), yamlnode.Mapping(), yamlnode.Mapping(), yamlnode.Mapping()
	yamlnode.Set(op, "operationId", yamlnode.Scalar("receive"+typeName(t.Name)))
	yamlnode.Set(op, "tags", yamlnode.List([]string{"Events"}))
	yamlnode.Set(op, "summary", yamlnode.Scalar("Receive "+t.Name))
	yamlnode.Set(op, "description", yamlnode.Scalar(fmt.Sprintf("%s Requires `%s`.", t.Description, t.Scope)))
	yamlnode.Set(op, "parameters", headers)
	yamlnode.Set(media, "schema", yamlnode.Reference("schemas", typeName(t.Name)))
	yamlnode.Set(content, "application/json", media)
	yamlnode.Set(body, "required", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	yamlnode.Set(body, "content", content)
	yamlnode.Set(op, "requestBody", body)
	yamlnode.Set(responses, "2XX", yamlnode.Reference("responses", "Received"))
	yamlnode.Set(responses, "410", yamlnode.Reference("responses", "Gone"))
	yamlnode.Set(op, "responses", responses)
	return op
}
