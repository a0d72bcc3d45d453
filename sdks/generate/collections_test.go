package main

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast.dev/sdks/generate/model"
)

// TestCollections checks the requests of each form of operation in both formats.
func TestCollections(t *testing.T) {
	t.Parallel()
	id := []model.Param{{Name: "id", Required: true, Example: "th_01k00000000000000000000001"}}
	things := model.Resource{Name: model.Name{"small", "things"}, Description: "Things.", Operations: []model.Operation{
		{
			ID: "listThings", Kind: model.Page, Method: "GET", Path: "/things", Summary: "List things", Description: "Returns things.",
			Scopes: []string{"read:things"}, QueryParams: []model.Param{
				{Name: "from", Required: true, Type: "string", Format: "date", Example: "2027-07-03"},
				{Name: "other_id", Example: "th_01k00000000000000000000002"},
				{Name: "status", Array: true, Example: []any{"open", "closed"}},
				{Name: "metadata", Map: true, Example: map[string]any{"order": "17"}},
			},
		},
		{
			ID: "createThing", Method: "POST", Path: "/things", Summary: "Create a thing", Idempotent: true, Strict: true,
			RequestExample: "{\n  \"event_date\": \"2027-07-03\",\n  \"thing_ids\": [\"th_01k00000000000000000000001\", \"zz_01k00000000000000000000001\"]\n}",
		},
		{ID: "deleteThing", Method: "DELETE", Path: "/things/{id}", PathParams: id, Summary: "Delete a thing", Conditional: true},
		{ID: "getFeed", Kind: model.Raw, Method: "GET", Path: "/feed.ics", MediaType: "text/calendar", Summary: "Get the feed", Public: true},
	}}
	for _, op := range chain.operations {
		things.Operations = append(things.Operations, model.Operation{ID: op, Method: "GET", Path: "/" + op, Summary: op})
	}
	files, err := collections(&model.Model{Resources: []model.Resource{things}})
	if err != nil {
		t.Fatal(err)
	}
	for path, parts := range map[string][]string{
		"bruno/Small things/List things.bru": {
			"meta {\n  name: List things\n  type: http\n  seq: 1\n}\n", "get {\n  url: {{baseUrl}}/things?from={{eventDate}}\n  body: none\n  auth: inherit\n}\n",
			"params:query {\n  from: {{eventDate}}\n  ~other_id: {{smallThingId}}\n  ~status: open,closed\n  ~metadata[order]: 17\n}\n",
			"docs {\n  Returns things.\n\n  Scope: `read:things`.\n}\n",
		},
		"bruno/Small things/Create a thing.bru": {
			"headers {\n  Idempotency-Key: {{$guid}}\n  Prefer: handling=strict\n}\n",
			"body:json {\n  {\n    \"event_date\": \"{{eventDate}}\",\n    \"thing_ids\": [\"{{smallThingId}}\", \"zz_01k00000000000000000000001\"]\n  }\n}\n",
		},
		"bruno/Small things/Delete a thing.bru": {"delete {\n  url: {{baseUrl}}/things/{{smallThingId}}\n", "headers {\n  ~If-Match: \"1\"\n}\n"},
		"bruno/Small things/Get the feed.bru":   {"  auth: none\n", "  Accept: text/calendar\n"},
		"bruno/Small things/folder.bru":         {"meta {\n  name: Small things\n  seq: 2\n}\n"},
		"bruno/Quick start/createService.bru":   {"  seq: 1\n"},
	} {
		for _, part := range parts {
			if !strings.Contains(string(files[path]), part) {
				t.Errorf("%s: %s\nhas no\n%s", path, files[path], part)
			}
		}
	}
	checkPostman(t, files["holdfast.postman_collection.json"])
}

// checkPostman checks some requests of Postman's collection.
func checkPostman(t *testing.T, document []byte) {
	t.Helper()
	type value struct {
		Key, Value string
		Disabled   bool
	}
	var c struct {
		Variable []value
		Item     []struct {
			Name string
			Item []struct {
				Name    string
				Request struct {
					Auth   *struct{ Type string }
					Header []value
					URL    struct {
						Raw   string
						Query []value
					}
					Body struct{ Raw string }
				}
			}
		}
	}
	if err := json.Unmarshal(document, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Item) != 2 || c.Item[0].Name != chain.name || len(c.Item[0].Item) != len(chain.operations) || c.Variable[len(c.Variable)-1].Key != "smallThingId" {
		t.Fatalf("%+v", c)
	}
	requests := c.Item[1].Item
	list, create, feed := requests[0].Request, requests[1].Request, requests[3].Request
	if list.URL.Raw != "{{baseUrl}}/things?from={{eventDate}}" || len(list.URL.Query) != 4 || list.URL.Query[0].Disabled || !list.URL.Query[1].Disabled || list.Auth != nil {
		t.Errorf("%+v", list)
	}
	if create.Header[0] != (value{Key: "Idempotency-Key", Value: "{{$guid}}"}) || !strings.Contains(create.Body.Raw, `"{{smallThingId}}"`) {
		t.Errorf("%+v", create)
	}
	if feed.Auth == nil || feed.Auth.Type != "noauth" {
		t.Errorf("%+v", feed)
	}
}

// TestCollectionsWithoutTheChain checks that each operation of the first folder must exist.
func TestCollectionsWithoutTheChain(t *testing.T) {
	t.Parallel()
	if _, err := collections(&model.Model{}); err == nil || !strings.Contains(err.Error(), "createService") {
		t.Error(err)
	}
}
