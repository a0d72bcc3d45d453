package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/web"
)

func TestReadForm(t *testing.T) {
	t.Parallel()
	s := site(t, "https://book.test")
	for name, tc := range map[string]struct {
		header, value, body string
		want                error
	}{
		"without a header":    {"", "", "name=Boat", nil},
		"the site's own page": {"Sec-Fetch-Site", "same-origin", "name=Boat", nil},
		"the site's address":  {"Origin", "https://book.test", "name=Boat", nil},
		"the largest":         {"", "", "name=Boat&n=123456", nil},
		"another site":        {"Sec-Fetch-Site", "cross-site", "name=Boat", web.ErrCrossSite},
		"a sister site":       {"Sec-Fetch-Site", "same-site", "name=Boat", web.ErrCrossSite},
		"another origin":      {"Origin", "https://evil.test", "name=Boat", web.ErrCrossSite},
		"the plain origin":    {"Origin", "http://book.test", "name=Boat", web.ErrCrossSite},
		"no origin":           {"Origin", "null", "name=Boat", web.ErrCrossSite},
		"too large":           {"", "", "name=Boat&n=1234567", web.ErrFormTooLarge},
		"malformed":           {"", "", "name=%zz", web.ErrFormMalformed},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://console:8080/admin", strings.NewReader(tc.body))
		if tc.header != "" {
			r.Header.Set(tc.header, tc.value)
		}
		form, err := s.ReadForm(httptest.NewRecorder(), r, 18)
		if !errors.Is(err, tc.want) || tc.want == nil && form.Get("name") != "Boat" {
			t.Errorf("%s: %v, %v", name, form, err)
		}
	}
}

// TestReadFormWithFiles checks that a form with files has the content of each file, whatever bytes it consists of, and the same limit.
func TestReadFormWithFiles(t *testing.T) {
	t.Parallel()
	s := site(t, "https://book.test")
	const kind, file = `multipart/form-data; boundary="b"`, "\x89PNG\r\n\x00\xff--b"
	part := func(header, content string) string { return "--b\r\n" + header + "\r\n\r\n" + content + "\r\n" }
	name := part(`Content-Disposition: form-data; name="name"`, "Boat & Söhne=%zz")
	whole := name + part(`Content-Disposition: form-data; name="logo"; filename="../l.png"`+"\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: quoted-printable", file) +
		part(`Content-Disposition: form-data; name="none"; filename=""`, "") + "--b--\r\n"
	for what, tc := range map[string]struct {
		kind, body string
		limit      int
		want       error
	}{
		"complete":           {kind, whole, len(whole), nil},
		"too large":          {kind, whole, len(whole) - 1, web.ErrFormTooLarge},
		"cut off":            {kind, name, 1000, web.ErrFormMalformed},
		"cut off in a file":  {kind, whole[:len(whole)-60], 1000, web.ErrFormMalformed},
		"without a boundary": {"multipart/form-data", whole, 1000, web.ErrFormMalformed},
		"a wrong header":     {kind, "--b\r\nx\r\n\r\n\r\n--b--\r\n", 1000, web.ErrFormMalformed},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://console:8080/admin", strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.kind)
		form, err := s.ReadForm(httptest.NewRecorder(), r, int64(tc.limit))
		if !errors.Is(err, tc.want) || tc.want == nil && (form.Get("name") != "Boat & Söhne=%zz" || form.Get("logo") != file || !form.Has("none") || form.Get("none") != "") {
			t.Errorf("%s: %q, %v", what, form, err)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "http://console:8080/admin", strings.NewReader(whole))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if form, err := s.ReadForm(httptest.NewRecorder(), r, 1000); !errors.Is(err, web.ErrCrossSite) {
		t.Errorf("another site: %v, %v", form, err)
	}
}

func TestFormTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := web.FormKey{Secret: "cookie", About: "/oauth/sign-in"}
	hour := key.Token(now.Add(time.Hour))
	longer := key.Token(now.Add(2 * time.Hour))
	for name, tc := range map[string]struct {
		key   web.FormKey
		token string
		at    time.Time
		want  bool
	}{
		"at once":                    {key, hour, now, true},
		"in its last second":         {key, hour, now.Add(time.Hour - time.Second), true},
		"expired":                    {key, hour, now.Add(time.Hour), false},
		"without an end":             {key, key.Token(time.Time{}), now.AddDate(1, 0, 0), true},
		"of another browser":         {web.FormKey{Secret: "other", About: key.About}, hour, now, false},
		"about something else":       {web.FormKey{Secret: key.Secret, About: "/oauth/account"}, hour, now, false},
		"with another's expiry":      {key, longer[:10] + hour[10:], now, false},
		"its code without an expiry": {key, "AAAAAAAAAAA" + hour[11:], now, false},
		"empty":                      {key, "", now, false},
		"an expiry alone":            {key, "AAAAAAAAAAA", now, false},
		"not base64":                 {key, hour + "!", now, false},
		"of a browser without a key": {web.FormKey{About: key.About}, web.FormKey{About: key.About}.Token(time.Time{}), now, false},
	} {
		if got := tc.key.Valid(tc.token, tc.at); got != tc.want {
			t.Errorf("%s: genuine is %v", name, got)
		}
	}
}
