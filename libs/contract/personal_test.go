package contract_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
)

const orderBody = `{"id":"o1","object":"order","metadata":{"b":"1"},"buyer":"Ann","note":"n","bag":{"x":"Ann"},"tags":["Ann"],"age":41,` +
	`"contacts":[{"role":"<&>","phone":"1","calls":[{"phone":"2"}]}],"first":{"role":"r","phone":"3"},"unknown":[1.0]}`

func TestErase(t *testing.T) {
	t.Parallel()
	c := load(t)
	const want = `{"id":"o1","object":"order","metadata":{"b":"1"},"buyer":"","note":null,"bag":null,"tags":{},"age":0,` +
		`"contacts":[{"role":"<&>","phone":"","calls":[{"phone":""}]}],"first":{"role":"r","phone":""},"unknown":[1.0]}`
	for range 2 { // erasing twice changes nothing
		got, err := c.Erase([]byte(orderBody))
		if err != nil || string(got) != want {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
		}
	}
	got, previous, err := c.EraseChange("order", []byte(orderBody), []byte(`{"note":"old","status":"open"}`))
	if err != nil || string(got) != want || string(previous) != `{"note":null,"status":"open"}` {
		t.Errorf("a change: %s, %s, %v", got, previous, err)
	}
	for _, body := range []string{`{"object":"nothing","buyer":"x"}`, `{"buyer":"x"}`} {
		if got, err := c.Erase([]byte(body)); err != nil || string(got) != body {
			t.Errorf("of no kind: %s, %v", got, err)
		}
	}
	if _, _, err := c.EraseChange("order", []byte(orderBody), []byte(`{`)); err == nil {
		t.Error("a broken change was erased")
	}
	if _, err := c.Erase([]byte(`{`)); err == nil {
		t.Error("a broken body was erased")
	}
	if !c.HasPersonal("order") || c.HasPersonal("shelf") || c.HasPersonal("nothing") {
		t.Error("which kinds hold a person's data")
	}
}

// A field that is added later is erased because it is marked, without other changes.
func TestAFieldAddedLaterIsErased(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("testdata/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const last = "        age: { type: integer, x-personal: true }\n"
	later := strings.Replace(string(doc), last, last+"        fax: { type: string, x-personal: true }\n", 1)
	for contractText, want := range map[string]string{string(doc): `{"object":"order","fax":"77"}`, later: `{"object":"order","fax":""}`} {
		c, err := contract.Load([]byte(contractText))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Erase([]byte(`{"object":"order","fax":"77"}`)); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}

// persons are the resources that describe a person, including those that the contract does not have yet.
var persons = map[string]bool{"customer": true, "lead": true, "quote": true}

// Each property of a schema that describes a person specifies whether it is personal.
func TestPersonalSchemasMarkEachProperty(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]yaml.Node `yaml:"properties"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(proto.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, schema := range doc.Components.Schemas {
		var unmarked []string
		object := schema.Properties["object"]
		personal := persons[value(&object, "const")]
		for property, node := range schema.Properties {
			switch value(&node, "x-personal") {
			case "true", "false":
				personal = true
			default:
				unmarked = append(unmarked, property)
			}
		}
		if !personal {
			continue
		}
		if found++; len(unmarked) > 0 {
			t.Errorf("%s: x-personal is neither true nor false on %v", name, unmarked)
		}
	}
	if found < 2 {
		t.Errorf("%d schemas are about a person", found)
	}
}

func value(n *yaml.Node, key string) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// A response with personal data is never cached outside its service. A response without personal data is cached.
func TestPersonalOperations(t *testing.T) {
	t.Parallel()
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{
		"createCustomer": true, "updateCustomer": true, "getCustomer": true, "listCustomers": true,
		"retryDelivery": true, "listDeliveries": true,
		"createBooking": false, "updateBooking": false, "cancelBooking": false, "repriceBooking": false, "createUnit": false, "replayEvents": false,
		"listBookings": true, "getBooking": true, // with expand=customer
	} {
		if op := c.Operation(id); op.Personal != want || op.Cacheable() == want {
			t.Errorf("%s: personal %v", id, op.Personal)
		}
	}
}
