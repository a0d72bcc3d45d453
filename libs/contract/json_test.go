package contract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
)

// The parsers of the gateway and of the services accept and reject the same bodies with the same messages.
func TestParse(t *testing.T) {
	t.Parallel()
	const general = "The body must be a single JSON object in UTF-8."
	deep := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	list := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	const nested = "The body must not be nested more than 64 levels deep."
	op := load(t).Operation("createOrder")
	for _, tc := range []struct{ body, want string }{
		{`{}`, ""},
		{" \t\r\n{ }\n", ""},
		{`{"a":"\u0000"}`, ""},
		{`{"a":"[[[[\"{{{"}`, ""},
		{`{"a":1e999999999}`, ""},
		{`{"a":"\ud83d\ude00","\ud83d\ude00":1}`, ""},
		{`{"a":"\\ud83d"}`, ""},
		{deep(64), ""},
		{deep(65), nested},
		{list(63), ""},
		{list(64), nested},
		// Not exactly one object.
		{"", general},
		{" ", general},
		{`[]`, general},
		{`null`, general},
		{`"a"`, general},
		{`1`, general},
		{`true`, general},
		{"\ufeff{}", general},
		{`x`, general},
		{`{}{}`, "The body must be a single JSON object; there is more data at line 1, column 4."},
		{`{} x`, "The body is not valid JSON at line 1, column 4: invalid character 'x' at start of value."},
		// Not JSON; the place counts lines and characters.
		{`{`, "The body is not valid JSON at line 1, column 2: it ends too early."},
		{`{"a":"b`, "The body is not valid JSON at line 1, column 8: it ends too early."},
		{`{"a":1,}`, "The body is not valid JSON at line 1, column 7: invalid character ',' at start of value."},
		{`{'a':1}`, "The body is not valid JSON at line 1, column 2: invalid character '\\'' at start of value."},
		{"{\n  \"é\": 1,\n  \"é\u00e9\" 2\n}", "The body is not valid JSON at line 3, column 8: invalid character '2' after object name (expecting ':')."},
		{`{"a":01}`, "The body is not valid JSON at line 1, column 7: invalid character '1' after object value (expecting ',' or '}')."},
		{`{"a":NaN}`, "The body is not valid JSON at line 1, column 6: invalid character 'N' at start of value."},
		{`{"a":[1 2]}`, "The body is not valid JSON at line 1, column 9: invalid character '2' after array element (expecting ',' or ']')."},
		{"{\"a\":\"\xff\"}", "The body is not valid JSON at line 1, column 7: invalid UTF-8."},
		{"{\"a\":\"\n\"}", "The body is not valid JSON at line 1, column 7: invalid character '\\n' in string (expecting non-control character)."},
		{`{"a":"\x"}`, "The body is not valid JSON at line 1, column 7: invalid escape sequence `\\x` in string."},
		// Not I-JSON: half a surrogate pair, and a name that an object repeats.
		{`{"a":"x\ud83d"}`, "The body is not valid JSON at line 1, column 8: invalid surrogate pair in string."},
		{`{"a":"\ude00"}`, "The body is not valid JSON at line 1, column 7: invalid surrogate pair in string."},
		{`{"a":"\ud83d\ud83d"}`, "The body is not valid JSON at line 1, column 7: invalid surrogate pair in string."},
		{`{"\ud83d":1}`, "The body is not valid JSON at line 1, column 3: invalid surrogate pair in string."},
		{`{"a":1,"a":2}`, "a appears more than once, again at line 1, column 8."},
		{`{"a":1,"\u0061":2}`, "a appears more than once, again at line 1, column 8."},
		{`{"":1,"":2}`, `"" appears more than once, again at line 1, column 7.`},
		{"{\"metadata\":{\"x\":\"1\",\n\"b/~c\":\"\",\n \"b/~c\":\"\"}}", "metadata.b/~c appears more than once, again at line 3, column 2."},
		{`{"lines":[{"a":1},{"b":{"a":1,"c":2,"a":3}}]}`, "lines.1.b.a appears more than once, again at line 1, column 37."},
		{`{"a":{"a":1},"b":[{"a":1},{"a":1}]}`, ""},
	} {
		_, parsed := op.Parse([]byte(tc.body))
		_, canonical := contract.Canonical([]byte(tc.body))
		for reader, err := range map[string]error{"Parse": parsed, "Canonical": canonical} {
			got := ""
			if err != nil {
				got = apperr.As(err).Message
			}
			if got != tc.want || err != nil && !errors.Is(err, contract.ErrMalformed) {
				t.Errorf("%s of %.60q\n got %s (%v)\nwant %s", reader, tc.body, got, err, tc.want)
			}
		}
	}
}

