package main

import (
	"strings"
	"testing"

	"holdfast.dev/sdks/generate/model"
)

// TestPyWrap checks that wrapped lines have a maximum length, continue with an indentation, and keep the words.
func TestPyWrap(t *testing.T) {
	t.Parallel()
	const text = `    status: Returns only rows with the Größe "a\b", and never """ as it is. ` + `aVeryLongWordThatHasNoPlaceAtWhichItCanBeDivided end`
	lines := pyWrap(text, 30)
	for i, line := range lines {
		if n := len([]rune(line)); n > 30 && !strings.Contains(line, "aVeryLongWord") {
			t.Errorf("%q has %d characters", line, n)
		}
		if i > 0 && !strings.HasPrefix(line, "        ") {
			t.Errorf("%q is not indented", line)
		}
	}
	got := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	want := strings.NewReplacer(`\`, `\\`, `"""`, `\"\"\"`).Replace(strings.TrimSpace(text))
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestPyNames checks names that Python does not accept.
func TestPyNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"from": "from_", "unit_id": "unit_id", "Last-Event-ID": "last_event_id"} {
		if got := pyName(model.Param{Name: name}); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestPySignature checks the order of parameters: those of the path, the body, and by name first those that are required.
func TestPySignature(t *testing.T) {
	t.Parallel()
	op := model.Operation{
		PathParams: []model.Param{{Name: "id"}}, Request: "BookingCancel", Idempotent: true, Conditional: true,
		QueryParams: []model.Param{{Name: "limit", Type: "integer"}, {Name: "from", Required: true}, {Name: "status", Array: true, Schema: "Status"}},
	}
	want := "id: str, body: types.BookingCancel | None = None, *, from_: str, limit: int | None = None, " +
		"status: types.Status | Sequence[types.Status] | None = None, **options: Unpack[ConditionalWriteOptions]"
	if got := strings.Join(pySignature(op), ", "); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
