package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
)

// TestTheWholeContractIsFresh fails if make gen was not run.
func TestTheWholeContractIsFresh(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := readExamples(os.DirFS("../examples"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := expand(source, examples)
	if err != nil {
		t.Fatal(err)
	}
	if string(whole) != string(proto.OpenAPI) {
		t.Error("api/openapi.yaml is stale: run make gen")
	}
	types, err := eventTypes(source)
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile("../eventtypes.gen.go")
	if err != nil || string(types) != string(written) {
		t.Errorf("eventtypes.gen.go is stale: run make gen (%v)", err)
	}
	names, err := fields(source)
	if err != nil {
		t.Fatal(err)
	}
	if written, err = os.ReadFile("../fields.gen.go"); err != nil || string(names) != string(written) {
		t.Errorf("fields.gen.go is stale: run make gen (%v)", err)
	}
}

const small = `# A comment.
openapi: 3.1.0
paths:
  /things:
    get:
      operationId: listThings
      description: Lists things.
      x-required-scopes: ["read:things"]
      parameters: [{ $ref: "#/components/parameters/Cursor" }]
      responses:
        "200": { description: Things., content: { application/json: { schema: { $ref: "#/components/schemas/ThingList" } } } }
  /things/{id}:
    patch:
      operationId: updateThing
      description: Changes a thing.
      x-required-scopes: ["write:things"]
      x-error-codes: [slot_unavailable]
      parameters:
        - { $ref: "#/components/parameters/UnitId" }
        - { $ref: "#/components/parameters/IdempotencyKey" }
        - { $ref: "#/components/parameters/IfMatch" }
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Thing" } } } }
      responses:
        "200": { description: The thing., content: { application/json: { schema: { $ref: "#/components/schemas/Thing" } } } }
components:
  securitySchemes: { oauth: { type: oauth2, flows: { authorizationCode: {} } } }
  schemas:
    Thing: { properties: { version: { type: integer } } }
    ThingList: { properties: { data: { type: array } } }
    EventType: { type: string, x-event-types: { thing.made: { scope: "read:things", description: A thing was made. } } }
    EventTypeWrite: { type: string }
`

// tree is the part of a whole document that the tests read.
type tree struct {
	Paths map[string]map[string]struct {
		Description string
		Codes       []string                  `yaml:"x-error-codes"`
		Security    []map[string][]string     `yaml:"security"`
		Samples     []struct{ Source string } `yaml:"x-codeSamples"`
		Body        struct {
			Content map[string]struct{ Example any }
		} `yaml:"requestBody"`
		Responses map[string]struct {
			Ref     string         `yaml:"$ref"`
			Headers map[string]any `yaml:"headers"`
			Content map[string]struct{ Example any }
		}
	}
	Components struct {
		SecuritySchemes map[string]struct {
			Flows map[string]struct{ Scopes map[string]string }
		} `yaml:"securitySchemes"`
		Schemas map[string]struct {
			Enum     []string
			Meanings map[string]string `yaml:"x-enumDescriptions"`
		}
	}
}

func expanded(t *testing.T, source string, examples map[string]example) tree {
	t.Helper()
	whole, err := expand([]byte(source), examples)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(whole), firstLine+"openapi: 3.1.0\n") {
		t.Errorf("it begins with %.200s", whole)
	}
	var doc tree
	if err := yaml.Unmarshal(whole, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestAnIDWithoutACode checks that the generator rejects an id in a path without a code, because its operations would lack the 404.
func TestAnIDWithoutACode(t *testing.T) {
	t.Parallel()
	source := strings.ReplaceAll(small, "UnitId", "ThingId") + "  parameters:\n    ThingId: { name: id, in: path, required: true }\n"
	if _, err := expand([]byte(source), nil); err == nil || !strings.Contains(err.Error(), "updateThing: the parameter ThingId has no code: add thing_not_found") {
		t.Errorf("got %v", err)
	}
}

func TestAnOperationGetsWhatFollowsFromItsForm(t *testing.T) {
	t.Parallel()
	doc := expanded(t, small, nil)
	list, change := doc.Paths["/things"]["get"], doc.Paths["/things/{id}"]["patch"]
	for name, tc := range map[string]struct{ got, want []string }{
		"list, statuses": {keys(list.Responses), []string{"200", "400", "401", "403", "422", "429", "500", "503", "504"}},
		"list, headers": {keys(list.Responses["200"].Headers), []string{
			"RateLimit", "RateLimit-Limit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset", "X-Request-Id", "X-Service-Scope",
		}},
		"change, statuses": {keys(change.Responses), []string{"200", "400", "401", "403", "404", "409", "412", "413", "422", "429", "500", "503", "504"}},
		"change, headers": {keys(change.Responses["200"].Headers), []string{
			"ETag", "Idempotent-Replayed", "Preference-Applied", "RateLimit", "RateLimit-Limit", "RateLimit-Policy", "RateLimit-Remaining",
			"RateLimit-Reset", "X-Ignored-Fields", "X-Request-Id", "X-Service-Scope",
		}},
		"by API key":  {list.Security[0]["bearer"], []string{"read:things"}},
		"by token":    {list.Security[1]["oauth"], []string{"read:things"}},
		"scopes":      {keys(doc.Components.SecuritySchemes["oauth"].Flows["authorizationCode"].Scopes), []string{"read:things", "write:things"}},
		"event types": {doc.Components.Schemas["EventTypeWrite"].Enum, []string{"*", "thing.made"}},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
	for _, code := range []string{"unit_not_found", "mode_mismatch", "slot_unavailable", "idempotency_mismatch", "version_mismatch", "malformed_json"} {
		if !slices.Contains(change.Codes, code) || strings.Contains(change.Description, code) || slices.Contains(list.Codes, code) {
			t.Errorf("%s: %v; %v\n%s", code, change.Codes, list.Codes, change.Description)
		}
	}
	if !slices.Contains(list.Codes, "invalid_cursor") || slices.Contains(change.Codes, "invalid_cursor") {
		t.Errorf("invalid_cursor: %v, %v", list.Codes, change.Codes)
	}
	if got := change.Responses["409"].Ref; got != "#/components/responses/Conflict" {
		t.Errorf("409 refers to %q", got)
	}
	if got := doc.Components.Schemas["EventType"].Meanings["thing.made"]; got != "A thing was made. Needs `read:things`." {
		t.Errorf("thing.made: %q", got)
	}
}

func keys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestAnExampleStandsInTheContract(t *testing.T) {
	t.Parallel()
	var e example
	const text = `{"request":{"path":"/things/th_1","headers":{"Idempotency-Key":"k"},"body":{"name":"it's"}},"response":{"body":{"version":2}}}`
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	op := expanded(t, small, map[string]example{"updateThing": e}).Paths["/things/{id}"]["patch"]
	const curl = `curl -X PATCH "$BASE_URL/things/th_1" \
  -H "Authorization: Bearer $API_KEY" \
  -H 'Idempotency-Key: k' \
  -H 'Content-Type: application/json' \
  -d '{
  "name": "it'\''s"
}'`
	if len(op.Samples) != 1 || op.Samples[0].Source != curl {
		t.Errorf("curl: %v", op.Samples)
	}
	if op.Body.Content["application/json"].Example == nil || op.Responses["200"].Content["application/json"].Example == nil {
		t.Errorf("no example: %+v", op)
	}
}

func TestWhatCannotBeExpandedIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, new, want string
		examples       map[string]example
	}{
		"a code that is unknown":     {old: "slot_unavailable", new: "no_such_code", want: "no_such_code"},
		"no success response":        {old: `"200": { description: Things`, new: `"404": { description: Things`, want: "no 2xx response"},
		"an operation without words": {old: "      description: Lists things.\n", want: "no description"},
		"an example of nothing":      {examples: map[string]example{"getThing": {}}, want: "no such operation"},
		"no YAML":                    {old: "openapi: 3.1.0", new: "openapi: [", want: "read openapi.yaml"},
	} {
		if _, err := expand([]byte(strings.Replace(small, tc.old, tc.new, 1)), tc.examples); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// TestAPublicOperation checks that an operation without a credential has no code, header or scope that belongs to credentials, and
// that its 304 has the headers of its response.
func TestAPublicOperation(t *testing.T) {
	t.Parallel()
	const public = `# A comment.
openapi: 3.1.0
paths:
  /calendar/{token}.ics:
    get:
      operationId: getCalendar
      description: Reads a calendar.
      x-public: true
      x-required-scopes: []
      parameters: [{ $ref: "#/components/parameters/CalendarToken" }]
      responses:
        "200": { description: A calendar., content: { text/calendar: { schema: { type: string } } } }
        "304": { description: Unchanged. }
components:
  parameters:
    CalendarToken: { name: token, in: path }
`
	whole, err := expand([]byte(public), map[string]example{})
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range []string{"security: []", "calendar_feed_not_found", "rate_limited"} {
		if !strings.Contains(string(whole), missing) {
			t.Errorf("%q is missing in\n%s", missing, whole)
		}
	}
	if n := strings.Count(string(whole), "#/components/headers/ContentETag"); n != 2 {
		t.Errorf("the entity tag is declared %d times", n)
	}
	for _, wrong := range []string{"bearer", "credential", "ServiceScope", "RateLimitLimit", "mode_mismatch", "insufficient_scope"} {
		if strings.Contains(string(whole), wrong) {
			t.Errorf("%q is in\n%s", wrong, whole)
		}
	}
}
