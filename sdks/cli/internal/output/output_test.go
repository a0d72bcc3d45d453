package output_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"holdfast.dev/sdks/cli/internal/output"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Ada 漢字 é\n\t": "Ada 漢字 é\n\t", "\x1b[31m": `\u001b[31m`, "a\rb": `a\u000db`, "\u009b2J": `\u009b2J`, "\u202egpj": `\u202egpj`,
		"\xff": `\xff`, "": "", "\x7f": `\u007f`,
	} {
		if got := output.Visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestScalar(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`{"amount":2500,"currency":"USD"}`: "25.00 USD", `{"amount":2500,"currency":"JPY"}`: "2500 JPY", `{"amount":-5,"currency":"KWD"}`: "-0.005 KWD",
		`{"amount":2500,"currency":"XQX"}`: "2500 XQX", `{"currency":"USD","amount":99999999999}`: "999999999.99 USD",
		`{"amount":1}`: `{"amount":1}`, `"a\u0020b"`: "a b", `null`: "", ``: "", `true`: "true", `12`: "12", `["a","b"]`: "a, b", `[1,2]`: "[1,2]", `[]`: "",
	} {
		if got := output.Scalar(json.RawMessage(value)); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// rows returns JSON objects.
func rows(texts ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, text := range texts {
		all = append(all, json.RawMessage(text))
	}
	return all
}

// TestTable checks the columns that fit, wide characters, and a later page with wider rows.
func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := output.NewTable(output.Stream{Writer: &out, Terminal: true, Width: 20}, []string{"id", "name", "note", "last"}, nil)
	if err := table.Rows(rows(`{"id":"a","name":"漢字","note":"12345","last":"does not fit"}`, `{"id":"b","name":null}`)); err != nil {
		t.Fatal(err)
	}
	if err := table.Rows(rows(`{"id":"longer","name":"x","note":"\u001b"}`)); err != nil {
		t.Fatal(err)
	}
	const want = "ID  NAME  NOTE\na   漢字  12345\nb\nlonger x     \\u001b\n"
	if out.String() != want {
		t.Errorf("%q\nwant %q", out.String(), want)
	}
	out.Reset()
	wide := strings.Repeat("w", 100)
	for name, selected := range map[string][]string{"default": nil, "selected": {"id"}} {
		out.Reset()
		if err := output.NewTable(output.Stream{Writer: &out, Terminal: true, Width: 20}, []string{"id"}, selected).Rows(rows(`{"id":"` + wide + `"}`)); err != nil {
			t.Fatal(err)
		}
		if complete := strings.Contains(out.String(), wide); complete != (selected != nil) {
			t.Errorf("%s: %s", name, out.String())
		}
	}
	if err := output.NewTable(output.Stream{Writer: &out}, []string{"id"}, nil).Rows(rows(`[]`)); err == nil {
		t.Error("a row that is no object")
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := output.Object(output.Stream{Writer: &out}, []byte(`{"id":"a","total":{"amount":1,"currency":"EUR"},"inner":{"b":{"c":null}},"lines":[{"n":1},{"n":2}],"empty":{},"text":"x\ny"}`))
	const want = "id         a\ntotal      0.01 EUR\ninner.b.c\nlines.0.n  1\nlines.1.n  2\nempty\ntext       x\n           y\n"
	if err != nil || out.String() != want {
		t.Errorf("%v %q\nwant %q", err, out.String(), want)
	}
}

// TestFilter checks that results keep large numbers, and that a filter reads neither the environment nor files.
func TestFilter(t *testing.T) {
	t.Setenv("HOLDFAST_SECRET_OF_THE_TEST", "secret")
	for filter, want := range map[string]string{
		".data[].id": "a\nb\n", ".n": "12345678901234567890\n", ".data": `[{"id":"a"},{"id":"b"}]` + "\n", ".none": "null\n", "empty": "",
		".data[0].id, halt, .n": "a\n", "env.HOLDFAST_SECRET_OF_THE_TEST": "null\n", "$ENV.HOLDFAST_SECRET_OF_THE_TEST": "null\n", ".f": "1.50\n",
	} {
		f, err := output.NewFilter(filter)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := f.Write(t.Context(), output.Stream{Writer: &out}, []byte(`{"data":[{"id":"a"},{"id":"b"}],"n":12345678901234567890,"f":1.50}`)); err != nil || out.String() != want {
			t.Errorf("%s: %q %v, want %q", filter, out.String(), err, want)
		}
	}
	f, err := output.NewFilter(".id.x")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), output.Stream{Writer: &bytes.Buffer{}}, []byte(`{"id":"a"}`)); err == nil || !strings.HasPrefix(err.Error(), "--jq: ") {
		t.Errorf("%v", err)
	}
	for _, filter := range []string{".[", "input", "inputs", `import "a" as a; .`} {
		if _, err := output.NewFilter(filter); err == nil {
			t.Errorf("%s compiles", filter)
		}
	}
}

// TestCopyToATerminal checks that text of the platform does not control the terminal, and that a pipe gets the bytes.
func TestCopyToATerminal(t *testing.T) {
	t.Parallel()
	for terminal, want := range map[bool]string{true: "a\\u001b\n漢\\u000d", false: "a\x1b\n漢\r"} {
		var out bytes.Buffer
		if err := (output.Stream{Writer: &out, Terminal: terminal}).Copy(strings.NewReader("a\x1b\n漢\r")); err != nil || out.String() != want {
			t.Errorf("%v: %q %v", terminal, out.String(), err)
		}
	}
}
