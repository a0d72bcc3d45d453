package patch_test

import (
	"encoding/json"
	"testing"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/patch"
)

func TestAFieldIsAbsentNullOrAValue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		field    patch.Field[string]
		given    bool
		set      string  // of a property "old" that cannot be null
		nullable *string // of a property "old" that can be null
	}{
		"absent":          {patch.Field[string]{}, false, "old", new("old")},
		"null":            {patch.Null[string](), true, "old", nil},
		"value":           {patch.Value("new"), true, "new", new("new")},
		"absent pointer":  {patch.FromPointer[string](nil), false, "old", new("old")},
		"pointer":         {patch.FromPointer(new("new")), true, "new", new("new")},
		"absent nullable": {patch.FromNullable(nullable.Nullable[string]{}), false, "old", new("old")},
		"null nullable":   {patch.FromNullable(nullable.NewNullNullable[string]()), true, "old", nil},
		"nullable":        {patch.FromNullable(nullable.NewNullableWithValue("new")), true, "new", new("new")},
	} {
		set, old := "old", "old"
		pointer := &old
		tc.field.Set(&set)
		tc.field.SetNullable(&pointer)
		if tc.field.Given() != tc.given || set != tc.set || (pointer == nil) != (tc.nullable == nil) || pointer != nil && *pointer != *tc.nullable {
			t.Errorf("%s: given %v, set %q, nullable %v", name, tc.field.Given(), set, pointer)
		}
		if p := tc.field.Pointer(); (p != nil) != (tc.set == "new") {
			t.Errorf("%s: pointer %v", name, p)
		}
	}
}

func TestEmptyMetadataIsNil(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{``: ``, `null`: ``, `{}`: ``, `[]`: ``, `{"b":"1"}`: `{"b":"1"}`, `[""]`: `[""]`} {
		got := json.RawMessage(`{"old":"1"}`)
		patch.SetMetadata(patch.Value(json.RawMessage(in)), &got)
		if string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	got := json.RawMessage(`{"old":"1"}`)
	if patch.SetMetadata(patch.Field[json.RawMessage]{}, &got); string(got) != `{"old":"1"}` {
		t.Errorf("absent: got %s", got)
	}
	if patch.SetMetadata(patch.Null[json.RawMessage](), &got); got != nil {
		t.Errorf("null: got %s", got)
	}
}
