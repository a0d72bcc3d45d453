package domain_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"holdfast.dev/libs/forms"

	"holdfast.dev/services/console/internal/domain"
)

// TestTaxesOfAForm checks how taxes are entered in each notation, and what is refused.
func TestTaxesOfAForm(t *testing.T) {
	t.Parallel()
	german := domain.Notation{Point: ",", Group: "."}
	f := forms.Field{Name: "default_taxes", Kind: "array", Nullable: true}
	for _, tc := range []struct {
		text string
		n    domain.Notation
		want string // "" for an error
	}{
		{"GST 5; QST 9.975 %", domain.Notation{}, `[{"name":"GST","rate":"5"},{"name":"QST","rate":"9.975"}]`},
		{"USt 19%;Kurtaxe Kiel 2,5", german, `[{"name":"USt","rate":"19"},{"name":"Kurtaxe Kiel","rate":"2.5"}]`},
		{"0", german, `[]`},
		{"", german, `null`},
		{"19", german, ""},
		{"USt", german, ""},
		{"USt 19,00001", german, ""},
		{"USt 19;", german, ""},
		{"USt 8.875", german, `[{"name":"USt","rate":"8.875"}]`}, // a rate has no thousands
		{"USt 1.000,5", german, ""},
		{"USt 101", german, ""},
	} {
		r := domain.Reader{Currency: "EUR", Notation: tc.n}
		body, err := r.Body([]forms.Field{f}, url.Values{f.Name: {tc.text}})
		got, _ := json.Marshal(body[f.Name])
		if (err == nil) != (tc.want != "") || err == nil && string(got) != tc.want {
			t.Errorf("%q: %s, %v", tc.text, got, err)
		}
	}
	shown := func(f forms.Field, o domain.Object) string {
		return domain.Reader{Currency: "EUR", Notation: german}.Form([]forms.Field{f}, o).Get(f.Name)
	}
	for _, tc := range []struct {
		value any
		want  string
	}{
		{[]any{map[string]any{"name": "GST", "rate": "5"}, map[string]any{"name": "QST", "rate": "9.975"}}, "GST 5; QST 9,975"}, {[]any{}, "0"}, {nil, ""},
	} {
		if got := shown(f, domain.Object{f.Name: tc.value}); got != tc.want {
			t.Errorf("%v is shown as %q", tc.value, got)
		}
	}
	required := forms.Field{Name: "default_taxes", Kind: "array"} // of the tenant
	if got := shown(required, domain.Object{"default_taxes": []any{}}); got != "" {
		t.Errorf("no taxes of a tenant are shown as %q", got)
	}
	was := domain.Object{"default_taxes": []any{map[string]any{"name": "GST", "rate": "5"}}}
	if body, err := (domain.Reader{}).Changes([]forms.Field{required}, url.Values{"default_taxes": {""}}, was); err != nil || len(body["default_taxes"].([]any)) != 0 {
		t.Errorf("cleared: %v, %v", body, err)
	}
}
