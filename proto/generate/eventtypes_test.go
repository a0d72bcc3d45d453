package main

import (
	"strings"
	"testing"
)

const typesOnly = `openapi: 3.1.0
paths: {}
components:
  parameters:
    Types: { name: type, in: query, description: "{event types} at most.", schema: { type: array, items: { $ref: "#/components/schemas/EventType" } } }
  schemas:
    EventType:
      type: string
      x-event-types:
        thing.created: { scope: "read:things", description: A thing was made. }
        thing.updated: { scope: "read:things", description: A thing changed. }
    EventTypeWrite: { type: string }
    Names: { type: array, items: { type: string } }
`

// TestListsOfEventTypesHoldAllOfThem checks that the maximum size of a list of event types is the number of types. Other lists do
// not get a maximum.
func TestListsOfEventTypesHoldAllOfThem(t *testing.T) {
	t.Parallel()
	whole, err := expand([]byte(typesOnly), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`description: "2 at most."`, `{type: array, items: {$ref: "#/components/schemas/EventType"}, maxItems: 2}`, `Names: {type: array, items: {type: string}}`} {
		if !strings.Contains(string(whole), want) {
			t.Errorf("no %s in\n%s", want, whole)
		}
	}
}

// TestThePageOfEventsHasTheTypes checks that the table in the documentation contains the types of the contract, and that the text
// around it does not change.
func TestThePageOfEventsHasTheTypes(t *testing.T) {
	t.Parallel()
	const before, after = "# Events\n\n" + eventTable, "\nMore.\n\nEnd.\n"
	page, err := documentEventTypes([]byte(before+"| `old` | `x` | Old. |\n"+after), []byte(typesOnly))
	want := before + "| `thing.created` | `read:things` | A thing was made. |\n| `thing.updated` | `read:things` | A thing changed. |\n" + after
	if err != nil || string(page) != want {
		t.Errorf("%v\n%s", err, page)
	}
	if _, err := documentEventTypes([]byte("# Events\n"), []byte(typesOnly)); err == nil {
		t.Error("a page without the table is written")
	}
}
