package api_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

const emoji = "🏰" // one character, four bytes

// mail returns an address of n characters, with at most 64 before the @ and labels of at most 63.
func mail(n int) string {
	const local, end = 64, ".co"
	domain := strings.Repeat(strings.Repeat("d", 60)+".", 4)
	return strings.Repeat("a", local) + "@" + domain[:n-local-1-len(end)-1] + "d" + end
}

// bag returns a metadata object of n entries.
func bag(n int) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	return "{" + strings.Join(entries, ",") + "}"
}

// bounds are values of single fields. wrong is the field that the error names, or "" for a valid value.
var bounds = []struct{ field, value, wrong string }{
	{"first_name", str("A"), ""},
	{"first_name", str(strings.Repeat(emoji, 100)), ""},
	{"first_name", str(strings.Repeat("a", 101)), "first_name"},
	{"first_name", `""`, "first_name"},
	{"first_name", `null`, "first_name"},
	{"first_name", `1`, "first_name"},
	{"first_name", `"a\u0000b"`, "first_name"},
	{"last_name", str(strings.Repeat(emoji, 100)), ""},
	{"last_name", str(strings.Repeat(emoji, 101)), "last_name"},
	{"last_name", `""`, ""},
	{"last_name", `null`, ""},
	{"last_name", `true`, "last_name"},
	{"email", str(mail(255)), ""},
	{"email", str(mail(256)), "email"},
	{"email", `"ann"`, "email"},
	{"email", `"@b.co"`, "email"},
	{"email", `""`, "email"},
	{"email", `null`, "email"},
	{"email", `["a@b.co"]`, "email"},
	{"phone", str(strings.Repeat(emoji, 50)), ""},
	{"phone", str(strings.Repeat("1", 51)), "phone"},
	{"phone", `15551234`, "phone"},
	{"company", str(strings.Repeat(emoji, 200)), ""},
	{"company", str(strings.Repeat("c", 201)), "company"},
	{"company", `{}`, "company"},
	{"tax_id", str(strings.Repeat(emoji, 50)), ""},
	{"tax_id", str(strings.Repeat("1", 51)), "tax_id"},
	{"country", `"US"`, ""},
	{"country", `null`, ""},
	{"country", `"us"`, "country"},
	{"country", `"ZZ"`, "country"},
	{"country", `"XQ"`, "country"},
	{"country", `"USA"`, "country"},
	{"locale", `"fr-CA"`, ""},
	{"locale", `"EN"`, ""},
	{"locale", `"german"`, "locale"},
	{"locale", `"xx-yy-zz"`, "locale"},
	{"locale", `"e"`, "locale"},
	{"locale", `""`, "locale"},
	{"billing_address", `null`, ""},
	{"billing_address", `{}`, ""},
	{"billing_address", `{"line1":` + str(strings.Repeat(emoji, 200)) + `,"city":null}`, ""},
	{"billing_address", `{"line1":` + str(strings.Repeat("a", 201)) + `}`, "billing_address.line1"},
	{"billing_address", `{"line2":"a\nb"}`, "billing_address.line2"},
	{"billing_address", `{"city":` + str(strings.Repeat("a", 101)) + `}`, "billing_address.city"},
	{"billing_address", `{"state":` + str(strings.Repeat("a", 101)) + `}`, "billing_address.state"},
	{"billing_address", `{"postal_code":` + str(strings.Repeat("1", 21)) + `}`, "billing_address.postal_code"},
	{"billing_address", `{"country":"ZZ"}`, "billing_address.country"},
	{"billing_address", `{"country":"de"}`, "billing_address.country"},
	{"billing_address", `"Pier 4"`, "billing_address"},
	{"metadata", bag(50), ""},
	{"metadata", bag(51), "metadata"},
	{"metadata", `{` + str(strings.Repeat(emoji, 40)) + `:""}`, ""},
	{"metadata", `{` + str(strings.Repeat("k", 41)) + `:""}`, "metadata." + strings.Repeat("k", 41)},
	{"metadata", `{"":"v"}`, "metadata."},
	{"metadata", `{"k":` + str(strings.Repeat(emoji, 500)) + `}`, ""},
	{"metadata", `{"k":` + str(strings.Repeat("v", 501)) + `}`, "metadata.k"},
	{"metadata", `{"k":1}`, "metadata.k"},
	{"metadata", `{"k":null}`, "metadata.k"},
	{"metadata", `{"k":{}}`, "metadata.k"},
	{"metadata", `{"k":"\u0000"}`, "metadata.k"},
	{"metadata", `[` + strings.TrimSuffix(strings.Repeat(`"v",`, 50), ",") + `]`, ""},
	{"metadata", `[` + strings.TrimSuffix(strings.Repeat(`"v",`, 51), ",") + `]`, "metadata"},
	{"metadata", `[` + str(strings.Repeat(emoji, 500)) + `]`, ""},
	{"metadata", `["ok",` + str(strings.Repeat("v", 501)) + `]`, "metadata.1"},
	{"metadata", `[1]`, "metadata.0"},
	{"metadata", `"text"`, "metadata"},
	{"metadata", `7`, "metadata"},
	{"nickname", `"\u0000"`, "nickname"},
}

