package contract

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/yamldoc"
)

// shape stores what the validator drops from a schema: the order of its properties. Alternatives (oneOf, anyOf, allOf) are merged.
type shape struct {
	names     []string
	props     map[string]*prop
	items     *shape
	extra     *shape // additionalProperties
	limit     int    // maxItems or maxProperties, the larger one; 0 if there is none
	unbounded bool   // an alternative has neither
	strict    bool   // a rule also reads unknown properties
	open      bool   // a rule limits unknown properties
	parent    bool   // the value may be an object or an array
	whole     bool   // additionalProperties is true: the value is stored as sent, to any depth
	hint      string // x-message: the error text when pattern fails
}

type prop struct {
	index int
	shape *shape
}

func (l *loader) shape(n *yaml.Node) (*shape, error) {
	n, _, err := l.Follow(n, "")
	if err != nil {
		return nil, err
	}
	if s := l.shapes[n]; s != nil {
		return s, nil
	}
	s := &shape{props: map[string]*prop{}}
	l.shapes[n] = s // before the children: schemas may be recursive
	return s, l.lay(s, n)
}

func (l *loader) lay(s *shape, n *yaml.Node) error {
	if m := yamldoc.Text(n, "x-message"); m != "" {
		s.hint = m
	}
	for _, key := range []string{"maxItems", "maxProperties"} {
		if limit, err := strconv.Atoi(yamldoc.Text(n, key)); err == nil {
			s.limit = max(s.limit, limit)
		}
	}
	for _, key := range []string{"additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties"} {
		s.strict = s.strict || yamldoc.Child(n, key) != nil
	}
	s.types(n)
	s.whole = s.whole || yamldoc.Text(n, "additionalProperties") == "true"
	s.open = s.open || yamldoc.Child(n, "additionalProperties") != nil || yamldoc.Child(n, "patternProperties") != nil
	for name, node := range yamldoc.Pairs(yamldoc.Child(n, "properties")) {
		sub, err := l.shape(node)
		if err != nil {
			return err
		}
		if s.props[name] == nil {
			s.props[name] = &prop{index: len(s.names), shape: sub}
			s.names = append(s.names, name)
		}
	}
	for key, to := range map[string]**shape{"items": &s.items, "additionalProperties": &s.extra} {
		node := yamldoc.Child(n, key)
		if node == nil || node.Kind != yaml.MappingNode || *to != nil {
			continue
		}
		sub, err := l.shape(node)
		if err != nil {
			return err
		}
		*to = sub
	}
	return l.Alternatives(n, func(alt *yaml.Node) error { return l.lay(s, alt) })
}

// types records whether a value can have children according to its types. A schema without a type can.
func (s *shape) types(n *yaml.Node) {
	t := yamldoc.Child(n, "type")
	if t == nil {
		s.parent = true
		return
	}
	for _, one := range append(t.Content, t) {
		if bound, ok := map[string]string{"object": "maxProperties", "array": "maxItems"}[one.Value]; ok {
			s.parent = true
			s.unbounded = s.unbounded || yamldoc.Child(n, bound) == nil
		}
	}
}

// needs reports whether another child of a value is needed when before children are already stored. Children beyond the contract's
// bound are not needed, except those that are required to report the excess and a hundred errors. Without a bound, all are needed.
// A value that must not have children needs none.
func (s *shape) needs(key string, before int) bool {
	switch {
	case s == nil || !s.parent:
		return false
	case s.whole:
		return true
	case s.closed():
		return s.props[key] != nil || before < len(s.names)+maxFields
	default:
		return s.limit == 0 || s.unbounded || before < s.limit+maxFields
	}
}

// closed reports whether the shape declares its properties. Other objects, such as metadata, are stored as sent.
func (s *shape) closed() bool { return s != nil && len(s.names) > 0 }

// declares reports whether a property is a part of the value for the validator: whether the contract has it, or has a rule for all.
func (s *shape) declares(name string) bool { return !s.closed() || s.strict || s.props[name] != nil }

// member returns the shape of a property, or nil if the contract has no such property.
func (s *shape) member(name string) *shape {
	if s == nil {
		return nil
	}
	if p := s.props[name]; p != nil {
		return p.shape
	}
	if s.whole {
		return s
	}
	return s.extra
}

func (s *shape) item() *shape {
	if s == nil || s.whole {
		return s
	}
	return s.items
}

// at returns the shape at a path, or nil if the contract has no such path.
func (s *shape) at(path []string) *shape {
	for _, seg := range path {
		if s == nil {
			return nil
		}
		if s.items != nil && isIndex(seg) && s.props[seg] == nil {
			s = s.items
			continue
		}
		s = s.member(seg)
	}
	return s
}

func isIndex(seg string) bool {
	_, err := strconv.ParseUint(seg, 10, 31)
	return err == nil
}

const unlisted = 1 << 20

// rank orders paths by the contract's property order, then by the order in which the client sent them.
func (s *shape) rank(sent *node, path []string) []int {
	out := make([]int, 0, len(path))
	for _, seg := range path {
		switch {
		case sent != nil && sent.kind == arrayKind:
			i, _ := strconv.Atoi(seg)
			out = append(out, i)
			sent, s = sent.index(i), s.item()
		case s != nil && s.props[seg] != nil:
			out = append(out, s.props[seg].index)
			_, sent = sent.find(seg)
			s = s.member(seg)
		default:
			i, next := sent.find(seg)
			out = append(out, unlisted+i)
			sent, s = next, s.member(seg)
		}
	}
	return out
}
