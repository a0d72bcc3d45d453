package contract

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

type nodeKind uint8

const (
	leaf nodeKind = iota
	object
	array
)

// node is a parsed JSON value that remembers what a map forgets: order, duplicates and the bytes.
type node struct {
	kind     nodeKind
	key      string // inside an object
	value    any    // of a leaf
	raw      []byte
	rawKey   []byte
	children []*node
	places   map[string]int // of the last child with a key, made on first use
}

// parse reads a body that CheckJSON accepted. json.Decoder's tokens would cost four times as much; on
// valid JSON a scanner has nothing to decide.
func parse(body []byte) (*node, error) {
	if !json.Valid(body) {
		return nil, ErrMalformed
	}
	p := parser{body: body}
	return p.value()
}

type parser struct {
	body []byte
	at   int
	slab []node
}

// next skips white space and separators, and returns the byte it stands on.
func (p *parser) next() byte {
	for strings.IndexByte(" \t\r\n,:", p.body[p.at]) >= 0 {
		p.at++
	}
	return p.body[p.at]
}

func (p *parser) node() *node {
	if len(p.slab) == 0 {
		p.slab = make([]node, 16)
	}
	n := &p.slab[0]
	p.slab = p.slab[1:]
	return n
}

func (p *parser) value() (*node, error) {
	n := p.node()
	var err error
	first := p.next()
	start := p.at
	switch first {
	case '{', '[':
		n.kind = array
		if first == '{' {
			n.kind = object
		}
		err = p.fill(n)
	case '"':
		n.value, err = p.text()
	default:
		n.value = p.literal()
	}
	n.raw = p.body[start:p.at]
	return n, err
}

func (p *parser) fill(n *node) error {
	p.at++
	for c := p.next(); c != '}' && c != ']'; c = p.next() {
		var key string
		start := p.at
		if n.kind == object {
			var err error
			if key, err = p.text(); err != nil {
				return err
			}
		}
		rawKey := p.body[start:p.at]
		child, err := p.value()
		if err != nil {
			return err
		}
		child.key, child.rawKey = key, rawKey
		n.children = append(n.children, child)
	}
	p.at++
	return nil
}

// text reads a string.
func (p *parser) text() (string, error) {
	start, escaped := p.at, false
	for p.at++; p.body[p.at] != '"'; p.at++ {
		if p.body[p.at] == '\\' {
			escaped = true
			p.at++
		}
	}
	p.at++
	raw := p.body[start:p.at]
	if !escaped {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", ErrMalformed.With(err)
	}
	return s, nil
}

// literal reads a number, true, false or null.
func (p *parser) literal() any {
	start := p.at
	for p.at < len(p.body) && strings.IndexByte(" \t\r\n,]}", p.body[p.at]) < 0 {
		p.at++
	}
	switch s := string(p.body[start:p.at]); s {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	default:
		return json.Number(s)
	}
}

// find returns the last child of a key with its place; a place behind all when there is none.
func (n *node) find(key string) (int, *node) {
	if n == nil {
		return 0, nil
	}
	if n.places == nil {
		n.places = make(map[string]int, len(n.children))
		for i, c := range n.children {
			n.places[c.key] = i
		}
	}
	if i, ok := n.places[key]; ok {
		return i, n.children[i]
	}
	return len(n.children), nil
}

func (n *node) index(i int) *node {
	if n == nil || i < 0 || i >= len(n.children) {
		return nil
	}
	return n.children[i]
}

// instance is the value as the validator takes it. Of a key given twice, the last counts where the contract
// names the properties; elsewhere (metadata) all are kept under stand-in keys, since all will be stored.
type instance struct{ standIns map[string]string }

func (in *instance) of(n *node, s *shape) any {
	switch n.kind {
	case object:
		return in.object(n, s)
	case array:
		children := s.enough(n.children)
		list := make([]any, len(children))
		for i, c := range children {
			list[i] = in.of(c, s.item())
		}
		return list
	default:
		if num, ok := n.value.(json.Number); ok {
			return tame(num)
		}
		return n.value
	}
}

func (in *instance) object(n *node, s *shape) map[string]any {
	if s.closed() {
		m := make(map[string]any, len(s.names))
		for _, c := range n.children {
			if s.strict || s.props[c.key] != nil {
				m[c.key] = in.of(c, s.member(c.key))
			}
		}
		return m
	}
	children := s.enough(n.children)
	m := make(map[string]any, len(children))
	for _, c := range children {
		key := c.key
		if _, taken := m[key]; taken {
			key = in.standIn(key)
		}
		m[key] = in.of(c, s.member(c.key))
	}
	return m
}

// standIn makes a key of the same length that no client sends: private-use characters of plane 15. The
// first of several empty keys stays, so that a minimum length still sees it.
func (in *instance) standIn(key string) string {
	if in.standIns == nil {
		in.standIns = map[string]string{}
	}
	_, size := utf8.DecodeRuneInString(key)
	alias := string(rune(0xF0000+len(in.standIns)%0xFFFE)) + key[size:]
	in.standIns[alias] = key
	return alias
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

// forbidden returns what is wrong with a text whatever its schema says, "" when nothing is. raw is the
// literal with its quotes.
func forbidden(raw []byte, s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		return "Must not contain the NUL character."
	}
	if bytes.Contains(raw, []byte(`\u`)) && strings.ContainsRune(s, utf8.RuneError) && loneSurrogate(raw) {
		return "Must not contain an unpaired surrogate."
	}
	return ""
}

// loneSurrogate finds half a pair of \uD800–\uDFFF: JSON can spell it, UTF-8 and the database cannot.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		c := hex4(raw[i+1:])
		i += 4
		switch {
		case c >= 0xDC00 && c <= 0xDFFF:
			return true
		case c < 0xD800 || c > 0xDBFF:
			continue
		case raw[i+1] != '\\' || raw[i+2] != 'u': // the closing quote is there at least
			return true
		}
		if low := hex4(raw[i+3:]); low < 0xDC00 || low > 0xDFFF {
			return true
		}
		i += 6
	}
	return false
}

func hex4(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return 0
	}
	return n
}
