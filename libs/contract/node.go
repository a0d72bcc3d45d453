package contract

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Body is the one parse of a request's body, as far as the contract has a use for it.
type Body struct {
	root *node
	nul  []failure // texts and keys, known or not, that hold the NUL character
}

// Empty is the body of a request without one, where one is optional.
func Empty() *Body { return &Body{root: &node{kind: objectKind}} }

// Parse returns ErrMalformed unless body is exactly one I-JSON object (RFC 7493), nested at most 64 deep: UTF-8,
// and no object repeats a name. What no validation will look at is checked and not kept: 1 MiB of zeros would be
// half a million values.
func (op *Operation) Parse(body []byte) (*Body, error) {
	defer turn(len(body))()
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
		if s.keeps(child.key, len(p.stack)-mark) {
			p.stack = append(p.stack, child)
		}
	}
	out := slices.Clone(p.stack[mark:])
	p.stack = p.stack[:mark]
	return out, nil
}

// fill reads what follows the first token of a value.
func (p *parser) fill(n *node, raw []byte, s *shape) (err error) {
	switch n.kind {
	case objectKind, arrayKind:
		n.children, err = p.children(n.kind, s)
	case stringKind:
		n.text = p.text(raw, "Must not contain the NUL character.")
	case numberKind:
		n.text = p.cut(raw, 0)
	default: // its kind says all
	}
	return err
}

// text returns the string that was read last, and notes nul where it holds that character.
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
		list := make([]any, len(n.children))
		for i := range n.children {
			list[i] = n.children[i].instance(s.item())
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
	m := make(map[string]any, len(n.children))
	for i := range n.children {
		c := &n.children[i]
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
