package contract_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/contract"
)

// Stored responses, signatures and caches depend on these bytes, so they must equal those that encoding/json wrote before.
func TestEncodeWritesTheBytesOfEncodingJSON(t *testing.T) {
	t.Parallel()
	type inner struct {
		Name string `json:"name"`
		Note string `json:"note,omitempty"`
	}
	for name, v := range map[string]any{
		"markup":          "<a href=\"x\">&amp;</a>",
		"controls":        "\x00\x01\b\f\n\r\t\x1f\x7f",
		"outside the BMP": "\U0001F600 caf\u00e9",
		"integers":        []any{int64(1<<62 + 1), uint64(1<<64 - 1), -1, 0},
		"floats":          []float64{0, 0.1, 1e21, 1e20, 1e-7, 1e-6, 100, 123456789.123},
		"map order":       map[string]int{"b": 1, "a": 2, "B": 3, "": 4, "\u00e4": 5},
		"nil slice":       struct{ A []int }{},
		"nil map":         struct{ A map[string]int }{},
		"bytes":           []byte("bytes"),
		"raw":             json.RawMessage(`{ "b": 1.50, "a":"\u003c\ud83d\ude00<", "n": -0, "e": 1E5 }`),
		"omitempty":       []inner{{Name: "a"}, {Name: "b", Note: "c"}},
		"times":           []time.Time{time.Date(2040, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2040, 1, 2, 3, 4, 5, 120_000_000, time.FixedZone("", -4*3600))},
		"nullable":        struct{ A, B nullable.Nullable[string] }{nullable.NewNullNullable[string](), nullable.NewNullableWithValue("<")},
		"nullable, absent": struct {
			A nullable.Nullable[int] `json:"a,omitempty"`
		}{},
		"pointer":  struct{ A *int }{new(5)},
		"embedded": struct{ inner }{inner{Name: "x"}},
		"any":      map[string]any{"a": []any{nil, true, "x", 1.5, map[string]any{"z": nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(v); err != nil {
				t.Fatal(err)
			}
			got, err := contract.Encode(v)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != strings.TrimSuffix(want.String(), "\n") {
				t.Errorf("got  %q\nwant %q", got, want.String())
			}
			to := bytes.NewBufferString("x")
			if err := contract.EncodeTo(to, v); err != nil || to.String() != "x"+string(got) {
				t.Errorf("appended: %q, %v", to, err)
			}
		})
	}
}

func TestEncodeWritesPlainUTF8(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"a\xffb\U0001F600\u2028\u2029<", json.RawMessage("\"a\uFFFDb\U0001F600\u2028\u2029<\"")} {
		got, err := contract.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if want := "\"a\uFFFDb\U0001F600\u2028\u2029<\""; string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEncodeRefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{"channel": make(chan int), "raw": json.RawMessage(`{"a":`)} {
		if body, err := contract.Encode(v); err == nil {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestSameBody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a, b any
		same bool
	}{
		"equal":            {map[string]any{"a": 1, "b": nil}, map[string]any{"b": nil, "a": 1}, true},
		"another value":    {map[string]any{"a": 1}, map[string]any{"a": 2}, false},
		"null and nothing": {map[string]any{"a": nil}, map[string]any{}, false},
	} {
		if same, err := contract.SameBody(tc.a, tc.b); same != tc.same || err != nil {
			t.Errorf("%s: %v, %v", name, same, err)
		}
	}
	for _, pair := range [][2]any{{make(chan int), 1}, {1, make(chan int)}} {
		if _, err := contract.SameBody(pair[0], pair[1]); err == nil {
			t.Errorf("%v: no error", pair)
		}
	}
}
