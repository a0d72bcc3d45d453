package pages

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/view"
)

// longest is the maximum length of a text if the contract does not define one.
const longest = 5000

func maxLen(in view.Input) string {
	if in.MaxLen == 0 {
		return strconv.Itoa(longest)
	}
	return strconv.Itoa(in.MaxLen)
}

// swapped makes a script replace only the rows of a list and the address. Without scripts, the whole page is loaded.
var swapped = templ.Attributes{"hx-target": "#list", "hx-select": "#list", "hx-select-oob": "#csv,#views", "hx-swap": "outerHTML", "hx-push-url": "true"}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func multiline(s string) bool { return strings.Contains(s, "\n") || len(s) > 80 }

// inputTypes are the types of HTML inputs. Amounts and percentages are texts, because browsers disagree about the decimal comma.
var inputTypes = map[domain.Input]string{
	domain.EmailInput: "email", domain.URLInput: "url", domain.NumberInput: "number", domain.DateInput: "date", domain.TimeInput: "time", domain.DatetimeInput: "datetime-local",
	domain.SecretInput: "password",
}

func inputType(in view.Input) string {
	if t := inputTypes[in.Kind]; t != "" {
		return t
	}
	return "text"
}

// limits returns the attributes with the bounds of an input.
func limits(in view.Input) templ.Attributes {
	out := templ.Attributes{}
	switch in.Kind {
	case domain.NumberInput:
		out["min"] = in.Min
		if in.Max != "" {
			out["max"] = in.Max
		}
	case domain.MoneyInput, domain.PercentInput, domain.DepositInput:
		out["inputmode"] = "decimal"
	case domain.SecretInput:
		out["maxlength"], out["autocomplete"] = maxLen(in), "off"
	case domain.TextInput, domain.EmailInput, domain.URLInput:
		out["maxlength"] = maxLen(in)
	default: // dates, times, and choices have no bounds
	}
	return out
}

// described returns the attributes that refer screen readers to the texts of an input.
func described(in view.Input) templ.Attributes {
	var ids []string
	if in.Hint != "" {
		ids = append(ids, "hint-"+in.Name)
	}
	out := templ.Attributes{}
	if in.Wrong != "" {
		ids = append(ids, "wrong-"+in.Name)
		if in.Kind != domain.ChoicesInput && in.Kind != domain.HoursInput && in.Kind != domain.AddressInput && in.Kind != domain.AppliesInput && in.Kind != domain.LinesInput {
			out["aria-invalid"] = "true"
		}
	}
	if len(ids) > 0 {
		out["aria-describedby"] = strings.Join(ids, " ")
	}
	return out
}

// wrongInput is an input with an error: its id on the page, its label, and the error.
type wrongInput struct{ ID, Label, Text string }

// wrongInputs returns the inputs with errors, in the order of the form.
func wrongInputs(inputs []view.Input) []wrongInput {
	var out []wrongInput
	for _, in := range inputs {
		if in.Wrong != "" {
			out = append(out, wrongInput{"in-" + in.Name, in.Label, in.Wrong})
		}
		out = append(out, wrongInputs(in.Inner)...)
		for i, row := range in.Rows {
			for _, w := range wrongInputs(row) {
				w.Label = in.Label + " " + strconv.Itoa(i+1) + ", " + w.Label
				out = append(out, w)
			}
		}
	}
	return out
}

// hiddenFixed returns fixed values in order.
func hiddenFixed(m map[string]string) [][2]string {
	var out [][2]string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, [2]string{name, m[name]})
	}
	return out
}

// otherTenant returns the address of another tenant, in test mode.
func (f Frame) otherTenant(slug string) templ.SafeURL {
	return templ.URL("/admin/" + slug + "/test/today")
}

// titleText returns the text of a row's link.
func titleText(f Frame, v view.Value) string {
	if v.Text == "" {
		return f.T("untitled")
	}
	return v.Text
}

// quickTry returns a first call with a newly created key.
func quickTry(base, secret string) string {
	return "export HOLDFAST_KEY=" + secret + "\ncurl -sS " + base + "/me -H \"Authorization: Bearer $HOLDFAST_KEY\""
}

// quickCustomer returns the call that creates a customer.
func quickCustomer(base string) string {
	return "curl -sS " + base + "/customers -H \"Authorization: Bearer $HOLDFAST_KEY\" \\\n  -H 'Content-Type: application/json' -H 'Idempotency-Key: first-customer' \\\n  -d '{\"first_name\":\"Ada\",\"email\":\"ada@example.com\"}'"
}
