package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/forms"

	"holdfast.dev/services/console/internal/domain"
)

// inLanguage sends the request of a browser whose pages are in a language.
func (p *platform) inLanguage(lang, method, path string, form url.Values) (page string, status int) {
	p.t.Helper()
	in := request{Method: method, Path: path, Header: map[string]string{"Cookie": "holdfast_session=owner; holdfast_language=" + lang}}
	if form != nil {
		form = maps.Clone(form)
		form.Set("form", p.formToken("owner"))
		in.Body = form.Encode()
	}
	w := p.send(in)
	return w.Body.String(), w.Code
}

// german holds numbers in the notation of a German page, by the input of their field, and the values that are sent to the
// services.
var german = map[domain.Input][2]string{domain.MoneyInput: {"1.234,5", "123450"}, domain.PercentInput: {"12,5", "1250"}, domain.NumberInput: {"1.250", "1250"}, domain.DepositInput: {"12,5", "1250"}}

// numberFields returns the names of the number inputs of a form, with their fields.
func numberFields(fields []forms.Field, form url.Values) map[string]forms.Field {
	out := map[string]forms.Field{}
	for _, f := range fields {
		if _, ok := german[domain.InputOf(f)]; ok && form.Has(f.Name) {
			out[f.Name] = f
		}
		if f.Items != nil {
			for _, sub := range f.Items.Fields {
				if name := f.Name + ".0." + sub.Name; form.Has(name) {
					if _, ok := german[domain.InputOf(sub)]; ok {
						out[name] = sub
					}
				}
			}
		}
	}
	return out
}

// at returns the value at a dotted path of a body.
func at(body any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch inner := body.(type) {
		case map[string]any:
			body = inner[name]
		case []any:
			body = inner[0]
		}
	}
	return body
}

// TestEachNumberIsReadByLanguage checks that each number field, in every form, is parsed in the language of the page, even if the
// browser uses another language by then.
func TestEachNumberIsReadByLanguage(t *testing.T) {
	t.Parallel()
	checked := map[domain.Input]int{}
	for _, route := range newPlatform(t, options{}).routes() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodPost || slices.Contains(reads, route) || slices.Contains(elsewhere, route) {
			continue
		}
		p := newPlatform(t, options{})
		p.lax = true
		where := address("alpha", "test", path)
		form := p.changedForm(where)
		p.forget()
		p.post("owner", where, form)
		op := parts().operations[p.only(t).ID]
		for name, f := range numberFields(op.Body, form) {
			typed := maps.Clone(form)
			if strings.HasPrefix(name, "line_items.0.") {
				maps.Copy(typed, url.Values{"line_items.0.description": {"Boat"}, "line_items.0.quantity": {"1"}, "line_items.0.unit_amount": {"1"}})
			}
			if strings.HasPrefix(name, "refund_rules.0.") {
				maps.Copy(typed, url.Values{"refund_rules.0.hours_before": {"1"}, "refund_rules.0.percent": {"1"}})
			}
			want := german[domain.InputOf(f)]
			typed.Set(name, want[0])
			typed.Set("lang", "de")
			p.forget()
			page, _ := p.inLanguage("en", http.MethodPost, where, typed)
			list := p.written()
			if len(list) != 1 {
				t.Errorf("%s, %s: %d calls: %s", path, name, len(list), alerts(parse(t, page)))
				continue
			}
			got := at(list[0].body(t), name)
			if m, ok := got.(map[string]any); ok {
				got = m["amount"]
			}
			if checked[domain.InputOf(f)]++; fmt.Sprint(got) != want[1] {
				t.Errorf("%s, %s: %s is read as %v", path, name, want[0], got)
			}
		}
	}
	if checked[domain.MoneyInput] < 8 || checked[domain.PercentInput] < 6 || checked[domain.NumberInput] < 15 {
		t.Errorf("%v", checked)
	}
}

// TestFormsShowNumbersByLanguage checks that a form shows numbers in the notation of its page's language, and that an unchanged
// number changes nothing.
func TestFormsShowNumbersByLanguage(t *testing.T) {
	t.Parallel()
	for lang, price := range map[string]string{"en": "1234.567", "de": "1234,567"} {
		p := newPlatform(t, options{})
		kuwaiti := tenant(alpha, "alpha", "owner")
		kuwaiti.Currency = "KWD"
		p.signIn("owner", kuwaiti)
		p.setResponse("getPackage", object(exampleObject(t, "getPackage", map[string]any{"base_price": map[string]any{"amount": json.Number("1234567"), "currency": "KWD"}, "deposit_type": "flat", "deposit_value": json.Number("250")})))
		path := address("alpha", "test", "/packages/:id/edit")
		page, _ := p.inLanguage(lang, http.MethodGet, path, nil)
		form := formOf(t, parse(t, page), path)
		if form.Get("base_price") != price || form.Get("lang") != lang || form.Get("deposit_value") != strings.Replace("0.250", ".", price[4:5], 1) {
			t.Errorf("%s: %v", lang, form)
		}
		for _, now := range []string{"en", "de"} {
			if _, status := p.inLanguage(now, http.MethodPost, path, form); status != http.StatusSeeOther || len(p.written()) != 0 {
				t.Errorf("a form in %s, sent in %s: %d, %d writes", lang, now, status, len(p.written()))
			}
		}
		form.Set("base_price", map[string]string{"en": "1,250", "de": "1.250"}[lang])
		page, status := p.inLanguage("en", http.MethodPost, path, form)
		doc := parse(t, page)
		want := map[string]string{"en": "Is ambiguous. Write 1250 or 1.250.", "de": "Kann auf zwei Arten gelesen werden. Schreiben Sie 1250 oder 1,250."}[lang]
		if again := formOf(t, doc, path); status != http.StatusUnprocessableEntity || messageAt(doc, "base_price") != want || again.Get("lang") != lang || again.Get("base_price") != form.Get("base_price") {
			t.Errorf("%s: %d, %q, %v", lang, status, messageAt(doc, "base_price"), again)
		}
		if len(p.written()) != 0 {
			t.Error("an ambiguous amount is sent")
		}
	}
}
