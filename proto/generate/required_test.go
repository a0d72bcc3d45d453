package main

import (
	"strings"
	"testing"
)

// TestAResourceRequiresItsProperties checks that a resource requires all of its properties except those that are marked. Other
// schemas specify the required properties themselves.
func TestAResourceRequiresItsProperties(t *testing.T) {
	t.Parallel()
	const source = `openapi: 3.1.0
paths: {}
components:
  schemas:
    Thing:
      type: object
      properties:
        object: { type: string, const: thing }
        name: { type: string }
        owner: { type: object, x-optional: true }
    ThingCreate:
      type: object
      properties: { name: { type: string } }
`
	whole, err := expand([]byte(source), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(whole); !strings.Contains(got, "required: [object, name]\n      properties:") || strings.Count(got, "required") != 1 || strings.Contains(got, "x-optional") {
		t.Errorf("%s", got)
	}
	if _, err := expand([]byte(strings.Replace(source, "type: object\n", "type: object\n      required: [name]\n", 1)), nil); err == nil {
		t.Error("a list of its own is overwritten")
	}
}
