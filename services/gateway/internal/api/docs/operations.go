package docs

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"
	texttemplate "text/template"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
)

//go:embed templates
var templates embed.FS

// functions are what the templates use in addition to their data.
var functions = template.FuncMap{"inline": inline, "markdown": paragraphs, "join": strings.Join}

// execute executes one of the templates of pages.
func execute(name string, data any) ([]byte, error) {
	t, err := template.New(name).Funcs(functions).ParseFS(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	return out.Bytes(), nil
}

// executeText executes one of the templates of Markdown.
func executeText(name string, data any) ([]byte, error) {
	t, err := texttemplate.New(name).Funcs(functions).ParseFS(templates, "templates/*.md", "templates/*.txt")
	if err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	return out.Bytes(), nil
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	link     = regexp.MustCompile(`\[([^\]]+)\]\((/[^)]*)\)`)
)

// inline renders the code and the links in the contract's Markdown. It escapes all text.
func inline(text string) template.HTML {
	text = codeSpan.ReplaceAllString(template.HTMLEscapeString(text), "<code>$1</code>")
	return template.HTML(link.ReplaceAllString(text, `<a href="$2">$1</a>`)) //nolint:gosec // escaped
}

// paragraphs also renders paragraphs and headings.
func paragraphs(text string) template.HTML {
	var out template.HTML
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if heading, ok := strings.CutPrefix(block, "## "); ok {
			out += "<h3>" + inline(heading) + "</h3>\n"
		} else {
			out += "<p>" + inline(block) + "</p>\n"
		}
	}
	return out
}

// operation contains what the pages show of one operation.
type operation struct {
	*contract.Operation
	Tag                  string
	Summary, Description string
	Parameters, Body     []field
	Responses            []response
	Curl                 string
	Example              string // the body of the response
}

type field struct {
	Name, In, Type, Description string
	Required                    bool
}

type response struct {
	Status      int
	Description string
	Codes       []proto.ErrorCode
}

// object is a mapping of the document.
type object = map[string]any

// reference contains what the pages show of the contract.
type reference struct {
	info       object
	operations []operation
}

// describe reads each operation with its scopes, parameters, body and responses.
func describe(doc object, c *contract.Contract) reference {
	tree := tree{doc}
	r := reference{info: tree.at(doc["info"])}
	for _, op := range c.Operations() {
		r.operations = append(r.operations, tree.operation(op))
	}
	return r
}

// tree is a document whose references are resolved. It skips unknown parts.
type tree struct{ doc object }

// at returns the mapping at keys, following references.
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

// first returns the first text of a list.
func first(list any) string {
	all, _ := list.([]any)
	if len(all) == 0 {
		return ""
	}
	s, _ := all[0].(string)
	return s
}

func (t tree) operation(op *contract.Operation) operation {
	node := t.at(t.doc, "paths", op.Path, strings.ToLower(op.Method))
	description, _, _ := strings.Cut(text(node, "description"), view.ErrorsHead) // Responses already lists the codes
	out := operation{Operation: op, Tag: first(node["tags"]), Summary: text(node, "summary"), Description: strings.TrimSpace(description)}
	parameters, _ := node["parameters"].([]any)
	for _, p := range parameters {
		p := t.at(p)
		required, _ := p["required"].(bool)
		out.Parameters = append(out.Parameters, field{
			Name: text(p, "name"), In: text(p, "in"), Type: t.kind(p["schema"]),
			Description: text(p, "description") + meanings(t.at(p["schema"])), Required: required,
		})
	}
	out.Body = t.fields(t.at(node, "requestBody", "content", "application/json", "schema"))
	codes, _ := node["x-error-codes"].([]any)
	for _, status := range op.Statuses {
		a := response{Status: status, Description: text(t.at(node, "responses", fmt.Sprint(status)), "description")}
		for _, c := range proto.ErrorCodes {
			if c.Status == status && slices.Contains(codes, any(c.Code)) {
				a.Codes = append(a.Codes, c)
			}
		}
		out.Responses = append(out.Responses, a)
	}
	if samples, _ := node["x-codeSamples"].([]any); len(samples) > 0 {
		out.Curl = text(t.at(samples[0]), "source")
	}
	out.Example = example(t.at(node, "responses", fmt.Sprint(op.Success), "content"))
	return out
}

// example returns the example of a body as text.
func example(content object) string {
	for _, media := range content {
		media, _ := media.(object)
		switch e := media["example"].(type) {
		case nil:
		case string:
			return e
		default:
			if text, err := json.MarshalIndent(e, "", "  "); err == nil {
				return string(text)
			}
		}
	}
	return ""
}

// fields returns the properties of a body, starting with the required ones.
func (t tree) fields(schema object) []field {
	required, _ := schema["required"].([]any)
	properties := t.at(schema, "properties")
	var out []field
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := t.at(properties[name])
		description := text(p, "description")
		if own, _ := properties[name].(object); own["description"] != nil { // next to a reference
			description = text(own, "description")
		}
		out = append(out, field{
			Name: name, Type: t.kind(p), Description: description + meanings(p), Required: slices.Contains(required, any(name)),
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

// meanings returns the values of an enumeration with their descriptions.
func meanings(schema object) string {
	var out strings.Builder
	described, _ := schema["x-enumDescriptions"].(object)
	values, _ := schema["enum"].([]any)
	for _, v := range values {
		if meaning, ok := described[fmt.Sprint(v)]; ok {
			fmt.Fprintf(&out, " `%v`: %v", v, meaning)
		}
	}
	return out.String()
}

// kind describes in a few words what a schema allows.
func (t tree) kind(schema any) string {
	s := t.at(schema)
	var parts []string
	switch kind := s["type"].(type) {
	case string:
		parts = append(parts, kind)
	case []any:
		for i, one := range kind {
			if i > 0 {
				parts = append(parts, "or")
			}
			parts = append(parts, fmt.Sprint(one))
		}
	}
	if items := t.at(s, "items"); items != nil {
		parts = append(parts, "of "+t.kind(items))
	}
	if format := text(s, "format"); format != "" {
		parts = append(parts, "("+format+")")
	}
	if values, ok := s["enum"].([]any); ok {
		var names []string
		for _, v := range values {
			names = append(names, fmt.Sprint(v))
		}
		parts = append(parts, "one of "+strings.Join(names, ", "))
	}
	for _, bound := range []struct{ key, says string }{
		{"minLength", "length ≥ %v"},
		{"maxLength", "length ≤ %v"},
		{"minimum", "≥ %v"},
		{"maximum", "≤ %v"},
		{"default", "default %v"},
	} {
		if v, ok := s[bound.key]; ok {
			parts = append(parts, fmt.Sprintf(bound.says, v))
		}
	}
	return strings.Join(parts, " ")
}
