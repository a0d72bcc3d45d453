package contract

import (
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// rule accepts values that certainly satisfy a schema, several times faster than the validator and without a copy of the value. It
// never rejects one: the validator has the last word on what a rule does not accept, and it alone finds the errors.
type rule struct {
	unknown  bool     // the schema has a keyword that rules do not know: nothing is accepted
	kinds    kindSet  // 0: all
	enum     []string // nil: all strings; other values are never accepted with one
	text     textRule
	number   numberRule
	array    arrayRule
	object   objectRule
	all      []*rule // all must accept the value
	branches []*rule // of oneOf: they have different kinds, so at most one can match
	any      []*rule // of anyOf: one must accept the value
}

type textRule struct {
	min, max int // in characters; a max of -1: no bound
	pattern  jsonschema.Regexp
	format   *jsonschema.Format
}

type numberRule struct{ min, max *int64 }

type arrayRule struct {
	min, max int // a max of -1: no bound
	items    *rule
}

type objectRule struct {
	min, max int // a max of -1: no bound
	required []string
	names    *rule // propertyNames; nil: all
	props    map[string]*rule
	closed   bool  // further properties are not accepted
	extra    *rule // for further properties; nil: all
}

// rule returns the rule of a schema.
func (l *loader) rule(s *jsonschema.Schema) *rule {
	if known, ok := l.rules[s]; ok {
		return known
	}
	r := &rule{}
	l.rules[s] = r // before the children: schemas may be recursive
	r.kinds = kindsOf(s.Types)
	r.unknown = !l.build(r, s)
	return r
}

// plainSchema reports whether a schema has no keyword that rules do not know.
func plainSchema(s *jsonschema.Schema) bool {
	return s.Bool == nil && s.DraftVersion >= 2019 && s.RecursiveRef == nil && s.DynamicRef == nil && s.Const == nil && s.Not == nil &&
		s.If == nil && s.PatternProperties == nil && s.Dependencies == nil && s.DependentRequired == nil && s.DependentSchemas == nil &&
		s.UnevaluatedProperties == nil && !s.UniqueItems && s.Contains == nil && s.Items == nil && s.AdditionalItems == nil &&
		s.PrefixItems == nil && s.UnevaluatedItems == nil && s.ContentEncoding == nil && s.ContentMediaType == nil && s.ContentSchema == nil &&
		s.ExclusiveMaximum == nil && s.ExclusiveMinimum == nil && s.MultipleOf == nil
}

func (l *loader) build(r *rule, s *jsonschema.Schema) bool {
	if !plainSchema(s) {
		return false
	}
	for _, ext := range s.Extensions {
		if _, known := ext.(*strict); !known { // its integers are those that numberRule accepts, and its names are PropertyNames
			return false
		}
	}
	ok := true
	if s.Enum != nil {
		r.enum = make([]string, len(s.Enum.Values))
		for i, v := range s.Enum.Values {
			var text bool
			r.enum[i], text = v.(string)
			ok = ok && text
		}
	}
	r.text = textRule{min: or(s.MinLength, 0), max: or(s.MaxLength, -1), pattern: s.Pattern, format: s.Format}
	r.number = numberRule{min: whole(s.Minimum, &ok), max: whole(s.Maximum, &ok)}
	r.array = arrayRule{min: or(s.MinItems, 0), max: or(s.MaxItems, -1)}
	if s.Items2020 != nil {
		r.array.items = l.rule(s.Items2020)
	}
	r.object = l.objectRule(s)
	for _, sub := range s.AllOf {
		r.all = append(r.all, l.rule(sub))
	}
	if s.Ref != nil {
		r.all = append(r.all, l.rule(s.Ref))
	}
	for _, sub := range s.AnyOf {
		r.any = append(r.any, l.rule(sub))
	}
	for _, sub := range s.OneOf {
		r.branches = append(r.branches, l.rule(sub))
	}
	return ok && disjoint(r.branches)
}

func (l *loader) objectRule(s *jsonschema.Schema) objectRule {
	r := objectRule{min: or(s.MinProperties, 0), max: or(s.MaxProperties, -1), required: s.Required, props: map[string]*rule{}}
	for name, sub := range s.Properties {
		r.props[name] = l.rule(sub)
	}
	switch extra := s.AdditionalProperties.(type) {
	case bool:
		r.closed = !extra
	case *jsonschema.Schema:
		r.extra = l.rule(extra)
	}
	if s.PropertyNames != nil {
		r.names = l.rule(s.PropertyNames)
	}
	return r
}

func or(bound *int, without int) int {
	if bound == nil {
		return without
	}
	return *bound
}

// whole returns a bound of a number. It clears ok if the bound is not a 64-bit integer.
func whole(bound *big.Rat, ok *bool) *int64 {
	if bound == nil {
		return nil
	}
	*ok = *ok && bound.IsInt() && bound.Num().IsInt64()
	n := bound.Num().Int64()
	return &n
}

// kindSet is a set of kinds of JSON values, with a bit for each.
type kindSet uint8

func kindBit(kind jsontext.Kind) kindSet {
	switch kind {
	case objectKind:
		return 1
	case arrayKind:
		return 2
	case stringKind:
		return 4
	case numberKind:
		return 8
	case nullKind:
		return 16
	default:
		return 32 // true or false
	}
}

// kindsOf returns the kinds of the values of a type, or 0 for all.
func kindsOf(types *jsonschema.Types) (kinds kindSet) {
	if types == nil {
		return 0
	}
	for _, name := range types.ToStrings() {
		kinds |= kindBit(map[string]jsontext.Kind{
			"object": objectKind, "array": arrayKind, "string": stringKind, "number": numberKind, "integer": numberKind, "null": nullKind,
			"boolean": jsontext.KindTrue,
		}[name])
	}
	return kinds
}

// disjoint reports whether no kind of value can match two of the branches, so that a value that one branch accepts matches no other.
func disjoint(branches []*rule) bool {
	var seen kindSet
	for _, b := range branches {
		kinds := b.allowed(maxReferences)
		if kinds == 0 || kinds&seen != 0 {
			return false
		}
		seen |= kinds
	}
	return true
}

// maxReferences is how many references allowed follows.
const maxReferences = 8

// allowed returns the kinds that the rule, or a rule that it refers to, restricts its values to; 0: all.
func (r *rule) allowed(references int) kindSet {
	if r.kinds != 0 || references == 0 {
		return r.kinds
	}
	for _, sub := range r.all {
		if kinds := sub.allowed(references - 1); kinds != 0 {
			return kinds
		}
	}
	return 0
}

// accepts reports whether a value certainly satisfies the rule's schema. The value has the shape s; as for the validator, properties that
// the contract does not have are not a part of it.
func (r *rule) accepts(n *node, s *shape) bool {
	if r.unknown || r.kinds != 0 && r.kinds&kindBit(n.kind) == 0 || r.enum != nil && (n.kind != stringKind || !slices.Contains(r.enum, n.text)) {
		return false
	}
	one := func(sub *rule) bool { return sub.accepts(n, s) }
	return r.acceptsKind(n, s) && !slices.ContainsFunc(r.all, func(sub *rule) bool { return !sub.accepts(n, s) }) &&
		(r.any == nil || slices.ContainsFunc(r.any, one)) && (r.branches == nil || slices.ContainsFunc(r.branches, one))
}

// acceptsKind applies the keywords of the value's kind.
func (r *rule) acceptsKind(n *node, s *shape) bool {
	switch n.kind {
	case objectKind:
		return r.object.accepts(n, s)
	case arrayKind:
		return r.array.accepts(n, s)
	case stringKind:
		return r.text.accepts(n.text)
	case numberKind:
		return r.number.accepts(n.text)
	default:
		return true
	}
}

func (r *textRule) accepts(text string) bool {
	// A character has at most four bytes, so most texts need not be counted.
	if n := len(text); r.max >= 0 && n > r.max || n < 4*r.min {
		if n = utf8.RuneCountInString(text); n < r.min || r.max >= 0 && n > r.max {
			return false
		}
	}
	return (r.pattern == nil || r.pattern.MatchString(text)) && (r.format == nil || r.format.Validate(text) == nil)
}

// accepts accepts integers only: other numbers are rare in bodies.
func (r *numberRule) accepts(digits string) bool {
	n, err := strconv.ParseInt(digits, 10, 64)
	return err == nil && (r.min == nil || n >= *r.min) && (r.max == nil || n <= *r.max)
}

func (r *arrayRule) accepts(n *node, s *shape) bool {
	if len(n.children) < r.min || r.max >= 0 && len(n.children) > r.max {
		return false
	}
	if r.items == nil {
		return true
	}
	for i := range n.children {
		if !r.items.accepts(&n.children[i], s.item()) {
			return false
		}
	}
	return true
}

func (r *objectRule) accepts(n *node, s *shape) bool {
	count, required := 0, 0
	for i := range n.children {
		c := &n.children[i]
		if !s.declares(c.key) {
			continue
		}
		count++
		if slices.Contains(r.required, c.key) {
			required++
		}
		if !r.property(c, s) {
			return false
		}
	}
	return required == len(r.required) && count >= r.min && (r.max < 0 || count <= r.max)
}

func (r *objectRule) property(c *node, s *shape) bool {
	if r.names != nil && !r.names.accepts(&node{kind: stringKind, text: c.key}, nil) {
		return false
	}
	if sub, ok := r.props[c.key]; ok {
		return sub.accepts(c, s.member(c.key))
	}
	return !r.closed && (r.extra == nil || r.extra.accepts(c, s.member(c.key)))
}