func TestBounds(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	for _, b := range bounds {
		fields := map[string]string{"first_name": `"Ann"`, "email": `"ann@example.com"`}
		fields[b.field] = b.value
		var all []string
		for k, v := range fields {
			all = append(all, str(k)+":"+v)
		}
		created := w.do(ctx, "POST", "/customers", "{"+strings.Join(all, ",")+"}")
		changed := w.do(ctx, "PATCH", path, "{"+str(b.field)+":"+b.value+"}")
		if b.wrong == "" {
			created.is(201)
			changed.is(200)
			continue
		}
		created.is(422, "invalid_request", b.wrong)
		changed.is(422, "invalid_request", b.wrong)
	}
}

func TestRequiredFields(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	a := w.do(ctx, "POST", "/customers", `{}`).is(422, "invalid_request", "first_name")
	got := decode[struct {
		Message string
		Errors  map[string][]string
	}](a)
	if len(got.Errors) != 3 || len(got.Errors["email"]) != 1 || len(got.Errors["phone"]) != 1 || !strings.HasSuffix(got.Message, "(and 2 more errors)") {
		t.Errorf("got %s", a.Body)
	}
	w.do(ctx, "POST", "/customers", `{"first_name":"Ann"}`).is(422, "invalid_request", "email")
	w.do(ctx, "POST", "/customers", `{"email":"a@b.co","FIRST_NAME":"Ann"}`).is(422, "invalid_request", "first_name")
	if got := w.Types(); got != "" {
		t.Errorf("events of refused requests: %s", got)
	}
}

func TestBodiesThatAreNone(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	for _, body := range []string{
		`{`, `[]`, `"x"`, `null`, `{} {}`, "{\"first_name\":\"\xff\"}", `{"first_name":"Ann",}`,
		`{"first_name":"Ann","email":"a@b.co","metadata":{"k":"1","k":"2"}}`, `{"first_name":"\ud800"}`,
	} {
		w.do(ctx, "POST", "/customers", body).is(400, "malformed_json")
		w.do(ctx, "PATCH", path, body).is(400, "malformed_json")
	}
	w.do(ctx, "POST", "/customers", `{"first_name":"Ann","email":"a@b.co"}`, "Content-Type: text/plain").is(400, "missing_content_type")
	w.do(ctx, "PATCH", path, `{}`, "Content-Type: ").is(400, "missing_content_type")
	big := `{"first_name":"Ann","email":"a@b.co","x":"` + strings.Repeat("x", 1<<20) + `"}`
	w.do(ctx, "POST", "/customers", big).is(413, "request_too_large")
	w.do(ctx, "PATCH", path, big).is(413, "request_too_large")
	w.do(ctx, "GET", path+"?x=1", "").is(422, "invalid_request", "x")
}

func TestMetadataRoundTrip(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for m, want := range map[string]string{
		`{"z":"1","a":"2","m":"3"}`:                   `{"z":"1","a":"2","m":"3"}`,
		`{ "k" : "1", "K":"3" }`:                      `{"k":"1","K":"3"}`,
		`["b","a","a",""]`:                            `["b","a","a",""]`,
		`{"é":"\u00e9\ud83c\udff0","\u003c&>":"<&>"}`: `{"é":"é🏰","<&>":"<&>"}`,
		`{"k":"\u2028\u0022\u0001\u007f"}`:            "{\"k\":\"\u2028\\\"\\u0001\x7f\"}",
		`{"k":"line\nbreak\ttab\\ \" \/"}`:            `{"k":"line\nbreak\ttab\\ \" /"}`,
		`{"big":"` + strings.Repeat("9", 500) + `"}`:  `{"big":"` + strings.Repeat("9", 500) + `"}`,
	} {
		a := w.do(ctx, "POST", "/customers", `{"first_name":"Ann","email":"a@b.co","metadata":`+m+`}`).is(201)
		c := a.customer()
		if string(c.Metadata) != want {
			t.Errorf("created with %s, returned %s", m, c.Metadata)
		}
		if got := w.do(ctx, "GET", "/customers/"+c.ID, "").is(200); string(got.Body) != string(a.Body) {
			t.Errorf("created with %s, reads %s", m, got.Body)
		}
		b := w.create(ctx, "")
		if got := w.do(ctx, "PATCH", "/customers/"+b.ID, `{"metadata":`+m+`}`).is(200).customer(); string(got.Metadata) != want {
			t.Errorf("changed to %s, returned %s", m, got.Metadata)
		}
	}
}
