package yamldoc_test

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/yamldoc"
)

const document = `
first: {$ref: '#/parts/a~1b'}
parts:
  a/b: {$ref: '#/parts/c'}
  c: {name: the target}
outside: {$ref: parts/c}
missing: {$ref: '#/parts/d'}
loop: {$ref: '#/loop'}
either:
  allOf: [{$ref: '#/parts/c'}, {name: second}]
  anyOf: [{name: third}]
`

func parse(t *testing.T) *yamldoc.Document {
	t.Helper()
	d, err := yamldoc.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Follow returns the target of a reference and its pointer. A reference without a target is an error that names its line.
func TestFollow(t *testing.T) {
	t.Parallel()
	d := parse(t)
	n, pointer, err := d.Follow(yamldoc.Child(d.Root, "first"), "/first")
	if err != nil || pointer != "/parts/c" || yamldoc.Text(n, "name") != "the target" {
		t.Errorf("%v at %q: %v", n, pointer, err)
	}
	for key, want := range map[string]string{
		"outside": `line 6: cannot resolve $ref "parts/c"`,
		"missing": `line 7: cannot resolve $ref "#/parts/d"`,
		"loop":    "line 8: $ref refers to itself",
	} {
		if _, _, err := d.Follow(yamldoc.Child(d.Root, key), ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Alternatives are those of all three keywords, with their references resolved.
func TestAlternatives(t *testing.T) {
	t.Parallel()
	d := parse(t)
	var names []string
	err := d.Alternatives(yamldoc.Child(d.Root, "either"), func(alt *yaml.Node) error {
		names = append(names, yamldoc.Text(alt, "name"))
		return nil
	})
	if want := []string{"the target", "second", "third"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q: %v", names, err)
	}
}

// Pairs are in the order of the document.
func TestPairs(t *testing.T) {
	t.Parallel()
	var keys []string
	for key := range yamldoc.Pairs(parse(t).Root) {
		keys = append(keys, key)
	}
	if got := strings.Join(keys, " "); got != "first parts outside missing loop either" {
		t.Error(got)
	}
}

// A document that is not one mapping is an error.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "- a list", "text", "a: [", "a: 1\na: 2: 3"} {
		if _, err := yamldoc.Parse([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// The keys of a path item that are methods are distinguished from its other keys.
func TestIsMethod(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{"get": true, "PATCH": true, "parameters": false, "x-service": false, "": false} {
		if yamldoc.IsMethod(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}
