package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/yamldoc"
)

const docURL = "contract://openapi"

// loader holds the document twice: as YAML nodes, which keep the property order, and inside the compiler.
type loader struct {
	*yamldoc.Document

	service  string // the service of an internal document
	direct   bool   // clients reach it without the gateway
	compiler *jsonschema.Compiler
	shapes   map[*yaml.Node]*shape
	masks    map[*yaml.Node]*mask
}

func newLoader(doc []byte) (*loader, error) {
	parsed, err := yamldoc.Parse(doc)
	if err != nil {
		return nil, err
	}
	value, err := plain(parsed.Root)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for _, f := range formats {
		c.RegisterFormat(f)
	}
	c.RegisterVocabulary(strictness)
	c.AssertVocabs()
	if err := c.AddResource(docURL, value); err != nil {
		return nil, fmt.Errorf("add document: %w", err)
	}
	return &loader{
		Document: parsed, compiler: c, shapes: map[*yaml.Node]*shape{}, masks: map[*yaml.Node]*mask{},
	}, nil
}

// plain converts a node to the value that a JSON decoder returns. Dates stay strings.
func plain(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for key, value := range yamldoc.Pairs(n) {
			v, err := plain(value)
			if err != nil {
				return nil, err
			}
			m[key] = v
		}
		if own, ok := m["x-format"]; ok {
			m["format"] = own
		}
		// The exact form, where the document has one that more tools can read.
		if exact, ok := m["x-validate"].(map[string]any); ok {
			maps.Copy(m, exact)
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := plain(item)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.ScalarNode:
		return scalar(n)
	default:
		return nil, fmt.Errorf("line %d: anchors and aliases are not supported", n.Line)
	}
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!int", "!!float":
		return json.Number(n.Value), nil
	case "!!bool", "!!null":
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		return v, nil
	default:
		return n.Value, nil
	}
}

func (l *loader) compile(pointer string) (*jsonschema.Schema, error) {
	s, err := l.compiler.Compile(docURL + "#" + pointer)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", pointer, err)
	}
	return s, nil
}

func (l *loader) operations() ([]*Operation, error) {
	var out []*Operation
	for path, item := range yamldoc.Pairs(yamldoc.Child(l.Root, "paths")) {
		base := "/paths/" + escape(path)
		for key, node := range yamldoc.Pairs(item) {
			if !yamldoc.IsMethod(key) {
				continue
			}
			method := strings.ToUpper(key)
			op := &Operation{Method: method, Path: path}
			if err := l.fill(op, item, node, base, base+"/"+key); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			out = append(out, op)
		}
	}
	return out, nil
}

func escape(seg string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(seg) }

func (l *loader) fill(op *Operation, item, node *yaml.Node, itemPtr, ptr string) error {
	if err := op.identify(item, node, l.service, l.direct); err != nil {
		return err
	}
	for seg := range strings.SplitSeq(op.Path, "/") {
		if isParam(seg) {
			op.PathParams = append(op.PathParams, paramName(seg))
		}
	}
	if err := op.responses(yamldoc.Child(node, "responses")); err != nil {
		return err
	}
	for _, from := range []struct {
		node *yaml.Node
		ptr  string
	}{{item, itemPtr}, {node, ptr}} {
		if err := l.parameters(op, yamldoc.Child(from.node, "parameters"), from.ptr+"/parameters"); err != nil {
			return err
		}
	}
	if err := l.response(op, yamldoc.Child(yamldoc.Child(node, "responses"), strconv.Itoa(op.Success))); err != nil {
		return err
	}
	return l.requestBody(op, yamldoc.Child(node, "requestBody"), ptr+"/requestBody")
}

// response determines the columns of the 2xx response as CSV, and whether it contains personal data. Responses to internal calls are not
// stored.
func (l *loader) response(op *Operation, node *yaml.Node) error {
	if l.service != "" && !l.direct {
		return nil
	}
	node, _, err := l.Follow(node, "")
	if err != nil {
		return err
	}
	schema := yamldoc.Child(yamldoc.Child(yamldoc.Child(node, "content"), "application/json"), "schema")
	if schema == nil {
		return nil
	}
	csv := yamldoc.Child(yamldoc.Child(node, "content"), "text/csv")
	if l.direct {
		return l.columns(op, csv, schema)
	}
	m, err := l.mask(schema)
	if err != nil {
		return err
	}
	expands := slices.ContainsFunc(op.params, func(p *parameter) bool { return p.name == "expand" })
	op.Personal = m.holds(expands, map[*mask]bool{})
	return l.columns(op, csv, schema)
}

func (l *loader) requestBody(op *Operation, node *yaml.Node, ptr string) error {
	if node == nil {
		return nil
	}
	node, ptr, err := l.Follow(node, ptr)
	if err != nil {
		return err
	}
	schema := yamldoc.Child(yamldoc.Child(yamldoc.Child(node, "content"), "application/json"), "schema")
	if schema == nil {
		return errors.New("the body has no application/json schema")
	}
	ptr += "/content/application~1json/schema"
	op.HasBody, op.BodyRequired = true, yamldoc.Text(node, "required") == "true"
	if op.body, err = l.compile(ptr); err != nil {
		return err
	}
	op.shape, err = l.shape(schema)
	return err
}
