package domain

import (
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"
	"holdfast.dev/libs/money"
)

// noTaxes is the text of a list without taxes. An empty text leaves the taxes to the defaults.
const noTaxes = "0"

// Columns returns the fields of a row of a list. A form has taxes instead of their short form.
func Columns(list forms.Field) []forms.Field {
	if list.Items == nil {
		return nil
	}
	var out []forms.Field
	for _, f := range list.Items.Fields {
		if f.Name != "tax_rate_bps" {
			out = append(out, f)
		}
	}
	return out
}

// taxes parses taxes with their rates, such as "GST 5; QST 9.975 %".
func (r Reader) taxes(name, text string) ([]any, error) {
	out := []any{}
	if text == noTaxes {
		return out, nil
	}
	wrong := apperr.Field(name, "Must be names with rates in percent, such as %s.", r.taxesText([]Object{{"name": "GST", "rate": "5"}, {"name": "QST", "rate": "9.975"}}))
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(part), "%"))
		at := strings.LastIndexAny(part, " \u00a0\t")
		if at < 0 {
			return nil, wrong
		}
		rate, err := money.ParseRate(strings.Replace(strings.TrimSpace(part[at:]), ",", ".", 1)) // no rate has thousands
		if err != nil {
			return nil, wrong
		}
		out = append(out, map[string]any{"name": strings.TrimSpace(part[:at]), "rate": rate.String()})
	}
	return out, nil
}

// taxesText writes taxes as they are entered.
func (r Reader) taxesText(list []Object) string {
	parts := make([]string, len(list))
	for i, tax := range list {
		parts[i] = tax.Text("name") + " " + r.Notation.write(tax.Text("rate"))
	}
	return strings.Join(parts, "; ")
}

// enteredLine returns a line item with only the fields that were entered: one kind of discount, and none of 0.
func enteredLine(item Object) Object {
	out := Object{}
	for name, value := range item {
		out[name] = value
	}
	delete(out, "discount_amount") // it contains a share of the document's discount
	if item["fixed_discount_amount"] != nil {
		out["discount_amount"] = item["fixed_discount_amount"]
	}
	if n, _ := item.Int("discount_bps"); n == 0 {
		delete(out, "discount_bps")
	}
	return out
}
