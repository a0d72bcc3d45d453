package contract_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
)

func parse(t testing.TB, op *contract.Operation, body string) *contract.Body {
	t.Helper()
	parsed, err := op.Parse([]byte(body))
	if err != nil {
		t.Fatalf("%.200s: %v", body, err)
	}
	return parsed
}

// messages returns "field: message" lines.
func messages(err error) string {
	if err == nil {
		return ""
	}
	e := apperr.As(err)
	if e.Kind != apperr.Invalid || e.Code != "invalid_request" {
		return err.Error()
	}
	var lines []string
	for _, f := range e.Fields {
		lines = append(lines, f.Field+": "+f.Message)
	}
	return strings.Join(lines, "\n")
}

func TestValidateBody(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	with := func(field string) string { return `{"title":"t","buyer":"a@b.co",` + field + `}` }
	for _, tc := range []struct{ body, want string }{
		{`{"title":"t","buyer":"a@b.co"}`, ""},
		{`{}`, "title: Is required.\nbuyer: Is required."},
		// Unknown fields are ignored with any value, and names are exact.
		{with(`"other":{"deep":[1.5,null]},"Note":7`), ""},
		{with(`"exact":{"a":"x","b":1}`), "exact.b: Unknown field."},
		// Types.
		{`{"title":1,"buyer":true}`, "title: Must be a string.\nbuyer: Must be a string."},
		{`{"title":null,"buyer":"a@b.co"}`, "title: Must be a string."},
		{with(`"note":null`), ""},
		{with(`"note":5`), "note: Must be a string or null."},
		{with(`"gift":"true"`), "gift: Must be true or false."},
		{with(`"lines":{}`), "lines: Must be a list."},
		{with(`"lines":["a"]`), "lines.0: Must be an object."},
		// Bounds count characters, not bytes.
		{`{"title":"` + strings.Repeat("é", 10) + `","buyer":"a@b.co"}`, ""},
		{`{"title":"` + strings.Repeat("😀", 11) + `","buyer":"a@b.co"}`, "title: Must be at most 10 characters."},
		{`{"title":"","buyer":"a@b.co"}`, "title: Must not be empty."},
		{with(`"note":"x"`), "note: Must be at least 2 characters."},
		{with(`"count":-1`), "count: Must be at least 0."},
		{with(`"count":2147483648`), "count: Must be at most 2147483647."},
		{with(`"lines":[]`), "lines: Must have at least 1 item."},
		// Integers must be written as integers.
		{with(`"count":7`), ""},
		{with(`"count":-0`), ""},
		{with(`"count":null`), ""},
		{with(`"count":10.0`), "count: Must be a whole number."},
		{with(`"count":1e2`), "count: Must be a whole number."},
		{with(`"count":1E2`), "count: Must be a whole number."},
		{with(`"big":0.0`), "big: Must be a whole number."},
		{with(`"big":1.5`), "big: Must be a whole number."},
		{with(`"big":"10"`), "big: Must be a whole number."},
		{with(`"big":true`), "big: Must be a whole number."},
		{with(`"big":1e999999999`), "big: Must be a whole number."},
		{with(`"big":` + strings.Repeat("9", 5000)), ""},
		{with(`"count":-` + strings.Repeat("9", 5000)), "count: Must be at least 0."},
		{with(`"count":1e-999999999`), "count: Must be a whole number."},
		{with(`"ratio":1e2`), ""},
		{with(`"ratio":10`), ""},
		{with(`"lines":[{"description":"d","quantity":1.0}]`), "lines.0.quantity: Must be a whole number."},
		// Lists of values and patterns.
		{with(`"status":"shut"`), "status: Must be one of: open, closed."},
		{with(`"time":"9:00"`), "time: Must match ^[0-9]{2}:[0-9]{2}$."},
		{with(`"lines":[{"description":"d","quantity":1,"price":{"amount":1,"currency":"usd"}}]`), "lines.0.price.currency: Must be an ISO 4217 code, such as USD."},
		// Errors are in the contract's order, not the client's. Nested fields are inside their parent.
		{
			`{"lines":[{"quantity":0},{"price":{},"quantity":"x","description":""}],"gift":1,"title":""}`,
			"title: Must not be empty.\nbuyer: Is required.\ngift: Must be true or false.\n" +
				"lines.0.description: Is required.\nlines.0.quantity: Must be at least 1.\n" +
				"lines.1.description: Must not be empty.\nlines.1.quantity: Must be a whole number.\n" +
				"lines.1.price.amount: Is required.\nlines.1.price.currency: Is required.",
		},
		// Metadata.
		{with(`"metadata":{"a":"1","b":""}`), ""},
		{with(`"metadata":["a","b"]`), ""},
		{with(`"metadata":[]`), ""},
		{with(`"metadata":null`), ""},
		{with(`"metadata":"x"`), "metadata: Must be an object, a list or null."},
		{with(`"metadata":{"b":1,"a":"123456"}`), "metadata.b: Must be a string.\nmetadata.a: Must be at most 5 characters."},
		{with(`"metadata":["a",1]`), "metadata.1: Must be a string."},
		{with(`"metadata":["a","b","c","d"]`), "metadata: Must have at most 3 items."},
		{with(`"metadata":{"a":"","b":"","c":"","d":""}`), "metadata: Must have at most 3 keys."},
		{with(`"metadata":{"abcde":"x"}`), "metadata.abcde: The key: must be at most 4 characters."},
		{with(`"metadata":{"":"x"}`), "metadata.: The key: must not be empty."},
		{with(`"metadata":{"a":"x","":2}`), "metadata.: The key: must not be empty.\nmetadata.: Must be a string."},
		// Texts of one line.
		{`{"title":"a\nb","buyer":"a@b.co"}`, "title: Must not contain a line break."},
		{`{"title":" \u200b","buyer":"a@b.co"}`, "title: Must contain a visible character."},
		{`{"title":"a\u202e","buyer":"a@b.co"}`, "title: Must not contain a bidirectional control character."},
		{with(`"metadata":{"a\u2028":"x"}`), "metadata.a\u2028: The key: must not contain a line break."},
		{with(`"metadata":{"a":"\n\n"}`), ""},
		// NUL, anywhere.
		{`{"title":"a\u0000","buyer":"a@b.co"}`, "title: Must not contain the NUL character."},
		{with(`"other":["x",{"y":"\u0000"}]`), "other.1.y: Must not contain the NUL character."},
		{with(`"o\u0000":1`), "o\x00: The key: must not contain the NUL character."},
		{with(`"metadata":{"a\u0000":"x"}`), "metadata.a\x00: The key: must not contain the NUL character."},
		{with(`"note":"\\u0000"`), ""},
		{with(`"note":"x\ud83d\ude00"`), ""},
		{with(`"note":"\\ud83d"`), ""},
		{with(`"note":"\ufffd\u00e9"`), ""},
	} {
		if got := messages(op.ValidateBody(parse(t, op, tc.body), false)); got != tc.want {
			t.Errorf("%.200s\n got %q\nwant %q", tc.body, got, tc.want)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	const instant, either, bare = "at", "day", "date"
	for _, tc := range []struct {
		field, value string
		ok           bool
	}{
		{instant, "2026-05-10T15:04:05Z", true},
		{instant, "2026-05-10T15:04:05.123456789+14:00", true},
		{instant, "2026-05-10T15:04:05-12:00", true},
		{instant, "1900-01-01T00:00:00Z", true},
		{instant, "2199-12-31T23:59:59Z", true},
		{instant, "2026-05-10T15:04:05", false},
		{instant, "2026-05-10", false},
		{instant, "2026-05-10 15:04:05Z", false},
		{instant, "2026-02-30T00:00:00Z", false},
		{instant, "2026-05-10T24:00:00Z", false},
		{instant, "2026-05-10T15:04:60Z", false},
		{instant, "2026-05-10T15:04Z", false},
		{instant, "2026-05-10T15:04:05,5Z", false},
		{instant, "2026-05-10T5:04:05Z", false},
		{instant, "1899-12-31T23:59:59Z", false},
		{instant, "2200-01-01T00:00:00Z", false},
		{instant, "", false},
		{instant, "0000-01-01T00:00:00Z", false},
		{instant, "2026-05-10T15:04:05+24:00", false},
		{either, "2026-05-10T15:04:05Z", true},
		{either, "2026-05-10", true},
		{either, "2026-05-10T15:04:05", false},
		{either, "2026-02-29", false},
		{either, "2026-5-10", false},
		{either, "10.05.2026", false},
		{either, "", false},
		{bare, "2028-02-29", true},
		{bare, "2026-02-29", false},
		{bare, "2026-05-10T00:00:00Z", false},
		{bare, "1899-12-31", false},
		{"token", "0190a2b0-7c3e-7cc1-b1a5-1f2e3d4c5b6a", true},
		{"token", "0190a2b0", false},
		{"buyer", "a@b.co", true},
		{"buyer", "o'brien+tag@sub.example.com", true},
		{"buyer", "jürgen@münchen.de", true},
		{"buyer", "a@localhost", true},
		{"buyer", "a", false},
		{"buyer", "@b.co", false},
		{"buyer", "a@", false},
		{"buyer", "a@b@c.co", false},
		{"buyer", "a b@c.co", false},
		{"buyer", "a@b..co", false},
		{"buyer", "a@-b.co", false},
		{"buyer", ".a@b.co", false},
		{"buyer", "a..b@b.co", false},
		{"buyer", "a@b.co\\n", false},
		{"buyer", "<a@b.co>", false},
		{"buyer", "a@b.co,c@d.co", false},
		{"buyer", "a@b_c.co", false},
		{"buyer", " a@b.co", false},
		{"buyer", strings.Repeat("a", 65) + "@b.co", false},
		{"buyer", "a@" + strings.Repeat("b", 64) + ".co", false},
		{"buyer", "a\u200b@b.co", false},
		{"buyer", "a@b\u00ad.co", false},
		{"buyer", "a\u202e@b.co", false},
		{"buyer", "a\u2066@b.co", false},
		{"buyer", "a\ufe0f@b.co", false},
		{"buyer", "a@\u3164.co", false},
		{"buyer", "\ufeffa@b.co", false},
		{"title", "A\u200dB", true},
		{"title", "A\tB", true},
	} {
		body := map[string]string{"title": "t", "buyer": "a@b.co"}
		body[tc.field] = tc.value
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		got := messages(op.ValidateBody(parse(t, op, string(raw)), false))
		if (got == "") != tc.ok || (got != "" && !strings.HasPrefix(got, tc.field+": Must be ")) {
			t.Errorf("%s %q: %q", tc.field, tc.value, got)
		}
	}
}

func TestErrorFieldsAreBounded(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	var b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&b, `"k%d":"\u0000",`, i)
	}
	err := op.ValidateBody(parse(t, op, `{"title":"t","buyer":"a@b.co","metadata":{`+b.String()+`"`+strings.Repeat("k", 1000)+`":1}}`), true)
	e := apperr.As(err)
	if len(e.Fields) != 100 || e.Fields[0].Field != "metadata" {
		t.Errorf("%d fields, first %q", len(e.Fields), e.Fields[0].Field)
	}
	err = op.ValidateBody(parse(t, op, `{"title":"t","buyer":"a@b.co","metadata":{"`+strings.Repeat("é", 1000)+`":1}}`), true)
	if f := apperr.As(err).Fields[0].Field; len(f) > 410 {
		t.Errorf("a field name of %d bytes", len(f))
	}
	body := parse(t, op, `{`+strings.ReplaceAll(b.String(), `\u0000`, "")+`"title":"t","buyer":"a@b.co"}`)
	if n := len(apperr.As(op.ValidateBody(body, true)).Fields); n != 100 {
		t.Errorf("%d unknown fields", n)
	}
	if n := len(op.Ignored(body)); n != 100 {
		t.Errorf("%d ignored fields", n)
	}
}

