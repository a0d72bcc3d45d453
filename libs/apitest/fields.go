package apitest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Written checks that every field of a resource is stored and answered: sent has each field of the generated body B, and
// the answer has each of them with the value that was sent. except names the fields that are answered in another form,
// or that cannot be sent together with the others.
func Written[B any](t *testing.T, sent string, answer []byte, except ...string) {
	t.Helper()
	var want, got map[string]any
	if err := json.Unmarshal([]byte(sent), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[B]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, given := want[name]
		switch {
		case slices.Contains(except, name):
		case !given:
			t.Errorf("%s can be written: send it in this test too", name)
		case !reflect.DeepEqual(got[name], value):
			t.Errorf("%s: sent %v, the answer has %v", name, value, got[name])
		}
	}
}
