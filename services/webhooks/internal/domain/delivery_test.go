package domain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"holdfast.dev/services/webhooks/internal/domain"
)

func TestText(t *testing.T) {
	t.Parallel()
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, tc := range []struct{ name, raw, want string }{
		{"nothing", "", ""},
		{"short", "no such booking", "no such booking"},
		{"exactly all", a(4096), a(4096)},
		{"one over", a(4097), a(4096)},
		{"64 KiB", a(65536), a(4096)},
		{"é cut", a(4095) + "é", a(4095)},
		{"é fits", a(4094) + "é", a(4094) + "é"},
		{"é fits, more follows", a(4094) + "éa", a(4094) + "é"},
		{"€ cut after one byte", a(4095) + "€", a(4095)},
		{"€ cut after two", a(4094) + "€", a(4094)},
		{"an emoji cut after one", a(4095) + "😀", a(4095)},
		{"an emoji cut after three", a(4093) + "😀", a(4093)},
		{"an emoji fits", a(4092) + "😀!", a(4092) + "😀"},
		{"a byte that is no UTF-8", "a\xffb", "a\uFFFDb"},
		{"several at once", "a\xff\xfe\x80b", "a\uFFFDb"},
		{"a character's half at the end", "a\xe2\x82", "a\uFFFD"},
		{"a surrogate", "a\xed\xa0\x80b", "a\uFFFDb"},
		{"NUL", "a\x00b\x00", "a\uFFFDb\uFFFD"},
		{"a real U+FFFD", "a\uFFFD", "a\uFFFD"},
		{"only NUL", strings.Repeat("\x00", 4096), strings.Repeat("\uFFFD", 1365)},
		{"other controls stay", "\x1b[31m\r\n\t", "\x1b[31m\r\n\t"},
	} {
		if got := domain.Text([]byte(tc.raw)); got != tc.want {
			t.Errorf("%s: %d bytes %q, want %d bytes", tc.name, len(got), got[max(0, len(got)-20):], len(tc.want))
		}
	}
}

// A stored response is short, valid UTF-8 and without NUL. A valid response is not changed up to the point where it is truncated.
func TestTextIsStorable(t *testing.T) {
	t.Parallel()
	chunk := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		rapid.Just([]byte(strings.Repeat("\xffa", 1500))), rapid.Just([]byte(strings.Repeat("😀", 700))), rapid.Just([]byte(strings.Repeat("\x00", 3000))))
	rapid.Check(t, func(t *rapid.T) {
		var raw []byte
		for range rapid.IntRange(0, 4).Draw(t, "chunks") {
			raw = append(raw, chunk.Draw(t, "chunk")...)
		}
		got := domain.Text(raw)
		if len(got) > domain.MaxResponseLogged || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Fatalf("%d bytes, valid %v, of %d", len(got), utf8.ValidString(got), len(raw))
		}
		if utf8.Valid(raw) && !strings.Contains(string(raw), "\x00") {
			if !strings.HasPrefix(string(raw), got) || len(got) < min(len(raw), domain.MaxResponseLogged-3) {
				t.Fatalf("%d of %d bytes", len(got), len(raw))
			}
		}
	})
}

func TestResponse(t *testing.T) {
	t.Parallel()
	const other, redirect = "the response status is not 2xx", "a redirect, which is not followed"
	for _, tc := range []struct {
		status   int
		err      string
		ok, gone bool
		says     string // "": no error
	}{
		{101, "", false, false, other},
		{199, "", false, false, other},
		{200, "", true, false, ""},
		{204, "", true, false, ""},
		{299, "", true, false, ""},
		{300, "", false, false, redirect},
		{302, "", false, false, redirect},
		{399, "", false, false, redirect},
		{400, "", false, false, other},
		{410, "", false, true, other},
		{500, "", false, false, other},
		{999, "", false, false, other},
		{20, "", false, false, other},
		{0, "no response in time", false, false, "no response in time"},
		{0, "", false, false, other},
	} {
		a := domain.Response{Status: tc.status, Err: tc.err, Body: []byte("so\x00"), At: noon.Add(1234 * time.Nanosecond).In(time.FixedZone("", 3600)), Took: 1999 * time.Microsecond}
		if a.OK() != tc.ok || a.Outcome() != (domain.Outcome{OK: tc.ok, Gone: tc.gone}) {
			t.Errorf("%d: ok %v, %+v", tc.status, a.OK(), a.Outcome())
		}
		want := `"status_code":null,"duration_ms":1,"error":null,"response_body":null}`
		if tc.status != 0 {
			code, _ := json.Marshal(tc.status)
			want = strings.Replace(strings.Replace(want, "null", string(code), 1), `body":null`, `body":"so`+"\uFFFD"+`"`, 1)
		}
		if tc.says != "" {
			want = strings.Replace(want, `error":null`, `error":"`+tc.says+`"`, 1)
		}
		line, err := json.Marshal(a.Attempt(3))
		if want = `{"number":3,"at":"2027-03-01T12:00:00.000001Z",` + want; err != nil || string(line) != want {
			t.Errorf("%d: %s, %v; want %s", tc.status, line, err, want)
		}
	}
}
