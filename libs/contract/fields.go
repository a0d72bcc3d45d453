package contract

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Field is what a form needs of a property or a query parameter: its type and its bounds.
type Field struct {
	Name     string
	Kind     string // string, integer, number, boolean, array, object; "" when several are allowed
	Schema   string // name of the component, such as Money; "" for a schema that has none
	Format   string
	Enum     []string
	Pattern  string
	Required bool
	Nullable bool
	MinLen   int   // characters
	MaxLen   int   // characters; 0 without a bound
	MinItems int   // of an array
	MaxItems int   // of an array; 0 without a bound
	Min, Max int64 // of an integer; both 0 without bounds
	Fields   []Field
	Items    *Field
}

// IsMoney reports whether the field is an amount with its currency.
func (f Field) IsMoney() bool {
	return f.Kind == "object" && len(f.Fields) == 2 && find(f.Fields, "amount").Name != "" && find(f.Fields, "currency").Name != ""
}

// Form is an operation as those who call it see it: where it is and what it takes, in the order of the contract.
type Form struct {
	Method, Path string   // the path as in the document, with {id}
	Scopes       []string // x-required-scopes
	Permission   string   // x-required-permission, of a platform's own operators; "" for none
	Secret       bool     // x-secret-response
	HasBody      bool
	Body, Query  []Field
}

// Field returns the field of the body with that name, the zero Field when there is none.
func (f Form) Field(name string) Field { return find(f.Body, name) }

// Param returns the query parameter with that name, the zero Field when there is none.
func (f Form) Param(name string) Field { return find(f.Query, name) }

func find(list []Field, name string) Field {
	i := slices.IndexFunc(list, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}
	}
	return list[i]
}

// deepest is how deep fields inside fields are read.
const deepest = 4

// Forms reads the bodies and queries of all operations, by operationId.
func Forms(doc []byte) (map[string]Form, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(doc, &top); err != nil {
		return nil, fmt.Errorf("contract: parse: %w", err)
	}
	if len(top.Content) != 1 {
		return nil, errors.New("contract: the document is empty")
	}
	l := &loader{root: top.Content[0]}
	out := map[string]Form{}
	for path, item := range pairs(child(l.root, "paths")) {
		for key, node := range pairs(item) {
			if !known(strings.ToUpper(key)) {
				continue
			}
			form, err := l.form(item, node)
			if err != nil {
				return nil, fmt.Errorf("contract: %s %s: %w", key, path, err)
			}
			form.Method, form.Path = strings.ToUpper(key), path
			out[text(node, "operationId")] = form
		}
	}
	return out, nil
}

func (l *loader) form(item, node *yaml.Node) (f Form, err error) {
	f.Permission, f.Secret = text(node, "x-required-permission"), text(node, "x-secret-response") == "true"
	if scopes := child(node, "x-required-scopes"); scopes != nil {
		if err := scopes.Decode(&f.Scopes); err != nil {
			return f, fmt.Errorf("x-required-scopes: %w", err)
		}
	}
	for _, list := range []*yaml.Node{child(item, "parameters"), child(node, "parameters")} {
		if list == nil {
			continue
		}
		for _, n := range list.Content {
			if n, _, err = l.follow(n, ""); err != nil {
				return f, err
			}
			if text(n, "in") != "query" {
				continue
			}
			field, err := l.field(child(n, "schema"), 0)
			if err != nil {
				return f, err
			}
			field.Name, field.Required = text(n, "name"), text(n, "required") == "true"
			f.Query = append(f.Query, field)
		}
	}
	body := child(node, "requestBody")
	if body == nil {
		return f, nil
	}
	if body, _, err = l.follow(body, ""); err != nil {
		return f, err
	}
	f.HasBody = true
	whole, err := l.field(child(child(child(body, "content"), "application/json"), "schema"), 0)
	f.Body = whole.Fields
	return f, err
}

// field reads a schema. Of alternatives it takes the types of all and the bounds of the first that has them.
func (l *loader) field(n *yaml.Node, depth int) (f Field, err error) {
	if n == nil || depth > deepest {
		return f, nil
	}
	if ref := text(n, "$ref"); ref != "" {
		f.Schema = ref[strings.LastIndexByte(ref, '/')+1:]
	}
	if n, _, err = l.follow(n, ""); err != nil {
		return f, err
	}
	kinds := []string{}
	err = l.collect(&f, n, &kinds, depth)
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	if i := slices.Index(kinds, "null"); i >= 0 {
		f.Nullable, kinds = true, slices.Delete(kinds, i, i+1)
	}
	if len(kinds) == 1 {
		f.Kind = kinds[0]
	}
	return f, err
}

func (l *loader) collect(f *Field, n *yaml.Node, kinds *[]string, depth int) error {
	switch t := child(n, "type"); {
	case t == nil:
	case t.Kind == yaml.ScalarNode:
		*kinds = append(*kinds, t.Value)
	default:
		for _, one := range t.Content {
			*kinds = append(*kinds, one.Value)
		}
	}
	l.bounds(f, n)
	required := child(n, "required")
	for name, node := range pairs(child(n, "properties")) {
		if find(f.Fields, name).Name != "" {
			continue
		}
		sub, err := l.field(node, depth+1)
		if err != nil {
			return err
		}
		sub.Name = name
		sub.Required = required != nil && slices.ContainsFunc(required.Content, func(r *yaml.Node) bool { return r.Value == name })
		f.Fields = append(f.Fields, sub)
	}
	if items := child(n, "items"); items != nil && f.Items == nil {
		sub, err := l.field(items, depth+1)
		if err != nil {
			return err
		}
		f.Items = &sub
	}
	return l.alternatives(n, func(alt *yaml.Node) error {
		if ref := l.nameOf(n, alt); ref != "" && f.Schema == "" {
			f.Schema = ref
		}
		return l.collect(f, alt, kinds, depth)
	})
}

