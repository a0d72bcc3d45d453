package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/yamldoc"
)

// mask defines which parts of a value erasure removes. The contract marks personal fields with x-personal.
type mask struct {
	empty json.RawMessage // replaces a marked value: null, or the empty value of a type that has no null
	props map[string]maskedProp
	items *mask
}

type maskedProp struct {
	*mask

	expand bool // x-expand: the property exists only when the request expands it
}

// mask reads the marks of a schema.
func (l *loader) mask(n *yaml.Node) (*mask, error) {
	marked := yamldoc.Text(n, "x-personal") == "true"
	n, _, err := l.Follow(n, "")
	if err != nil {
		return nil, err
	}
	if marked || yamldoc.Text(n, "x-personal") == "true" {
		return &mask{empty: l.empty(n)}, nil
	}
	if m := l.masks[n]; m != nil {
		return m, nil
	}
	m := &mask{props: map[string]maskedProp{}}
	l.masks[n] = m // before the children: schemas may be recursive
	return m, l.addMarks(m, n)
}

// addMarks adds the marks of a schema and of its alternatives.
func (l *loader) addMarks(m *mask, n *yaml.Node) error {
	for name, node := range yamldoc.Pairs(yamldoc.Child(n, "properties")) {
		sub, err := l.mask(node)
		if err != nil {
			return err
		}
		if before := m.props[name]; before.mask == nil || before.empty == nil {
			m.props[name] = maskedProp{sub, yamldoc.Text(node, "x-expand") == "true"}
		}
	}
	if items := yamldoc.Child(n, "items"); items != nil && items.Kind == yaml.MappingNode {
		sub, err := l.mask(items)
		if err != nil {
			return err
		}
		m.items = sub
	}
	return l.Alternatives(n, func(alt *yaml.Node) error { return l.addMarks(m, alt) })
}

// empties are the replacements for values of types without null.
var empties = map[string]json.RawMessage{
	"string": json.RawMessage(`""`), "object": json.RawMessage(`{}`), "array": json.RawMessage(`[]`),
	"integer": json.RawMessage(`0`), "number": json.RawMessage(`0`), "boolean": json.RawMessage(`false`),
}

var null = json.RawMessage(`null`)

// empty returns null if the schema allows it, otherwise the empty value of its first type.
func (l *loader) empty(n *yaml.Node) json.RawMessage {
	types := l.types(n)
	for _, t := range types {
		if t == "null" {
			return null
		}
	}
	for _, t := range types {
		if v := empties[t]; v != nil {
			return v
		}
	}
	return null
}

// types returns the types that a schema allows, directly or through its alternatives.
func (l *loader) types(n *yaml.Node) []string {
	n, _, err := l.Follow(n, "")
	if err != nil {
		return nil // the compiler reports it
	}
	var out []string
	if t := yamldoc.Child(n, "type"); t != nil && t.Kind == yaml.SequenceNode {
		for _, one := range t.Content {
			out = append(out, one.Value)
		}
	} else if t != nil {
		out = append(out, t.Value)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if alternatives := yamldoc.Child(n, key); alternatives != nil {
			for _, alt := range alternatives.Content {
				out = append(out, l.types(alt)...)
			}
		}
	}
	return out
}

// kinds returns the masks of all schemas whose property "object" is a constant, the kind.
func (l *loader) kinds() (map[string]*mask, error) {
	out := map[string]*mask{}
	for _, node := range yamldoc.Pairs(yamldoc.Child(yamldoc.Child(l.Root, "components"), "schemas")) {
		kind := yamldoc.Text(yamldoc.Child(yamldoc.Child(node, "properties"), "object"), "const")
		if kind == "" {
			continue
		}
		if out[kind] == nil {
			out[kind] = &mask{props: map[string]maskedProp{}}
		}
		if err := l.addMarks(out[kind], node); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// holds reports whether the value contains personal data. expanded specifies whether properties marked x-expand are present.
func (m *mask) holds(expanded bool, seen map[*mask]bool) bool {
	if m == nil || seen[m] {
		return false
	}
	seen[m] = true
	if m.empty != nil || m.items.holds(expanded, seen) {
		return true
	}
	for _, sub := range m.props {
		if (expanded || !sub.expand) && sub.holds(expanded, seen) {
			return true
		}
	}
	return false
}

// KindOf returns the kind of object that the events of a type are about: the value of the object's property "object".
func KindOf(eventType string) string {
	kind, _, _ := strings.Cut(eventType, ".")
	if kind == "payment" { // payment.succeeded is about the intent
		return "payment_intent"
	}
	return kind
}

// HasPersonal reports whether resources of a kind, the value of their property "object", contain personal data. Properties marked
// x-expand do not count, because no event and no stored response contains them.
func (c *Contract) HasPersonal(kind string) bool { return c.kinds[kind].holds(false, map[*mask]bool{}) }

// Erase returns the body of a resource without the values that the contract marks as personal. The property "object" specifies the
// kind of the body. The order of names does not change.
func (c *Contract) Erase(body []byte) ([]byte, error) {
	var head struct{ Object string }
	if err := json.Unmarshal(body, &head); err != nil {
		return nil, fmt.Errorf("erase: %w", err)
	}
	return c.eraseFields(head.Object, body)
}

// EraseChange is Erase for the state of a resource after a change, and for the previous values of the changed fields.
func (c *Contract) EraseChange(kind string, object, previous []byte) (erased, erasedPrevious []byte, err error) {
	if erased, err = c.eraseFields(kind, object); err != nil {
		return nil, nil, err
	}
	erasedPrevious, err = c.eraseFields(kind, previous)
	return erased, erasedPrevious, err
}

func (c *Contract) eraseFields(kind string, fields []byte) ([]byte, error) {
	out, err := c.kinds[kind].erase(fields)
	if err != nil {
		return nil, fmt.Errorf("erase %s: %w", kind, err)
	}
	return out, nil
}

func (m *mask) erase(value json.RawMessage) (json.RawMessage, error) {
	value = bytes.TrimSpace(value)
	switch {
	case m == nil:
		return value, nil
	case m.empty != nil:
		return m.empty, nil
	case bytes.HasPrefix(value, []byte("{")):
		return m.eraseObject(value)
	case bytes.HasPrefix(value, []byte("[")):
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
		for i, item := range items {
			erased, err := m.items.erase(item)
			if err != nil {
				return nil, err
			}
			items[i] = erased
		}
		return encode(items)
	default:
		return value, nil
	}
}

// eraseObject erases the fields of an object, in their order.
func (m *mask) eraseObject(value json.RawMessage) (json.RawMessage, error) {
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for d.PeekKind() != jsontext.KindEndObject {
		quoted, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, quoted...), ':')
		field, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		erased, err := m.props[string(name)].erase(json.RawMessage(field))
		if err != nil {
			return nil, err
		}
		out = append(out, erased...)
	}
	return append(out, '}'), nil
}

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