// earlier returns the canonical form that encoding/json writes. Stored fingerprints were computed from it.
func earlier(t *rapid.T, body []byte) string {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The canonical form is the same for all orders, spaces and escapes, and the same as that of encoding/json.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ body, want string }{
		{`{}`, `{}`},
		{` { "b" : [ ] , "a" : { } } `, `{"a":{},"b":[]}`},
		{`{"b":[1,{"d":null,"c":true}],"a":"x"}`, `{"a":"x","b":[1,{"c":true,"d":null}]}`},
		{`{"n":[1,1.0,1e0,-0,10]}`, `{"n":[1,1.0,1e0,-0,10]}`},
		{`{"\u0061":"\u0062\/","Z":"é"}`, `{"Z":"é","a":"b/"}`},
		{`{"😀":1,"\ufb33":2,"aa":3,"a":4}`, `{"a":4,"aa":3,"` + "\ufb33" + `":2,"😀":1}`},
		{`{"a":"<&>\u2028"}`, `{"a":"\u003c\u0026\u003e\u2028"}`},
	} {
		got, err := contract.Canonical([]byte(tc.body))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, want %s (%v)", tc.body, got, tc.want, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		members := objects(4).Draw(t, "object")
		body := spell(t, members)
		got, err := contract.Canonical(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if want := earlier(t, body); string(got) != want {
			t.Fatalf("%s\n got %s\nwant %s", body, got, want)
		}
		if again, err := contract.Canonical(spell(t, members)); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("spelled otherwise: %s, want %s (%v)", again, got, err)
		}
	})
}

// objects generates maps of strings, unparsed numbers, literals, lists and objects.
func objects(depth int) *rapid.Generator[map[string]any] {
	values := []*rapid.Generator[any]{
		rapid.String().AsAny(),
		rapid.StringOf(rapid.SampledFrom([]rune("a\"\\/<>&\u2028\u2029\b\f\n\x00\x1f\x7fé😀"))).AsAny(),
		rapid.Map(rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "1e2", "1E+2", "99999999999999999999"}), func(s string) any { return json.Number(s) }),
		rapid.SampledFrom([]any{true, false, nil}),
	}
	if depth > 0 {
		values = append(values, objects(depth-1).AsAny(), rapid.SliceOfN(objects(depth-1).AsAny(), 0, 3).AsAny())
	}
	keys := rapid.OneOf(rapid.StringN(0, 4, -1), rapid.StringOfN(rapid.SampledFrom([]rune("ab<\\\"\u2028😀\ufb33")), 0, 3, -1))
	return rapid.MapOfN(keys, rapid.OneOf(values...), 0, 5)
}

// spell writes a value in a random form: any order of keys, white space, with or without escapes.
func spell(t *rapid.T, v any) []byte {
	space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n"})
	switch v := v.(type) {
	case map[string]any:
		out, sep := []byte("{"), ""
		for key, value := range v { // a map's order differs each time
			out = append(append(append(out, sep...), space.Draw(t, "space")...), spell(t, key)...)
			out = append(append(append(out, ':'), space.Draw(t, "space")...), spell(t, value)...)
			sep = ","
		}
		return append(append(out, space.Draw(t, "space")...), '}')
	case []any:
		out, sep := []byte("["), ""
		for _, value := range v {
			out = append(append(out, sep...), spell(t, value)...)
			sep = " ,"
		}
		return append(out, ']')
	case string:
		return spellText(t, v)
	default:
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func spellText(t *rapid.T, s string) []byte {
	enc := &bytes.Buffer{}
	e := json.NewEncoder(enc)
	e.SetEscapeHTML(rapid.Bool().Draw(t, "HTML"))
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	out := bytes.TrimSpace(enc.Bytes())
	if rapid.Bool().Draw(t, "escaped") {
		out = []byte(escapeAll(strings.ToValidUTF8(s, "\ufffd")))
	}
	return out
}

// escapeAll writes each UTF-16 unit of a text as an escape sequence.
func escapeAll(s string) string {
	out := `"`
	for _, unit := range utf16.Encode([]rune(s)) {
		out += fmt.Sprintf(`\u%04x`, unit)
	}
	return out + `"`
}
