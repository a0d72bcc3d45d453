package docs

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
)

//go:embed head.html plain.html errors.html
var templates embed.FS

// render fills one of the templates.
func render(name string, data any) ([]byte, error) {
	t, err := template.ParseFS(templates, "*.html")
	if err != nil {
		return nil, fmt.Errorf("docs page: %w", err)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("docs page: %w", err)
	}
	return out.Bytes(), nil
}

// operation is what the plain page shows of one.
type operation struct {
	*contract.Operation
	Summary, Description string
	Parameters, Body     []field
	Answers              []answer
}

type field struct {
	Name, In, Type, Description string
	Required                    bool
}

type answer struct {
	Status      int
	Description string
}

// object is a mapping of the document.
type object = map[string]any

// plain renders the page without redoc: each operation with its scopes, parameters, body and answers.
func plain(doc object, c *contract.Contract) ([]byte, error) {
	tree := tree{doc}
	var ops []operation
	for _, op := range c.Operations() {
		ops = append(ops, tree.operation(op))
	}
	return render("plain.html", object{"Info": doc["info"], "Operations": ops, "More": doc["externalDocs"]})
}

// tree is a document whose references are followed. What it does not know it leaves out.
type tree struct{ doc object }

// at returns the mapping under keys, following references on the way.
func (t tree) at(from any, keys ...string) object {
	o, _ := from.(object)
	for depth := 0; depth < 32; depth++ {
		if ref, ok := o["$ref"].(string); ok {
			return t.at(t.doc, append(strings.Split(strings.TrimPrefix(ref, "#/"), "/"), keys...)...)
		}
		if len(keys) == 0 {
			return o
		}
		o, _ = o[keys[0]].(object)
		keys = keys[1:]
	}
	return nil
}

func text(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

func (t tree) operation(op *contract.Operation) operation {
	node := t.at(t.doc, "paths", op.Path, strings.ToLower(op.Method))
	description, _, _ := strings.Cut(text(node, "description"), proto.ErrorTableHead) // Answers has the codes
	out := operation{Operation: op, Summary: text(node, "summary"), Description: strings.TrimSpace(description)}
	parameters, _ := node["parameters"].([]any)
	for _, p := range parameters {
		p := t.at(p)
		required, _ := p["required"].(bool)
		out.Parameters = append(out.Parameters, field{
			Name: text(p, "name"), In: text(p, "in"), Type: t.kind(p["schema"]),
			Description: text(p, "description"), Required: required,
		})
	}
	out.Body = t.fields(t.at(node, "requestBody", "content", "application/json", "schema"))
	for _, status := range op.Statuses {
		a := t.at(node, "responses", fmt.Sprint(status))
		out.Answers = append(out.Answers, answer{status, text(a, "description")})
	}
	return out
}

// fields are the properties of a body: the required ones first.
func (t tree) fields(schema object) []field {
	required, _ := schema["required"].([]any)
	properties := t.at(schema, "properties")
	var out []field
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := t.at(properties[name])
		out = append(out, field{
			Name: name, Type: t.kind(p), Description: text(p, "description"), Required: slices.Contains(required, any(name)),
		})
	}
	slices.SortStableFunc(out, func(a, b field) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		default:
			return 1
		}
	})
	return out
}

// kind says in a few words what a schema allows.
func (t tree) kind(schema any) string {
	s := t.at(schema)
	var words []string
	switch kind := s["type"].(type) {
	case string:
		words = append(words, kind)
	case []any:
		for i, one := range kind {
			if i > 0 {
				words = append(words, "or")
			}
			words = append(words, fmt.Sprint(one))
		}
	}
	if items := t.at(s, "items"); items != nil {
		words = append(words, "of "+t.kind(items))
	}
	if format := text(s, "format"); format != "" {
		words = append(words, "("+format+")")
	}
	if values, ok := s["enum"].([]any); ok {
		var names []string
		for _, v := range values {
			names = append(names, fmt.Sprint(v))
		}
		words = append(words, "one of "+strings.Join(names, ", "))
	}
	for _, bound := range []struct{ key, says string }{
		{"minLength", "length ≥ %v"},
		{"maxLength", "length ≤ %v"},
		{"minimum", "≥ %v"},
		{"maximum", "≤ %v"},
		{"default", "default %v"},
	} {
		if v, ok := s[bound.key]; ok {
			words = append(words, fmt.Sprintf(bound.says, v))
		}
	}
	return strings.Join(words, " ")
}
