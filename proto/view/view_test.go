package view_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/view"
)

type object = map[string]any

// documents returns the served documents as JSON objects.
func documents(t *testing.T) (contract, sdk, webhooks object) {
	t.Helper()
	d, err := view.New(proto.OpenAPI, "https://booking.test/")
	if err != nil {
		t.Fatal(err)
	}
	for into, node := range map[*object]*yaml.Node{&contract: d.Contract, &sdk: d.SDK, &webhooks: d.Webhooks} {
		text, err := view.JSON(node)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	return contract, sdk, webhooks
}

// at returns the value at keys.
func at(t *testing.T, value any, keys ...string) any {
	t.Helper()
	for _, key := range keys {
		parent, ok := value.(object)
		if !ok || parent[key] == nil {
			t.Fatalf("no %s in %v", key, keys)
		}
		value = parent[key]
	}
	return value
}

func text(t *testing.T, value any) string {
	t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAddressesAreAbsolute checks that a tool can use the documents without knowing where they are from.
func TestAddressesAreAbsolute(t *testing.T) {
	t.Parallel()
	contract, sdk, webhooks := documents(t)
	if got := text(t, webhooks["servers"]); !strings.Contains(got, "https://receiver.example.com/hooks") {
		t.Errorf("the servers of the webhooks are %s", got)
	}
	for _, doc := range []object{contract, sdk} {
		got := text(t, doc["servers"]) + text(t, doc["externalDocs"]) + text(t, at(t, doc, "components", "securitySchemes"))
		for _, want := range []string{"https://booking.test/api/v1", "https://booking.test/docs/errors", "https://booking.test/oauth/authorize"} {
			if !strings.Contains(got, `"`+want+`"`) {
				t.Errorf("no %s in %s", want, got)
			}
		}
		if relative := regexp.MustCompile(`"(url|\w+Url)":"/[^"]*"|\]\(/[^)]*\)`).FindString(text(t, doc)); relative != "" {
			t.Errorf("%s is relative", relative)
		}
	}
}

// TestTheSDKView checks what generators of clients do not get.
func TestTheSDKView(t *testing.T) {
	t.Parallel()
	_, sdk, _ := documents(t)
	for path, item := range at(t, sdk, "paths").(object) {
		for method, op := range item.(object) {
			responses := at(t, op, "responses").(object)
			for status, response := range responses {
				if status != "default" && !strings.HasPrefix(status, "2") && status != "304" {
					t.Errorf("%s %s has the status %s", method, path, status)
				}
				if response.(object)["headers"] != nil || strings.Contains(text(t, response), "text/csv") {
					t.Errorf("%s %s %s has headers or CSV", method, path, status)
				}
			}
			if responses["default"] == nil {
				t.Errorf("%s %s has no default error", method, path)
			}
		}
	}
	if n := len(at(t, sdk, "components", "responses").(object)); n != 1 {
		t.Errorf("%d responses, want the error only", n)
	}
	for name, want := range map[string]string{"Metadata": `["object","null"]`, "MetadataRead": `"object"`} {
		if got := at(t, sdk, "components", "schemas", name).(object); text(t, got["type"]) != want || got["oneOf"] != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, property := range []string{"error", "errors", "message"} {
		at(t, sdk, "components", "schemas", "ErrorResponse", "properties", property)
	}
	if got := text(t, at(t, sdk, "components", "schemas", "ErrorResponse", "required")); got != `["error"]` {
		t.Errorf("each error requires %s", got)
	}
}

// TestNothingUnused checks that each component of the derived documents is used, and that each reference has a target.
func TestNothingUnused(t *testing.T) {
	t.Parallel()
	contract, sdk, webhooks := documents(t)
	for name, doc := range map[string]object{"contract": contract, "sdk": sdk, "webhooks": webhooks} {
		all := text(t, doc)
		for _, found := range regexp.MustCompile(`"\$ref":"#/([^"]+)"`).FindAllStringSubmatch(all, -1) {
			at(t, doc, strings.Split(found[1], "/")...)
		}
		for kind, components := range at(t, doc, "components").(object) {
			for component := range components.(object) {
				if kind != "securitySchemes" && component != "WebhookEvent" && !strings.Contains(all, `"#/components/`+kind+"/"+component+`"`) {
					t.Errorf("%s: %s %s is not used", name, kind, component)
				}
			}
		}
	}
}

// TestEventsAreTyped checks that each event type has an object of its own, in the API and in the document of the webhooks.
func TestEventsAreTyped(t *testing.T) {
	t.Parallel()
	contract, sdk, webhooks := documents(t)
	for _, doc := range []object{contract, sdk, webhooks} {
		union := at(t, doc, "components", "schemas", "WebhookEvent").(object)
		mapping := at(t, union, "discriminator", "mapping").(object)
		if len(mapping) != len(proto.EventTypes) || len(union["oneOf"].([]any)) != len(proto.EventTypes) {
			t.Errorf("%d of %d types", len(mapping), len(proto.EventTypes))
		}
		for _, e := range proto.EventTypes {
			name, _ := strings.CutPrefix(fmt.Sprint(mapping[e.Name]), "#/components/schemas/")
			event := at(t, doc, "components", "schemas", name, "properties")
			if got := at(t, event, "type", "const"); got != e.Name {
				t.Errorf("%s has the type %v", name, got)
			}
			data, _ := strings.CutPrefix(fmt.Sprint(at(t, event, "data", "$ref")), "#/components/schemas/")
			resource, _ := strings.CutPrefix(fmt.Sprint(at(t, doc, "components", "schemas", data, "properties", "object", "$ref")), "#/components/schemas/")
			kind := fmt.Sprint(at(t, doc, "components", "schemas", resource, "properties", "object", "const"))
			if first, _, _ := strings.Cut(e.Name, "."); !strings.HasPrefix(kind, first) {
				t.Errorf("%s contains a %s", e.Name, kind)
			}
		}
	}
	for _, schema := range []any{
		at(t, contract, "components", "schemas", "EventList", "properties", "data", "items"),
		at(t, contract, "paths", "/events/{id}", "get", "responses", "200", "content", "application/json", "schema"),
	} {
		if got := text(t, schema); !strings.Contains(got, "#/components/schemas/WebhookEvent") {
			t.Errorf("an event is %s", got)
		}
	}
	for _, e := range proto.EventTypes {
		at(t, webhooks, "webhooks", e.Name, "post", "requestBody", "content", "application/json", "schema", "$ref")
	}
	if contract["webhooks"] != nil {
		t.Error("the contract has webhooks, at which two generators fail")
	}
}

// TestHeadersOfWebhooks checks that the document has the headers of the delivery in the guide for receivers.
func TestHeadersOfWebhooks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guides/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, request, _ := strings.Cut(string(page), "POST /hooks HTTP/1.1\n")
	request, _, _ = strings.Cut(request, "\n\n")
	var want, got []string
	for line := range strings.Lines(request) {
		if name, _, _ := strings.Cut(line, ":"); name != "Content-Type" {
			want = append(want, name)
		}
	}
	_, _, webhooks := documents(t)
	for _, parameter := range at(t, webhooks, "components", "parameters").(object) {
		got = append(got, fmt.Sprint(at(t, parameter, "name")))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) < 5 {
		t.Errorf("headers %v, want %v", got, want)
	}
}

// TestJSONIsInOrder checks that JSON has the order and the values of the document.
func TestJSONIsInOrder(t *testing.T) {
	t.Parallel()
	var doc yaml.Node
	const source = "z: [1, -2.5, true, null, '1', 2027-07-01]\na: { b: \"<&>\\n\", c: {}, d: [] }\n"
	if err := yaml.Unmarshal([]byte(source), &doc); err != nil {
		t.Fatal(err)
	}
	got, err := view.JSON(doc.Content[0])
	if want := `{"z":[1,-2.5,true,null,"1","2027-07-01"],"a":{"b":"<&>\n","c":{},"d":[]}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// TestWhatIsNoContract checks the error for a text that is not a document.
func TestWhatIsNoContract(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "- a", "a: ["} {
		if _, err := view.New([]byte(text), ""); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
