package contract

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/yamldoc"
)

// parameter is one declared query parameter.
type parameter struct {
	name     string
	kind     string // string, integer, boolean, array or object
	items    string // kind of an array's items
	instant  bool   // holds RFC 3339 date-times
	required bool
	fallback string            // the schema's default
	aliases  map[string]string // of an enumeration: other spellings of its values
	schema   *jsonschema.Schema
	shape    *shape
}

func (l *loader) parameters(op *Operation, list *yaml.Node, ptr string) error {
	if list == nil {
		return nil
	}
	for i, n := range list.Content {
		n, at, err := l.Follow(n, ptr+"/"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		if yamldoc.Text(n, "in") == "header" && strings.EqualFold(yamldoc.Text(n, "name"), "Idempotency-Key") {
			op.Idempotent = true
		}
		if yamldoc.Text(n, "in") != "query" {
			continue
		}
		p, err := l.parameter(n, at)
		if err != nil {
			return err
		}
		op.params = slices.DeleteFunc(op.params, func(q *parameter) bool { return q.name == p.name })
		op.params = append(op.params, p)
	}
	return nil
}

func (l *loader) parameter(n *yaml.Node, ptr string) (*parameter, error) {
	p := &parameter{name: yamldoc.Text(n, "name"), required: yamldoc.Text(n, "required") == "true"}
	schema := yamldoc.Child(n, "schema")
	if p.name == "" || schema == nil {
		return nil, fmt.Errorf("line %d: a parameter needs name and schema", n.Line)
	}
	var err error
	if p.schema, err = l.compile(ptr + "/schema"); err != nil {
		return nil, err
	}
	if p.shape, err = l.shape(schema); err != nil {
		return nil, err
	}
	if schema, _, err = l.Follow(schema, ""); err != nil {
		return nil, err
	}
	p.kind, p.fallback = yamldoc.Text(schema, "type"), yamldoc.Text(schema, "default")
	p.instant = strings.HasSuffix(strings.ReplaceAll(cmp.Or(yamldoc.Text(schema, "x-format"), yamldoc.Text(schema, "format")), "-", ""), "datetime")
	p.aliases = aliases(schema)
	if p.kind == "array" {
		item, _, err := l.Follow(yamldoc.Child(schema, "items"), "")
		if err != nil {
			return nil, err
		}
		p.aliases = aliases(item)
		if p.items = yamldoc.Text(item, "type"); yamldoc.Text(n, "explode") != "false" {
			return nil, fmt.Errorf("line %d: a list parameter needs explode: false", n.Line)
		}
	}
	if p.kind == "object" && yamldoc.Text(n, "style") != "deepObject" {
		return nil, fmt.Errorf("line %d: an object parameter needs style: deepObject", n.Line)
	}
	return p, nil
}

// aliases returns the x-aliases of an enumeration.
func aliases(schema *yaml.Node) map[string]string {
	list := map[string]string{}
	for value, same := range yamldoc.Pairs(yamldoc.Child(schema, "x-aliases")) {
		list[value] = same.Value
	}
	return list
}

// Query holds the validated query parameters of one request.
type Query struct {
	op     *Operation
	values map[string]any // string, []string or map[string]string
}

// ParseQuery reads a raw query. A parameter that is unknown, sent twice or out of its bounds is a 422 for its name. The items of a
// list are separated by commas, or the parameter is repeated, or both; an object is given as name[key]=value. Aliases of a value become that value.
func (op *Operation) ParseQuery(raw string) (Query, error) {
	q := Query{op: op, values: map[string]any{}}
	var fields []apperr.FieldError
	fail := func(name, msg string) {
		f := apperr.FieldError{Field: dotted([]string{name}), Message: msg}
		if len(fields) < maxFields && !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
	}
	for part := range strings.SplitSeq(raw, "&") {
		if part != "" {
			q.take(part, fail)
		}
	}
	sent := fields
	fields = nil
	for _, p := range op.params {
		v, ok := q.values[p.name]
		switch {
		case ok:
			p.validate(v, fail)
			q.values[p.name] = p.canonical(v)
		case p.required:
			fail(p.name, "Is required.")
		}
	}
	if fields = append(fields, sent...); len(fields) > 0 {
		return Query{}, apperr.Fields(fields)
	}
	return q, nil
}

// take reads one name=value pair.
func (q *Query) take(part string, fail func(name, msg string)) {
	rawName, rawValue, _ := strings.Cut(part, "=")
	name, err1 := url.QueryUnescape(rawName)
	value, err2 := url.QueryUnescape(rawValue)
	if err1 != nil {
		name = rawName
	}
	label := name
	base, key, deep := strings.Cut(name, "[")
	p := q.op.parameter(base)
	if deep && p != nil && p.kind == "object" && strings.HasSuffix(key, "]") {
		key = strings.TrimSuffix(key, "]")
		label = base + "." + key
	} else {
		p, deep = q.op.parameter(name), false
	}
	switch {
	case !utf8.ValidString(name):
		fail(strings.ToValidUTF8(label, "\uFFFD"), "The name must be UTF-8.")
	case strings.IndexByte(name, 0) >= 0:
		fail(label, "The name must not contain the NUL character.")
	case p == nil:
		fail(label, q.op.unknown())
	case err1 != nil || err2 != nil || !utf8.ValidString(value):
		fail(label, "Must be percent-encoded UTF-8.")
	case strings.IndexByte(value, 0) >= 0:
		fail(label, "Must not contain the NUL character.")
	case p.kind == "object" && (!deep || key == ""):
		fail(label, fmt.Sprintf("Must have the form %s[key]=value.", p.name))
	default:
		q.put(p, label, key, value, fail)
	}
}

func (q *Query) put(p *parameter, label, key, value string, fail func(name, msg string)) {
	const twice = "Must be sent only once."
	if p.kind == "object" {
		m, _ := q.values[p.name].(map[string]string)
		if m == nil {
			m = map[string]string{}
			q.values[p.name] = m
		}
		if _, ok := m[key]; ok {
			fail(label, twice)
		}
		m[key] = value
		return
	}
	if p.kind == "array" {
		items, _ := q.values[p.name].([]string)
		q.values[p.name] = append(items, strings.Split(value, ",")...)
		return
	}
	if _, ok := q.values[p.name]; ok {
		fail(label, twice)
		return
	}
	switch {
	case p.instant && len(value) > 6 && value[len(value)-6] == ' ':
		// An unescaped +02:00 arrives with a space.
		q.values[p.name] = value[:len(value)-6] + "+" + value[len(value)-5:]
	default:
		q.values[p.name] = value
	}
}

func (op *Operation) parameter(name string) *parameter {
	for _, p := range op.params {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (op *Operation) unknown() string {
	if len(op.params) == 0 {
		return "Unknown parameter. This operation has no parameters."
	}
	names := make([]string, len(op.params))
	for i, p := range op.params {
		if names[i] = p.name; p.kind == "object" {
			names[i] += "[key]"
		}
	}
	return "Unknown parameter. Allowed: " + strings.Join(names, ", ") + "."
}

func (p *parameter) validate(v any, fail func(name, msg string)) {
	var err error
	switch v := v.(type) {
	case string:
		err = p.schema.Validate(typed(p.kind, v))
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = typed(p.items, s)
		}
		err = p.schema.Validate(list)
	case map[string]string:
		m := make(map[string]any, len(v))
		for key, s := range v {
			m[key] = s
		}
		err = p.schema.Validate(m)
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return
	}
	found := failures(invalid, nil)
	slices.SortStableFunc(found, func(a, b failure) int { return slices.Compare(a.path, b.path) })
	for _, f := range found {
		path := []string{p.name}
		if p.kind == "object" {
			path = append(path, f.path...)
		}
		if hint := p.shape.at(f.path).message(); hint != "" && strings.HasPrefix(f.message, "Must match ") {
			f.message = hint
		}
		fail(dotted(path), f.message)
	}
}

// canonical replaces values that are aliases by the values that they stand for.
func (p *parameter) canonical(v any) any {
	switch v := v.(type) {
	case string:
		return cmp.Or(p.aliases[v], v)
	case []string:
		for i, item := range v {
			v[i] = cmp.Or(p.aliases[item], item)
		}
	}
	return v
}

// typed converts a string to the JSON type that the contract requires, if it has that type's form.
func typed(kind, s string) any {
	switch {
	case kind == "integer" && isInteger(s):
		return boundNumber(json.Number(s))
	case kind == "boolean" && s == "true":
		return true
	case kind == "boolean" && s == "false":
		return false
	}
	return s
}

// Has reports whether the request contains the parameter.
func (q Query) Has(name string) bool {
	_, ok := q.values[name]
	return ok
}

// String returns a parameter's text. If it is absent, String returns the contract's default or "".
func (q Query) String(name string) string {
	if s, ok := q.values[name].(string); ok {
		return s
	}
	if q.op == nil {
		return ""
	}
	if p := q.op.parameter(name); p != nil {
		return p.fallback
	}
	return ""
}

// Int returns an integer parameter. If it is absent, Int returns the contract's default, otherwise def.
func (q Query) Int(name string, def int) int {
	n, err := strconv.Atoi(q.String(name))
	if err != nil {
		return def
	}
	return n
}

// List returns the items of a comma-separated list, or nil if it is absent.
func (q Query) List(name string) []string {
	l, _ := q.values[name].([]string)
	return l
}

// Map returns the pairs of name[key]=value, or nil if it is absent.
func (q Query) Map(name string) map[string]string {
	m, _ := q.values[name].(map[string]string)
	return m
}

// Time returns a date-time parameter in UTC. It returns false if the parameter is absent or a date without a time.
func (q Query) Time(name string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, q.String(name))
	return t.UTC(), err == nil
}

// Canonical returns the same text for equal queries: names and keys are sorted, and the parameters in except are omitted.
func (q Query) Canonical(except ...string) string {
	out := url.Values{}
	for name, v := range q.values {
		if slices.Contains(except, name) {
			continue
		}
		switch v := v.(type) {
		case string:
			out.Set(name, v)
		case []string:
			out.Set(name, strings.Join(v, ","))
		case map[string]string:
			for key, s := range v {
				out.Set(name+"["+key+"]", s)
			}
		}
	}
	return out.Encode()
}
