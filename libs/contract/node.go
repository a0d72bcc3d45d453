package contract

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Body is the one parse of a request's body.
type Body struct{ root *node }

// Empty is the body of a request without one, where one is optional.
func Empty() *Body { return &Body{&node{kind: objectKind}} }

// Parse returns ErrMalformed unless body is exactly one I-JSON object (RFC 7493), nested at most 64 deep: UTF-8,
// and no object repeats a name.
func Parse(body []byte) (*Body, error) {
	t, err := start(body)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: t, src: string(body)}
	root := &node{kind: objectKind}
	if root.children, err = p.children(objectKind); err != nil {
		return nil, err
	}
	return &Body{root}, t.end()
}

// Canonical is what the function Canonical returns of the same body.
func (b *Body) Canonical() []byte { return b.root.canonical(nil) }

// node is a parsed JSON value; unlike a map it keeps the order of its members.
type node struct {
	kind     jsontext.Kind
	key      string // inside an object
	text     string // of a string its characters, of a number its digits as written
	children []node
	places   map[string]int // of the children by key, made on first use
}

type parser struct {
	*tokens
	src   string // body once more: texts are cut out of it
	stack []node // children of the values that are open
}

func (p *parser) children(parent jsontext.Kind) ([]node, error) {
	mark := len(p.stack)
	for {
		kind, raw, err := p.next()
		if err != nil {
			return nil, err
		}
		if kind == objectEnd || kind == arrayEnd {
			break
		}
		child := node{kind: kind}
		if parent == objectKind {
			child.key = p.text(raw)
			if child.kind, raw, err = p.next(); err != nil {
				return nil, err
			}
		}
		switch child.kind {
		case objectKind, arrayKind:
			if child.children, err = p.children(child.kind); err != nil {
				return nil, err
			}
		case stringKind:
			child.text = p.text(raw)
		case numberKind:
			child.text = p.cut(raw, 0)
		default: // its kind says all
		}
		p.stack = append(p.stack, child)
	}
	out := slices.Clone(p.stack[mark:])
	p.stack = p.stack[:mark]
	return out, nil
}

func (p *parser) text(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return p.cut(raw, 1)
	}
	return string(unquote(raw))
}

// cut returns the token that was read last, without so many bytes at both ends.
func (p *parser) cut(raw []byte, quotes int) string {
	end := int(p.dec.InputOffset())
	return p.src[end-len(raw)+quotes : end-quotes]
}

// find returns the child of a key with its place; a place behind all when there is none.
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

func (n *node) canonical(out []byte) []byte {
	switch n.kind {
	case objectKind:
		order := make([]*node, len(n.children))
		for i := range n.children {
			order[i] = &n.children[i]
		}
		slices.SortFunc(order, func(a, b *node) int { return strings.Compare(a.key, b.key) })
		out = append(out, '{')
		for i, c := range order {
			if i > 0 {
				out = append(out, ',')
			}
			out = c.canonical(append(append(out, marshal(c.key)...), ':'))
		}
		return append(out, '}')
	case arrayKind:
		out = append(out, '[')
		for i := range n.children {
			if i > 0 {
				out = append(out, ',')
			}
			out = n.children[i].canonical(out)
		}
		return append(out, ']')
	case stringKind:
		return append(out, marshal(n.text)...)
	default:
		return append(out, n.literal()...)
	}
}

// literal is a value that is neither text nor has members.
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

// instance is the value as the validator takes it.
func (n *node) instance(s *shape) any {
	switch n.kind {
	case objectKind:
		return n.object(s)
	case arrayKind:
		children := s.enough(n.children)
		list := make([]any, len(children))
		for i := range children {
			list[i] = children[i].instance(s.item())
		}
		return list
	case stringKind:
		return n.text
	case numberKind:
		return tame(json.Number(n.text))
	case nullKind:
		return nil
	default:
		return n.kind == jsontext.KindTrue
	}
}

// object has the known members where the contract names them, else all.
func (n *node) object(s *shape) map[string]any {
	children := n.children
	if !s.closed() {
		children = s.enough(children)
	}
	m := make(map[string]any, min(len(children), maxFields))
	for i := range children {
		c := &children[i]
		if !s.closed() || s.strict || s.props[c.key] != nil {
			m[c.key] = c.instance(s.member(c.key))
		}
	}
	return m
}

// tame keeps the validator from computing with numbers of a million digits; the stand-in has the same sign
// and type and is out of every bound that a contract sets.
func tame(n json.Number) json.Number {
	const huge = "99999999999999999999999999999999999999999"
	if len(n) <= len(huge) && !strings.ContainsAny(string(n), "eE") {
		return n
	}
	if f, err := strconv.ParseFloat(string(n), 64); err == nil && f > -1e40 && f < 1e40 {
		if strings.ContainsAny(string(n), ".eE") {
			return json.Number(strconv.FormatFloat(f, 'e', -1, 64)) // keeps the mark of a non-integer
		}
		return n
	}
	sign := strings.TrimRight(string(n[:1]), "0123456789")
	if strings.ContainsAny(string(n), ".eE") {
		return json.Number(sign + huge + ".0")
	}
	return json.Number(sign + huge)
}