// nameOf returns the component's name of an alternative of n that is given by reference.
func (l *loader) nameOf(n, alt *yaml.Node) string {
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		list := child(n, key)
		if list == nil {
			continue
		}
		for _, one := range list.Content {
			if ref := text(one, "$ref"); ref != "" {
				if target, _, err := l.follow(one, ""); err == nil && target == alt {
					return ref[strings.LastIndexByte(ref, '/')+1:]
				}
			}
		}
	}
	return ""
}

func (l *loader) bounds(f *Field, n *yaml.Node) {
	first := func(to *string, key string) {
		if *to == "" {
			*to = text(n, key)
		}
	}
	first(&f.Format, "format")
	first(&f.Pattern, "pattern")
	count := func(to *int, key string) {
		if v, err := strconv.Atoi(text(n, key)); err == nil && *to == 0 {
			*to = v
		}
	}
	count(&f.MinLen, "minLength")
	count(&f.MaxLen, "maxLength")
	count(&f.MinItems, "minItems")
	count(&f.MaxItems, "maxItems")
	whole := func(to *int64, key string) {
		if v, err := strconv.ParseInt(text(n, key), 10, 64); err == nil && *to == 0 {
			*to = v
		}
	}
	whole(&f.Min, "minimum")
	whole(&f.Max, "maximum")
	if enum := child(n, "enum"); enum != nil && f.Enum == nil {
		for _, one := range enum.Content {
			if one.ShortTag() != "!!null" {
				f.Enum = append(f.Enum, one.Value)
			}
		}
	}
}

// Column is a property of a list's item as CSV: one column, or the columns of its own properties.
type Column struct {
	Name       string
	Expand     bool     // x-expand: it exists only when the request asks for it
	Properties []Column // of an object that names its properties; else the value is one cell
}

// columns reads the columns of a list that has the media type text/csv.
func (l *loader) columns(op *Operation, csv, list *yaml.Node) error {
	if csv == nil {
		return nil
	}
	list, _, err := l.follow(list, "")
	if err != nil {
		return err
	}
	item := child(child(child(list, "properties"), "data"), "items")
	if item == nil {
		return errors.New("text/csv needs a list whose items are in data")
	}
	op.CSV, err = l.properties(item, 0)
	if err == nil && len(op.CSV) == 0 {
		err = errors.New("text/csv needs items that name their properties")
	}
	if err != nil {
		return err
	}
	return arrange(op.CSV, child(csv, "x-columns"))
}

// arrange puts columns in the order of x-columns, which names each of them. Programs read columns by position, so the order does not
// follow that of the properties.
func arrange(columns []Column, order *yaml.Node) error {
	var names []string
	if order != nil {
		if err := order.Decode(&names); err != nil {
			return fmt.Errorf("x-columns: %w", err)
		}
	}
	place := func(c Column) int { return slices.Index(names, c.Name) }
	for _, c := range columns {
		if place(c) < 0 {
			return fmt.Errorf("x-columns lacks %s", c.Name)
		}
	}
	if len(names) != len(columns) {
		return fmt.Errorf("x-columns has %d names for %d properties", len(names), len(columns))
	}
	slices.SortStableFunc(columns, func(a, b Column) int { return cmp.Compare(place(a), place(b)) })
	return nil
}

// maxNesting is far more than resources nest; it ends a schema that contains itself.
const maxNesting = 10

// properties returns the columns of an object's properties and of its alternatives, in the order of the document. It has
// none for arrays and for objects with any names.
func (l *loader) properties(n *yaml.Node, depth int) ([]Column, error) {
	if depth > maxNesting {
		return nil, errors.New("the item of text/csv contains itself")
	}
	n, _, err := l.follow(n, "")
	if err != nil {
		return nil, err
	}
	var out []Column
	for name, node := range pairs(child(n, "properties")) {
		sub, err := l.properties(node, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, Column{Name: name, Expand: text(node, "x-expand") == "true", Properties: sub})
	}
	err = l.alternatives(n, func(alt *yaml.Node) error {
		more, err := l.properties(alt, depth+1)
		for _, c := range more {
			if !slices.ContainsFunc(out, func(known Column) bool { return known.Name == c.Name }) {
				out = append(out, c)
			}
		}
		return err
	})
	return out, err
}

// Filters returns the names of the parameters that narrow a list.
func (op *Operation) Filters() []string {
	var out []string
	for _, p := range op.params {
		if slices.Contains([]string{"limit", "cursor", "sort", "expand"}, p.name) {
			continue
		}
		if p.kind == "object" {
			out = append(out, p.name+"[key]")
		} else {
			out = append(out, p.name)
		}
	}
	return out
}
