package contract

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Body is a request's body, parsed once, with the parts that the contract uses.
type Body struct {
	root *node
	nul  []failure // strings and keys, known or unknown, that contain a NUL character
}

// Empty returns the body of a request without one, for operations where it is optional.
func Empty() *Body { return &Body{root: &node{kind: objectKind}} }

// Parse returns ErrMalformed unless body is exactly one I-JSON object (RFC 7493): UTF-8, no repeated names, at most 64 levels deep.
// Values that validation does not need are checked but not stored: 1 MiB of zeros would be half a million values.
func (op *Operation) Parse(body []byte) (*Body, error) {
	defer reserveParser(len(body))()
	t, err := start(body)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: t, src: string(body)}
	root := &node{kind: objectKind}
	if root.children, err = p.children(objectKind, op.shape); err != nil {
		return nil, err
	}
	return &Body{root, p.nul}, t.end()
}

// node is a parsed JSON value. Unlike a map, it preserves the order of its members.
type node struct {
	kind     jsontext.Kind
	key      string // inside an object
	text     string // the characters of a string, the digits of a number as written
	children []node
	places   map[string]int // of the children by key, filled on first use
}

type parser struct {
	*tokens
	src   string // a copy of body; strings are slices of it
	stack []node // children of the values that are not closed yet
	nul   []failure
}

func (p *parser) children(parent jsontext.Kind, s *shape) ([]node, error) {
	mark := len(p.stack)
	for {
		kind, raw, err := p.next()
		if err != nil {
			return nil, err
		}
		if kind == objectEnd || kind == arrayEnd {
			break
		}
		child, sub := node{kind: kind}, s.item()
		if parent == objectKind {
			child.key = p.text(raw, "The key: must not contain the NUL character.")
			sub = s.member(child.key)
			if child.kind, raw, err = p.next(); err != nil {
				return nil, err
			}
		}
		if err := p.fill(&child, raw, sub); err != nil {
			return nil, err
		}
		if s.needs(child.key, len(p.stack)-mark) {
			p.stack = append(p.stack, child)
		}
	}
	out := slices.Clone(p.stack[mark:])
	p.stack = p.stack[:mark]
	return out, nil
}

// fill reads the rest of a value after its first token.
func (p *parser) fill(n *node, raw []byte, s *shape) (err error) {
	switch n.kind {
	case objectKind, arrayKind:
		n.children, err = p.children(n.kind, s)
	case stringKind:
		n.text = p.text(raw, "Must not contain the NUL character.")
	case numberKind:
		n.text = p.cut(raw, 0)
	default: // the kind is the whole value
	}
	return err
}

// text returns the string that was read last. It records nul as a failure if the string contains a NUL character.
func (p *parser) text(raw []byte, nul string) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return p.cut(raw, 1)
	}
	s := string(unquote(raw))
	if strings.IndexByte(s, 0) >= 0 && len(p.nul) < maxFields {
		p.nul = append(p.nul, failure{slices.Collect(p.dec.StackPointer().Tokens()), nul})
	}
	return s
}

// cut returns the token that was read last, without the given number of bytes at both ends.
func (p *parser) cut(raw []byte, quotes int) string {
	end := int(p.dec.InputOffset())
	return p.src[end-len(raw)+quotes : end-quotes]
}

// find returns the child with a key and its index. If there is none, the index is the number of children.
func (n *node) find(key string) (int, *node) {
	if n == nil {
		return 0, nil
	}
	if n.places == nil {
		n.places = make(map[string]int, len(n.children))
		for i := range n.children {
			n.places[n.children[i].key] = i
		}
	}
	if i, ok := n.places[key]; ok {
		return i, &n.children[i]
	}
	return len(n.children), nil
}

func (n *node) index(i int) *node {
	if n == nil || i < 0 || i >= len(n.children) {
		return nil
	}
	return &n.children[i]
}

// literal returns the text of a value that is neither a string nor an object or array.
func (n *node) literal() string {
	switch n.kind {
	case numberKind:
		return n.text
	case nullKind:
		return "null"
	case jsontext.KindTrue:
		return "true"
	default:
		return "false"
	}
}

// instance converts the value to the form that the validator requires.
func (n *node) instance(s *shape) any {
	switch n.kind {
	case objectKind:
		return n.object(s)
	case arrayKind:
		list := make([]any, len(n.children))
		for i := range n.children {
			list[i] = n.children[i].instance(s.item())
		}
		return list
	case stringKind:
		return n.text
	case numberKind:
		return boundNumber(json.Number(n.text))
	case nullKind:
		return nil
	default:
		return n.kind == jsontext.KindTrue
	}
}

// object returns the members that the contract declares, or all of them if it declares none.
func (n *node) object(s *shape) map[string]any {
	m := make(map[string]any, len(n.children))
	for i := range n.children {
		c := &n.children[i]
		if s.declares(c.key) {
			m[c.key] = c.instance(s.member(c.key))
		}
	}
	return m
}

// boundNumber prevents the validator from computing with numbers that have a million digits. The replacement has the same sign and
// type and is outside every bound that a contract sets.
func boundNumber(n json.Number) json.Number {
	const huge = "99999999999999999999999999999999999999999"
	if len(n) <= len(huge) && !strings.ContainsAny(string(n), "eE") {
		return n
	}
	if f, err := strconv.ParseFloat(string(n), 64); err == nil && f > -1e40 && f < 1e40 {
		if strings.ContainsAny(string(n), ".eE") {
			return json.Number(strconv.FormatFloat(f, 'e', -1, 64)) // so it stays a non-integer
		}
		return n
	}
	sign := strings.TrimRight(string(n[:1]), "0123456789")
	if strings.ContainsAny(string(n), ".eE") {
		return json.Number(sign + huge + ".0")
	}
	return json.Number(sign + huge)
}
