package apitest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Written checks that every field of a resource is stored and returned: sent contains each field of the generated body B, and the
// response returns each of them with the value that was sent. except names the fields that are returned in another form, or that
// cannot be sent with the others.
func Written[B any](t *testing.T, sent string, body []byte, except ...string) {
	t.Helper()
	var want, got map[string]any
	if err := json.Unmarshal([]byte(sent), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range names[B]() {
		value, given := want[name]
		switch {
		case slices.Contains(except, name):
		case !given:
			t.Errorf("%s can be written: send it in this test too", name)
		case !reflect.DeepEqual(got[name], value):
			t.Errorf("%s: sent %v, the response has %v", name, value, got[name])
		}
	}
}

// SameFields checks that the generated bodies A and B have the same fields, for a service that converts both as B. If only B had a
// field, a request of A could set it although its contract does not define it.
func SameFields[A, B any](t *testing.T) {
	t.Helper()
	if a, b := names[A](), names[B](); !slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))) {
		t.Errorf("%T has the fields %v, %T has %v", *new(A), a, *new(B), b)
	}
}

// names returns the JSON names of the fields of a generated body.
func names[B any]() (out []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[B]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); !field.Anonymous {
			out = append(out, name)
		}
	}
	return out
}
