package httpx_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/libs/httpx"
)

// unknown returns "status X-Ignored-Fields Preference-Applied" of a response.
func unknown(res *http.Response) string {
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", res.Header.Get(httpx.HeaderIgnored), " ", res.Header.Get(httpx.HeaderApplied)))
}

func TestUnknownFieldsAreNamed(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 11 {
		fmt.Fprintf(&many, `,"f%d":1`, i)
	}
	with := func(more string) string { return `{"first_name":"Ada","email":"a@b.co"` + more + `}` }
	for _, tc := range []struct{ body, prefer, want string }{
		{good, "", "201"},
		{with(`,"metadata":{"any":"x"}`), "", "201"},
		{with(`,"Phone":"5","e_mail":"x"`), "", "201 Phone, e_mail"},
		{with(many.String()), "", "201 f0, f1, f2, f3, f4, f5, f6, f7, f8, f9"},
		{with(`,"a b,é":1,"` + strings.Repeat("é", 65) + `":1`), "", "201 a%20b%2C%C3%A9, " + strings.Repeat("%C3%A9", 64)},
		{`{"frist_name":"Ada","email":"a@b.co"}`, "", "422 frist_name"},
		{with(`,"x":1`), "handling=lenient", "201 x"},
		{with(`,"x":1`), "respond-async, wait=10", "201 x"},
		{with(`,"x":1`), "xhandling=strict", "201 x"},
		{with(`,"x":1`), "handling=lenient, handling=strict", "201 x"},
		{good, "handling=strict", "201  handling=strict"},
		{with(`,"x":1`), "handling=strict", "422  handling=strict"},
		{with(`,"x":1`), `wait=10, Handling = "Strict" ; foo=bar`, "422  handling=strict"},
	} {
		res := open(t).call("POST", httpx.Base+"/customers", tc.body, "Prefer", tc.prefer)
		if got := unknown(res); got != tc.want {
			t.Errorf("%.80s with %q: %s, want %s", tc.body, tc.prefer, got, tc.want)
		}
	}
}

// Unknown fields are reported with the other errors of the body: after errors of the path, and after the known fields.
func TestStrictNamesTheNearestField(t *testing.T) {
	t.Parallel()
	d := open(t)
	res := d.call("POST", httpx.Base+"/customers", `{"fristname":1,"email":"x","mail":2}`, "Prefer", "handling=strict")
	var e struct {
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors"`
		Error   struct{ Message, Param string }
	}
	if err := json.Unmarshal(body(t, res), &e); err != nil {
		t.Fatal(err)
	}
	if e.Message != "first_name: Is required. (and 3 more errors)" || e.Error.Message != "first_name: Is required." || e.Error.Param != "first_name" {
		t.Errorf("%+v", e)
	}
	if got := e.Errors["fristname"]; len(got) != 1 || got[0] != "Unknown field. The closest match is first_name." {
		t.Errorf("fristname: %q", got)
	}
	if got := e.Errors["mail"]; len(got) != 1 || got[0] != "Unknown field. The closest match is email." {
		t.Errorf("mail: %q", got)
	}
	if got := verdict(t, d.call("PATCH", httpx.Base+"/customers/"+missing, `{"mail":1}`, "Prefer", "handling=strict")); got != "404 customer_not_found" {
		t.Errorf("the path comes first: %s", got)
	}
}

// A replay returns the first response regardless of the request's preferences, because the body is not validated again.
func TestReplayOmitsUnknownFields(t *testing.T) {
	t.Parallel()
	d := open(t)
	path, odd := httpx.Base+"/customers/"+known, `{"mail":1}`
	if got := unknown(d.call("PATCH", path, odd, "Idempotency-Key", "k")); got != "200 mail" {
		t.Fatal(got)
	}
	for _, prefer := range []string{"", "handling=strict"} {
		res := d.call("PATCH", path, odd, "Idempotency-Key", "k", "Prefer", prefer)
		if got := unknown(res); got != "200" || res.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%q: %s", prefer, got)
		}
	}
	// After a refusal, the same key can be used.
	if got := unknown(d.call("PATCH", path, odd, "Idempotency-Key", "k2", "Prefer", "handling=strict")); got != "422  handling=strict" {
		t.Error(got)
	}
	if got := unknown(d.call("PATCH", path, odd, "Idempotency-Key", "k2")); got != "200 mail" {
		t.Error(got)
	}
}
