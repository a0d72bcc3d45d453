package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The scripts run before and after each request of the collection.
const (
	postmanBefore = `const day = new Date(Date.now() + 60 * 24 * 60 * 60 * 1000);
day.setUTCDate(day.getUTCDate() + 6 - day.getUTCDay());
pm.collectionVariables.set("eventDate", day.toISOString().slice(0, 10));`

	postmanAfter = `pm.test("the status is 2xx", () => pm.expect(pm.response.code).to.be.within(200, 299));
if ((pm.response.headers.get("Content-Type") || "").startsWith("application/json") && pm.response.code < 300) {
  const body = pm.response.json();
  const object = Array.isArray(body.data) ? body.data[0] : body;
  if (object && object.object && object.id) {
    pm.collectionVariables.set(object.object.replace(/_(.)/g, (_, letter) => letter.toUpperCase()) + "Id", object.id);
  }
}`
)

// object is a JSON object whose names are in the order of the pairs.
type object []pair

type pair struct {
	name  string
	value any
}

// MarshalJSON returns the object.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		text := json.NewEncoder(&out)
		text.SetEscapeHTML(false)
		if err := text.Encode(p.name); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := text.Encode(p.value); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// postman returns the collection in the format of Postman, version 2.1.
func postman(c collection) ([]byte, error) {
	variables := []object{{{"key", "baseUrl"}, {"value", localURL}}, {{"key", "apiKey"}, {"value", ""}}, {{"key", "eventDate"}, {"value", ""}}}
	for _, id := range c.ids {
		variables = append(variables, object{{"key", id}, {"value", ""}})
	}
	var folders []object
	for _, f := range c.folders {
		var items []object
		for _, r := range f.requests {
			items = append(items, object{{"name", r.name}, {"request", postmanRequest(r)}})
		}
		folders = append(folders, object{{"name", f.name}, {"description", f.docs}, {"item", items}})
	}
	var out bytes.Buffer
	text := json.NewEncoder(&out)
	text.SetEscapeHTML(false)
	text.SetIndent("", "  ")
	err := text.Encode(object{
		{"info", object{
			{"name", "Holdfast"},
			{"description", c.docs},
			{"schema", "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
		}},
		{"auth", object{{"type", "bearer"}, {"bearer", []object{{{"key", "token"}, {"value", "{{apiKey}}"}, {"type", "string"}}}}}},
		{"event", []object{postmanScript("prerequest", postmanBefore), postmanScript("test", postmanAfter)}},
		{"variable", variables},
		{"item", folders},
	})
	if err != nil {
		return nil, fmt.Errorf("postman: %w", err)
	}
	return out.Bytes(), nil
}

func postmanScript(event, text string) object {
	return object{{"listen", event}, {"script", object{{"type", "text/javascript"}, {"exec", strings.Split(text, "\n")}}}}
}

// postmanRequest returns a request.
func postmanRequest(r request) object {
	raw := "{{baseUrl}}" + r.path
	if sent := sentQuery(r); sent != "" {
		raw += "?" + sent
	}
	address := object{{"raw", raw}, {"host", []string{"{{baseUrl}}"}}, {"path", strings.Split(strings.TrimPrefix(r.path, "/"), "/")}}
	if r.query != nil {
		address = append(address, pair{"query", postmanValues(r.query)})
	}
	out := object{{"method", r.method}, {"url", address}, {"description", r.docs}}
	if r.public {
		out = append(out, pair{"auth", object{{"type", "noauth"}}})
	}
	if r.headers != nil {
		out = append(out, pair{"header", postmanValues(r.headers)})
	}
	if r.body != "" {
		out = append(out, pair{"body", object{
			{"mode", "raw"}, {"raw", r.body}, {"options", object{{"raw", object{{"language", "json"}}}}},
		}})
	}
	return out
}

func postmanValues(values []value) []object {
	var all []object
	for _, v := range values {
		o := object{{"key", v.name}, {"value", v.value}}
		if v.docs != "" {
			o = append(o, pair{"description", v.docs})
		}
		if v.off {
			o = append(o, pair{"disabled", true})
		}
		all = append(all, o)
	}
	return all
}

// sentQuery returns the query of the parameters that are switched on.
func sentQuery(r request) string {
	var sent []string
	for _, v := range r.query {
		if !v.off {
			sent = append(sent, v.name+"="+v.value)
		}
	}
	return strings.Join(sent, "&")
}
