package main

import (
	"strings"
	"testing"
)

const exampleSchema = `{ "properties": {
  "name": { "type": "string", "enum": ["", "a", "b"] },
  "group": { "type": "object", "properties": { "port": { "type": "integer", "minimum": 1, "maximum": 9 }, "labels": { "$ref": "#/definitions/strings" } } },
  "context": { "type": "object", "properties": { "user": { "type": "integer" }, "level": { "type": "string" } } } },
  "definitions": { "strings": { "type": "object" } } }`

const exampleValues = `# About the file.

name: a # of the | release
context: # of <all> pods
  user: 1
group: # several values
  port: 2 # of the service
  # Labels
  # of all objects.
  labels: {}
`

func TestValuesPage(t *testing.T) {
	t.Parallel()
	page, err := valuesPage([]byte(exampleValues), []byte(exampleSchema))
	if err != nil {
		t.Fatal(err)
	}
	const want = "\n## General\n\n| value | type | default | description |\n|---|---|---|---|\n" +
		"| `name` | string: a, b | `a` | of the \\| release |\n" +
		"| `context` | object: level, user | `{\"user\":1}` | of \\<all> pods |\n" +
		"\n## group\n\n| value | type | default | description |\n|---|---|---|---|\n" +
		"| `group` | group |  | several values |\n" +
		"| `group.port` | integer, 1 to 9 | `2` | of the service |\n" +
		"| `group.labels` | object | `{}` | Labels of all objects. |\n"
	if got := strings.TrimPrefix(string(page), valuesHead); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestValuesAndSchemaAgree checks that a value that only one of the files has, and one without a comment, are errors that name it.
func TestValuesAndSchemaAgree(t *testing.T) {
	t.Parallel()
	for change, want := range map[[2]string]string{
		{"name: a", "nome: a"}:                      "values.schema.json: nome is missing, and in values.yaml",
		{"name: a # of the | release\n", ""}:        "values.yaml: name is missing, and in values.schema.json",
		{"port: 2", "prot: 2"}:                      "values.schema.json: group.prot is missing, and in values.yaml",
		{"  port: 2 # of the service\n", ""}:        "values.yaml: group.port is missing, and in values.schema.json",
		{"port: 2 # of the service", "port: 2"}:     "values.yaml: group.port has no comment",
		{"context: # of <all> pods", "context:"}:    "values.yaml: context has no comment",
		{"group: # several values", "group: #\n\t"}: "values.yaml: yaml",
	} {
		broken := strings.Replace(exampleValues, change[0], change[1], 1)
		if _, err := valuesPage([]byte(broken), []byte(exampleSchema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", change[1], err)
		}
	}
	if _, err := valuesPage([]byte(exampleValues), []byte("{")); err == nil || !strings.Contains(err.Error(), "values.schema.json") {
		t.Errorf("an invalid schema: %v", err)
	}
}