// A body with many values needs memory of about its own size, because the contract uses few of them. The test is not parallel,
// because it measures the memory of the whole process. The parallel tests wait meanwhile.
func TestManyValuesUseLittleMemory(t *testing.T) {
	op := load(t).Operation("createOrder")
	many := func(one string) string { return strings.Repeat(one+",", (1<<20-100)/(len(one)+1)) + one }
	for name, body := range map[string]string{
		"an unknown field": `{"other":[` + many("0") + `]}`,
		"deeper":           `{"other":{"a":[` + many("{}") + `]}}`,
		"a list":           `{"lines":[` + many("0") + `]}`,
		"of a list":        `{"metadata":[` + many(`""`) + `]}`,
		"in place of text": `{"title":[` + many("0") + `]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b := parse(t, op, body)
		_ = op.ValidateBody(b, true)
		_ = op.Ignored(b)
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 4<<20 {
			t.Errorf("%s: %d KiB", name, spent>>10)
		}
	}
}

// Only a few large bodies are parsed at a time, even if many arrive at the same time. The test is not parallel because it measures
// the memory of the whole process.
func TestManyLargeBodiesUseLittleMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	var b strings.Builder
	for i := 0; b.Len() < 1<<20-64; i++ {
		fmt.Fprintf(&b, `"%d":1,`, i)
	}
	body := []byte("{" + b.String() + `"z":1}`)
	bodies := 8 * runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for range bodies {
		all.Go(func() {
			if _, err := contract.Canonical(body); err != nil {
				t.Error(err)
			}
		})
	}
	done, most := make(chan struct{}), uint64(0)
	go func() { all.Wait(); close(done) }()
	for under := true; under; {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
		select {
		case <-done:
			under = false
		case <-time.After(time.Millisecond):
		}
	}
	t.Logf("at most %d MiB", most>>20)
	if bound := uint64(32+40*runtime.GOMAXPROCS(0)) << 20; most > bound {
		t.Errorf("%d bodies hold %d MiB, at most %d are allowed", bodies, most>>20, bound>>20)
	}
}

// BenchmarkWorstBody measures a body of 1 MiB with 100,000 errors.
func BenchmarkWorstBody(b *testing.B) {
	op := load(b).Operation("createOrder")
	for name, unit := range map[string]string{"keys": `"%06d":1,`, "nul": `"%06d":"\u0000",`} {
		var body strings.Builder
		body.WriteString(`{"title":"t","buyer":"a@b.co","metadata":{`)
		for i := 0; body.Len() < 1<<20-64; i++ {
			fmt.Fprintf(&body, unit, i)
		}
		body.WriteString(`"z":1}}`)
		raw := body.String()
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if op.ValidateBody(parse(b, op, raw), false) == nil {
					b.Fatal("passed")
				}
			}
		})
	}
}
