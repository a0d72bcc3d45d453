package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const docURL = "contract://openapi"

var methods = []string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodHead, http.MethodOptions,
}

// loader holds the document twice: as YAML nodes, which keep the property order, and inside the compiler.
type loader struct {
	service  string // of an internal document
	root     *yaml.Node
	compiler *jsonschema.Compiler
	shapes   map[*yaml.Node]*shape
	masks    map[*yaml.Node]*mask
}

func newLoader(doc []byte) (*loader, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(doc, &top); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if top.Kind != yaml.DocumentNode || len(top.Content) != 1 || top.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the document is not a mapping")
	}
	value, err := plain(top.Content[0])
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
	return &loader{root: top.Content[0], compiler: c, shapes: map[*yaml.Node]*shape{}, masks: map[*yaml.Node]*mask{}}, nil
}

// plain converts a node to what a JSON decoder returns. Dates stay text.
func plain(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for key, value := range pairs(n) {
			v, err := plain(value)
			if err != nil {
				return nil, err
			}
			m[key] = v
		}
		for _, key := range byService(m) {
			delete(m, key)
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

// byService lists the keywords of a schema that the service checks itself, with its own messages (x-checked-by-service).
func byService(schema map[string]any) []string {
	list, _ := schema["x-checked-by-service"].([]any)
	var names []string
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
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

// pairs iterates over a mapping in the order of the document.
func pairs(n *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

func child(n *yaml.Node, key string) *yaml.Node {
	for k, v := range pairs(n) {
		if k == key {
			return v
		}
	}
	return nil
}

func text(n *yaml.Node, key string) string {
	if v := child(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// follow resolves $ref and returns the target and its JSON pointer. Only references within the document are supported.
func (l *loader) follow(n *yaml.Node, pointer string) (*yaml.Node, string, error) {
	for range 32 {
		ref := text(n, "$ref")
		if ref == "" {
			return n, pointer, nil
		}
		target := l.root
		for seg := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			target = child(target, strings.NewReplacer("~1", "/", "~0", "~").Replace(seg))
		}
		if target == nil || !strings.HasPrefix(ref, "#/") {
			return nil, "", fmt.Errorf("line %d: cannot resolve $ref %q", n.Line, ref)
		}
		n, pointer = target, strings.TrimPrefix(ref, "#")
	}
	return nil, "", fmt.Errorf("line %d: $ref refers to itself", n.Line)
}

// alternatives calls each with every schema of allOf, oneOf and anyOf.
func (l *loader) alternatives(n *yaml.Node, each func(alt *yaml.Node) error) error {
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		list := child(n, key)
		if list == nil {
			continue
		}
		for _, alt := range list.Content {
			alt, _, err := l.follow(alt, "")
			if err != nil {
				return err
			}
			if err := each(alt); err != nil {
				return err
			}
		}
	}
	return nil
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
	for path, item := range pairs(child(l.root, "paths")) {
		base := "/paths/" + escape(path)
		for key, node := range pairs(item) {
			method := strings.ToUpper(key)
			if !known(method) {
				continue
			}
			op := &Operation{Method: method, Path: path}
			if err := l.fill(op, item, node, base, base+"/"+key); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			out = append(out, op)
		}
	}
	return out, nil
}

func known(method string) bool {
	for _, m := range methods {
		if m == method {
			return true
		}
	}
	return false
}

func escape(seg string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(seg) }

func (l *loader) fill(op *Operation, item, node *yaml.Node, itemPtr, ptr string) error {
	if err := op.identify(item, node, l.service); err != nil {
		return err
	}
	for seg := range strings.SplitSeq(op.Path, "/") {
		if isParam(seg) {
			op.PathParams = append(op.PathParams, paramName(seg))
		}
	}
	if err := op.responses(child(node, "responses")); err != nil {
		return err
	}
	for _, from := range []struct {
		node *yaml.Node
		ptr  string
	}{{item, itemPtr}, {node, ptr}} {
		if err := l.parameters(op, child(from.node, "parameters"), from.ptr+"/parameters"); err != nil {
			return err
		}
	}
	if err := l.answer(op, child(child(node, "responses"), strconv.Itoa(op.Success))); err != nil {
		return err
	}
	return l.requestBody(op, child(node, "requestBody"), ptr+"/requestBody")
}

// answer finds out whether the 2xx answer holds a person's data. That of an internal call is stored nowhere.
func (l *loader) answer(op *Operation, node *yaml.Node) error {
	if l.service != "" {
		return nil
	}
	node, _, err := l.follow(node, "")
	if err != nil {
		return err
	}
	schema := child(child(child(node, "content"), "application/json"), "schema")
	if schema == nil {
		return nil
	}
	m, err := l.mask(schema)
	if err != nil {
		return err
	}
	expands := slices.ContainsFunc(op.params, func(p *parameter) bool { return p.name == "expand" })
	op.Personal = m.holds(expands, map[*mask]bool{})
	return l.columns(op, child(child(node, "content"), "text/csv"), schema)
}

func (l *loader) requestBody(op *Operation, node *yaml.Node, ptr string) error {
	if node == nil {
		return nil
	}
	node, ptr, err := l.follow(node, ptr)
	if err != nil {
		return err
	}
	schema := child(child(child(node, "content"), "application/json"), "schema")
	if schema == nil {
		return errors.New("the body has no application/json schema")
	}
	ptr += "/content/application~1json/schema"
	op.HasBody, op.BodyRequired = true, text(node, "required") == "true"
	if op.body, err = l.compile(ptr); err != nil {
		return err
	}
	op.shape, err = l.shape(schema)
	return err
}
