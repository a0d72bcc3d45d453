package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema returns the schema of a type of arguments. The tags of its fields contain the description (jsonschema), the values (enum), and
// the smallest and largest number or length (min, max).
func schema[In any]() *jsonschema.Schema {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		panic("tools: " + err.Error()) // a type of this package that has no schema
	}
	bound(s, reflect.TypeFor[In]())
	return s
}

// bound adds the values and bounds of a type's tags.
func bound(s *jsonschema.Schema, t reflect.Type) {
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil || field.Anonymous {
			continue
		}
		if len(p.Types) == 2 { // of a pointer or a slice; null is removed before the check
			p.Type, p.Types = p.Types[1], nil
		}
		if values := field.Tag.Get("enum"); values != "" {
			for value := range strings.SplitSeq(values, ",") {
				p.Enum = append(p.Enum, value)
			}
		}
		low, high := number(field.Tag.Get("min")), number(field.Tag.Get("max"))
		switch field.Type.Kind() {
		case reflect.String:
			p.MinLength, p.MaxLength = low, high
		case reflect.Slice:
			p.MinItems, p.MaxItems = low, high
			bound(p.Items, field.Type.Elem())
		default:
			p.Minimum, p.Maximum = float(low), float(high)
		}
	}
}

func number(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}

func float(n *int) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// form checks the arguments of a tool, one by one, so that an error names the argument.
type form struct {
	schema   *jsonschema.Schema
	resolved map[string]*jsonschema.Resolved
}

// forms contains the form of each type of arguments. Its values never change, so that the servers of all assistants of a process share them.
var forms sync.Map // reflect.Type to form

// formOf returns the form of a type of arguments.
func formOf[In any]() form {
	t := reflect.TypeFor[In]()
	if f, ok := forms.Load(t); ok {
		return f.(form) //nolint:forcetypeassert // the map has nothing else
	}
	f, _ := forms.LoadOrStore(t, newForm(schema[In]()))
	return f.(form) //nolint:forcetypeassert // as above
}

func newForm(s *jsonschema.Schema) form {
	f := form{s, map[string]*jsonschema.Resolved{}}
	for name, p := range s.Properties {
		resolved, err := p.CloneSchemas().Resolve(nil)
		if err != nil {
			panic("tools: " + name + ": " + err.Error()) // a schema of this package that is not valid
		}
		f.resolved[name] = resolved
	}
	return f
}

// check returns the arguments without those that are null, which some clients send instead of leaving an argument out.
func (f form) check(document json.RawMessage) (json.RawMessage, *failure) {
	values := map[string]any{}
	if len(document) > 0 {
		if err := json.Unmarshal(document, &values); err != nil {
			return nil, invalid("arguments", "must be a JSON object")
		}
	}
	maps.DeleteFunc(values, func(_ string, value any) bool { return value == nil })
	wrong := map[string]string{}
	for name, value := range values {
		if f.resolved[name] == nil {
			wrong[name] = "is not an argument of the tool; its arguments are " + strings.Join(slices.Sorted(maps.Keys(f.resolved)), ", ")
		} else if err := f.resolved[name].Validate(value); err != nil {
			wrong[name] = "must be " + allowed(f.schema.Properties[name])
		}
	}
	for _, name := range f.schema.Required {
		if values[name] == nil {
			wrong[name] = "is required (" + allowed(f.schema.Properties[name]) + ")"
		}
	}
	if len(wrong) > 0 {
		return nil, &failure{Code: "invalid_arguments", Message: "The arguments are not valid. Nothing was changed.", Fields: wrong}
	}
	cleaned, err := json.Marshal(values)
	if err != nil {
		return nil, invalid("arguments", err.Error())
	}
	return cleaned, nil
}

// allowed describes the values of an argument.
func allowed(s *jsonschema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		values := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			values[i] = fmt.Sprint(value)
		}
		return "one of " + strings.Join(values, ", ")
	case s.Type == "boolean":
		return "true or false"
	case s.Type == "integer" && s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("an integer from %.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.Type == "string" && s.MaxLength != nil:
		return fmt.Sprintf("text of at most %d characters", *s.MaxLength)
	case s.Type == "string":
		return "text"
	}
	text, err := json.Marshal(s)
	if err != nil {
		return s.Type
	}
	return string(text)
}
