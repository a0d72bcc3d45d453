package contracttest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const docURL = "contract://answers"

// responses contains the responses that a document declares. Its schemas are those that the services use for validation, but
// closed: an object with declared properties can have no others.
type responses struct {
	document *yaml.Node // with the order of the properties
	tree     map[string]any
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

func readResponses(doc []byte) (*responses, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(doc, &document); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	var tree any
	if err := document.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	text, err := json.Marshal(seal(tree))
	if err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	top, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read contract: it is a %T", value)
	}
	a := &responses{document: document.Content[0], tree: top, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	a.compiler.AssertFormat()
	if err := a.compiler.AddResource(docURL, value); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	return a, nil
}

func seal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			v[key] = seal(child)
		}
		if _, named := v["properties"].(map[string]any); named && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
	case []any:
		for i, child := range v {
			v[i] = seal(child)
		}
	}
	return v
}

// wrong lists the differences between a response and its declaration for the operation at a path template.
func (a *responses) wrong(method, template string, res *http.Response, body []byte) []string {
	pointer := "/paths/" + escape(template) + "/" + strings.ToLower(method) + "/responses/" + strconv.Itoa(res.StatusCode)
	declared, pointer := a.at(pointer)
	out := a.headers(declared, pointer, res.Header)
	content, ok := declared["content"].(map[string]any)
	if !ok {
		if len(body) > 0 {
			out = append(out, "a body that is not declared")
		}
		return out
	}
	if _, object := content["application/json"]; !object {
		if got := res.Header.Get("Content-Type"); content[got] == nil {
			out = append(out, fmt.Sprintf("Content-Type %q, want one of %v", got, slices.Collect(maps.Keys(content))))
		}
		return out
	}
	got := res.Header.Get("Content-Type")
	if content["text/csv"] != nil && got == "text/csv; charset=utf-8" {
		return append(out, table(body)...)
	}
	if got != "application/json" {
		out = append(out, fmt.Sprintf("Content-Type %q, want application/json", got))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return append(out, "the body is not JSON: "+err.Error())
	}
	pointer += "/content/application~1json/schema"
	out = append(out, a.validate(pointer, "body", value)...)
	return append(out, a.misordered(pointer, "body", body)...)
}

// table lists the errors of a CSV: no header, or records with another number of cells than the header.
func table(body []byte) (out []string) {
	records, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
	if err != nil {
		out = append(out, "the body is not CSV: "+err.Error())
	} else if len(records) == 0 {
		out = append(out, "the CSV has no header")
	}
	return out
}

// headers checks the declared headers, and that no other headers are sent except those of HTTP itself.
func (a *responses) headers(declared map[string]any, pointer string, got http.Header) (out []string) {
	names, _ := declared["headers"].(map[string]any)
	for name := range names {
		header, at := a.at(pointer + "/headers/" + escape(name))
		value, present := find(got, name)
		switch {
		case present:
			out = append(out, a.validate(at+"/schema", name, typed(header["schema"], value))...)
		case header["required"] == true:
			out = append(out, "header "+name+" is missing")
		}
	}
	for name := range got {
		same := func(other string) bool { return strings.EqualFold(other, name) }
		if !slices.ContainsFunc(undeclared, same) && !slices.ContainsFunc(slices.Collect(maps.Keys(gatewayHeaders)), same) &&
			!slices.ContainsFunc(slices.Collect(maps.Keys(names)), same) {
			out = append(out, "header "+name+" is not declared")
		}
	}
	return out
}

// find returns a header, ignoring the case of its name.
func find(h http.Header, name string) (string, bool) {
	for key, values := range h {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0], true
		}
	}
	return "", false
}

// typed converts a header's text to the type in its schema.
func typed(schema any, value string) any {
	if s, ok := schema.(map[string]any); ok && s["type"] == "integer" {
		return json.Number(value)
	}
	return value
}

func (a *responses) validate(pointer, what string, value any) []string {
	schema := a.schemas[pointer]
	if schema == nil {
		var err error
		if schema, err = a.compiler.Compile(docURL + "#" + pointer); err != nil {
			return []string{err.Error()}
		}
		a.schemas[pointer] = schema
	}
	if err := schema.Validate(value); err != nil {
		return []string{what + ": " + err.Error()}
	}
	return nil
}

// at returns the object at a JSON pointer and its location, after following references.
func (a *responses) at(pointer string) (map[string]any, string) {
	var v any = a.tree
	for seg := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		m, _ := v.(map[string]any)
		v = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(seg)]
	}
	m, _ := v.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return a.at(strings.TrimPrefix(ref, "#"))
	}
	return m, pointer
}

func escape(seg string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(seg) }
