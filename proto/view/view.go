// Package view derives the documents that the gateway serves from the whole contract, which our own programs read: the contract for
// tools of others, a smaller contract for generators of clients, the webhooks, and the text of the API reference.
package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto/yamlnode"
)

// Documents are the served documents. Each is a mapping.
type Documents struct {
	Contract  *yaml.Node // every response, header and code of every operation
	SDK       *yaml.Node // for generators of clients: one default error, no response headers, no CSV, metadata as a map
	Webhooks  *yaml.Node // the requests that receivers get
	Reference *yaml.Node // for the page of the API reference: the errors are part of the descriptions, and addresses are relative
}

// New derives the documents from the whole contract. address is the URL of the platform, without a path.
func New(contract []byte, address string) (d Documents, err error) {
	var top yaml.Node
	if err := yaml.Unmarshal(contract, &top); err != nil {
		return d, fmt.Errorf("read contract: %w", err)
	}
	if len(top.Content) == 0 || top.Content[0].Kind != yaml.MappingNode {
		return d, errors.New("read contract: it is not a mapping")
	}
	doc := top.Content[0]
	doc.Content[0].HeadComment = ""
	withoutPrivateKeys(doc)
	d.Reference = reference(yamlnode.Clone(doc))
	locate(doc, strings.TrimSuffix(address, "/"))
	if d.Contract, err = public(doc); err != nil {
		return d, err
	}
	d.SDK = sdk(yamlnode.Clone(d.Contract))
	d.Webhooks, err = webhooks(d.Contract)
	return d, err
}

// public is the contract for tools of others: responses have open enumerations and typed events.
func public(doc *yaml.Node) (*yaml.Node, error) {
	if err := openEnums(doc); err != nil {
		return nil, err
	}
	inlineTexts(doc)
	return doc, typeEvents(doc)
}

// inlineTexts replaces the references of a union of a text and an object to the text by the text. The generator typescript-fetch makes
// conversions that do not compile from a reference.
func inlineTexts(doc *yaml.Node) {
	schemas := yamlnode.Get(doc, "components", "schemas")
	inlined := map[string]bool{}
	for _, schema := range yamlnode.Pairs(schemas) {
		branches := yamlnode.Get(schema, "oneOf")
		if branches == nil {
			continue
		}
		for _, branch := range branches.Content {
			name := yamlnode.Referred(branch)
			if text := yamlnode.Get(schemas, name); text != nil && yamlnode.Text(text, "type") == "string" {
				*branch = *yamlnode.Clone(text)
				inlined[name] = true
			}
		}
	}
	for name := range inlined {
		if !refersTo(doc, schemaRef+name) {
			yamlnode.Remove(schemas, name)
		}
	}
}

// refersTo reports whether a part of a document refers to a component.
func refersTo(n *yaml.Node, reference string) bool {
	return n.Value == reference || slices.ContainsFunc(n.Content, func(child *yaml.Node) bool { return refersTo(child, reference) })
}

// withoutPrivateKeys removes the keys that only our generator of Go types and our validator read.
func withoutPrivateKeys(n *yaml.Node) {
	var retained []*yaml.Node
	for key, value := range yamlnode.Pairs(n) {
		if !strings.HasPrefix(key, "x-go-") && key != "x-validate" && key != "x-aliases" {
			retained = append(retained, yamlnode.Scalar(key), value)
		}
	}
	if n.Kind == yaml.MappingNode {
		n.Content = retained
	}
	for _, child := range n.Content {
		withoutPrivateKeys(child)
	}
}

// locate makes addresses absolute, because tools read the document without knowing where it is from.
func locate(doc *yaml.Node, address string) {
	at := func(n *yaml.Node, keys ...string) {
		for _, key := range keys {
			if url := yamlnode.Get(n, key); url != nil && strings.HasPrefix(url.Value, "/") {
				url.Value = address + url.Value
			}
		}
	}
	if servers := yamlnode.Get(doc, "servers"); servers != nil {
		for _, server := range servers.Content {
			at(server, "url")
		}
	}
	at(yamlnode.Get(doc, "externalDocs"), "url")
	for _, scheme := range yamlnode.Pairs(yamlnode.Get(doc, "components", "securitySchemes")) {
		for _, flow := range yamlnode.Pairs(yamlnode.Get(scheme, "flows")) {
			at(flow, "authorizationUrl", "tokenUrl", "refreshUrl")
		}
	}
	locateLinks(doc, address)
}

func locateLinks(n *yaml.Node, address string) {
	n.Value = strings.ReplaceAll(n.Value, "](/", "]("+address+"/")
	for _, child := range n.Content {
		locateLinks(child, address)
	}
}

// YAML returns a document as YAML.
func YAML(doc *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(doc), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write document: %w", err)
	}
	return out.Bytes(), nil
}

// JSON returns a document as JSON. Names are in the order of the document.
func JSON(doc *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	if err := writeJSON(&out, doc); err != nil {
		return nil, fmt.Errorf("write document: %w", err)
	}
	return out.Bytes(), nil
}

func writeJSON(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		separator := "{"
		for key, value := range yamlnode.Pairs(n) {
			out.WriteString(separator)
			if err := writeText(out, key); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := writeJSON(out, value); err != nil {
				return err
			}
			separator = ","
		}
		out.WriteString(strings.TrimSuffix(separator, ",") + "}")
	case yaml.SequenceNode:
		separator := "["
		for _, item := range n.Content {
			out.WriteString(separator)
			if err := writeJSON(out, item); err != nil {
				return err
			}
			separator = ","
		}
		out.WriteString(strings.TrimSuffix(separator, ",") + "]")
	default:
		return writeScalar(out, n)
	}
	return nil
}

func writeScalar(out *bytes.Buffer, n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!null":
		var value any
		if err := n.Decode(&value); err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		text, err := json.Marshal(value)
		out.Write(text)
		return err
	default: // also dates, which are texts in JSON
		return writeText(out, n.Value)
	}
}

func writeText(out *bytes.Buffer, text string) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(text)
	out.Truncate(len(bytes.TrimSuffix(out.Bytes(), []byte{'\n'})))
	return err
}
