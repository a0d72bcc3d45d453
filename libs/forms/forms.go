// Package forms reads from an OpenAPI document what callers of its operations need: the path of each operation, and the fields of
// its body and query with their types and bounds. It does not validate requests; libs/contract does.
package forms

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/yamldoc"
)

// Field is a property or a query parameter as a form needs it: its type and its bounds.
type Field struct {
	Name     string
	Kind     string // string, integer, number, boolean, array, object; "" when several are allowed
	Schema   string // name of the component, such as Money; "" for a schema without one
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

// Form is an operation as its callers need it: its path and its inputs, in the order of the contract.
type Form struct {
	Method, Path string   // the path as in the document, with {id}
	Scopes       []string // x-required-scopes
	Permission   string   // x-required-permission, for the platform's own operators; "" for none
	Secret       bool     // x-secret-response
	HasBody      bool
	Body, Query  []Field
}

// Field returns the field of the body with the given name, or the zero Field if there is none.
func (f Form) Field(name string) Field { return find(f.Body, name) }

// Param returns the query parameter with the given name, or the zero Field if there is none.
func (f Form) Param(name string) Field { return find(f.Query, name) }

func find(list []Field, name string) Field {
	i := slices.IndexFunc(list, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}
	}
	return list[i]
}

// deepest is the maximum depth of nested fields that are read.
const deepest = 4

// Load reads the bodies and queries of all operations of an OpenAPI document, by operationId.
func Load(doc []byte) (map[string]Form, error) {
	parsed, err := yamldoc.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("forms: %w", err)
	}
	l := loader{parsed}
	out := map[string]Form{}
	for path, item := range yamldoc.Pairs(yamldoc.Child(l.Root, "paths")) {
		for key, node := range yamldoc.Pairs(item) {
			if !yamldoc.IsMethod(key) {
				continue
			}
			form, err := l.form(item, node)
			if err != nil {
				return nil, fmt.Errorf("forms: %s %s: %w", key, path, err)
			}
			form.Method, form.Path = strings.ToUpper(key), path
			out[yamldoc.Text(node, "operationId")] = form
		}
	}
	return out, nil
}

// loader reads the forms of one document.
type loader struct{ *yamldoc.Document }

func (l loader) form(item, node *yaml.Node) (f Form, err error) {
	f.Permission, f.Secret = yamldoc.Text(node, "x-required-permission"), yamldoc.Text(node, "x-secret-response") == "true"
	if scopes := yamldoc.Child(node, "x-required-scopes"); scopes != nil {
		if err := scopes.Decode(&f.Scopes); err != nil {
			return f, fmt.Errorf("x-required-scopes: %w", err)
		}
	}
	for _, list := range []*yaml.Node{yamldoc.Child(item, "parameters"), yamldoc.Child(node, "parameters")} {
		if list == nil {
			continue
		}
		for _, n := range list.Content {
			if n, _, err = l.Follow(n, ""); err != nil {
				return f, err
			}
			if yamldoc.Text(n, "in") != "query" {
				continue
			}
			field, err := l.field(yamldoc.Child(n, "schema"), 0)
			if err != nil {
				return f, err
			}
			field.Name, field.Required = yamldoc.Text(n, "name"), yamldoc.Text(n, "required") == "true"
			f.Query = append(f.Query, field)
		}
	}
	body := yamldoc.Child(node, "requestBody")
	if body == nil {
		return f, nil
	}
	if body, _, err = l.Follow(body, ""); err != nil {
		return f, err
	}
	f.HasBody = true
	whole, err := l.field(yamldoc.Child(yamldoc.Child(yamldoc.Child(body, "content"), "application/json"), "schema"), 0)
	f.Body = whole.Fields
	return f, err
}

// field reads a schema. For alternatives it uses the types of all and the bounds of the first one that has bounds.
func (l loader) field(n *yaml.Node, depth int) (f Field, err error) {
	if n == nil || depth > deepest {
		return f, nil
	}
	if ref := yamldoc.Text(n, "$ref"); ref != "" {
		f.Schema = ref[strings.LastIndexByte(ref, '/')+1:]
	}
	if n, _, err = l.Follow(n, ""); err != nil {
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
	} else {
		f.Enum = nil // of one alternative only
	}
	return f, err
}

func (l loader) collect(f *Field, n *yaml.Node, kinds *[]string, depth int) error {
	switch t := yamldoc.Child(n, "type"); {
	case t == nil:
	case t.Kind == yaml.ScalarNode:
		*kinds = append(*kinds, t.Value)
	default:
		for _, one := range t.Content {
			*kinds = append(*kinds, one.Value)
		}
	}
	l.bounds(f, n)
	required := yamldoc.Child(n, "required")
	for name, node := range yamldoc.Pairs(yamldoc.Child(n, "properties")) {
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
	if items := yamldoc.Child(n, "items"); items != nil && f.Items == nil {
		sub, err := l.field(items, depth+1)
		if err != nil {
			return err
		}
		f.Items = &sub
	}
	return l.Alternatives(n, func(alt *yaml.Node) error {
		if ref := l.nameOf(n, alt); ref != "" && f.Schema == "" {
			f.Schema = ref
		}
		return l.collect(f, alt, kinds, depth)
	})
}

// nameOf returns the component name of an alternative of n that is a reference.
func (l loader) nameOf(n, alt *yaml.Node) string {
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		list := yamldoc.Child(n, key)
		if list == nil {
			continue
		}
		for _, one := range list.Content {
			if ref := yamldoc.Text(one, "$ref"); ref != "" {
				if target, _, err := l.Follow(one, ""); err == nil && target == alt {
					return ref[strings.LastIndexByte(ref, '/')+1:]
				}
			}
		}
	}
	return ""
}

func (l loader) bounds(f *Field, n *yaml.Node) {
	first := func(to *string, key string) {
		if *to == "" {
			*to = yamldoc.Text(n, key)
		}
	}
	first(&f.Format, "x-format")
	first(&f.Format, "format")
	first(&f.Pattern, "pattern")
	count := func(to *int, key string) {
		if v, err := strconv.Atoi(yamldoc.Text(n, key)); err == nil && *to == 0 {
			*to = v
		}
	}
	count(&f.MinLen, "minLength")
	count(&f.MaxLen, "maxLength")
	count(&f.MinItems, "minItems")
	count(&f.MaxItems, "maxItems")
	whole := func(to *int64, key string) {
		if v, err := strconv.ParseInt(yamldoc.Text(n, key), 10, 64); err == nil && *to == 0 {
			*to = v
		}
	}
	whole(&f.Min, "minimum")
	whole(&f.Max, "maximum")
	if enum := yamldoc.Child(n, "enum"); enum != nil && f.Enum == nil {
		for _, one := range enum.Content {
			if one.ShortTag() != "!!null" {
				f.Enum = append(f.Enum, one.Value)
			}
		}
	}
}
