package view

import (
	"net/url"
	"slices"
	"strconv"

	"holdfast.dev/libs/forms"

	"holdfast.dev/services/console/internal/domain"
)

// Option is a choice of an input.
type Option struct{ Value, Text string }

// Input is a field of a form as a page shows it.
type Input struct {
	Name     string
	Label    string
	Kind     domain.Input
	Value    string
	Selected []string
	Options  []Option
	Required bool
	MaxLen   int
	Min, Max string // of a number; "": no bound
	Hint     string
	ID       string // of the customer whose name is the value; "": the value is what was entered
	Wrong    string // the error of the value; "" for none
	Inner    []Input
	Rows     [][]Input
}

// Choices are the resources that a field of ids can refer to, by the field's name without its ending, as in unit.
type Choices map[string][]Option

// Inputs returns the inputs of fields with the values of a form.
func (f Format) Inputs(fields []forms.Field, form url.Values, choices Choices) []Input {
	out := make([]Input, 0, len(fields))
	for _, field := range fields {
		out = append(out, f.input(field, field.Name, form, choices))
	}
	return out
}

func (f Format) input(field forms.Field, name string, form url.Values, choices Choices) Input {
	in := Input{
		Name: name, Label: f.Label(field.Name), Kind: domain.InputOf(field), Value: form.Get(name), Required: field.Required, MaxLen: field.MaxLen,
		Selected: form[name],
	}
	in.Hint = f.hint(field.Name)
	switch in.Kind {
	case domain.SecretInput, domain.HeadersInput, domain.FileInput:
		in.Value = "" // no page contains a secret or a file
	case domain.NumberInput:
		in.Min, in.Max = strconv.FormatInt(field.Min, 10), ""
		if field.Max != 0 {
			in.Max = strconv.FormatInt(field.Max, 10)
		}
	case domain.ChoiceInput:
		if in.Value == "" && !field.Required {
			in.Value = unsetOf(field)
		}
		in.Options = f.options(field, in.Value, choices)
	case domain.ChoicesInput:
		if in.Options = choices[domain.ResourceKind(field.Name)]; in.Options == nil && field.Items != nil {
			in.Options = f.enumOptions(field.Name, field.Items.Enum)
		}
	case domain.HoursInput:
		in.Value = form.Get(name + ".always")
		for i, day := range domain.Weekdays {
			in.Inner = append(in.Inner, Input{Name: name + "." + day, Label: f.T("weekday_" + strconv.Itoa((i+1)%7)), Kind: domain.TextInput, Value: form.Get(name + "." + day)})
		}
	case domain.AddressInput:
		for _, part := range field.Fields {
			in.Inner = append(in.Inner, Input{
				Name: name + "." + part.Name, Label: f.T("address_" + part.Name), Kind: domain.TextInput, Value: form.Get(name + "." + part.Name), MaxLen: part.MaxLen,
			})
		}
	case domain.AppliesInput:
		in.Options = []Option{{"all", f.T("applies_all")}, {"service_ids", f.T("applies_services")}, {"package_ids", f.T("applies_packages")}}
		for _, kind := range []string{"service_ids", "package_ids"} {
			in.Inner = append(in.Inner, Input{Name: name + "." + kind, Label: f.Label(kind), Kind: domain.ChoicesInput, Options: choices[domain.ResourceKind(kind)], Selected: form[name+"."+kind]})
		}
	case domain.LinesInput:
		f.lines(&in, field, form)
	default: // only the value
	}
	return in
}

// unset are the values that fields without a value have.
var unset = map[string]string{
	"booking_mode": "exclusive", "capture_method": "automatic", "deposit_type": "none", "kind": "full", "method": "gateway", "pricing": "per_booking", "recurrence": "none", "refund": "none",
}

func unsetOf(field forms.Field) string {
	if value := unset[field.Name]; slices.Contains(field.Enum, value) {
		return value
	}
	return ""
}

// options returns the choices of a field: resources, or the values of an enumeration. The first choice of an optional field is to
// leave it empty, unless that is the same as one of its values.
func (f Format) options(field forms.Field, value string, choices Choices) []Option {
	list := choices[domain.ResourceKind(field.Name)]
	enum := list == nil && len(field.Enum) > 0
	if list == nil {
		list = f.enumOptions(field.Name, field.Enum)
	}
	switch {
	case field.Required && list != nil, enum && unsetOf(field) != "", enum && value != "" && !field.Nullable:
		return list
	}
	empty := f.T("none")
	if text, ok := f.Find("empty_" + field.Name); ok {
		empty = text
	}
	return append([]Option{{"", empty}}, list...)
}

func (f Format) enumOptions(field string, enum []string) []Option {
	out := make([]Option, 0, len(enum))
	for _, one := range enum {
		if one != "canceled" || !slices.Contains(enum, "cancelled") { // cancelled is another spelling of canceled
			out = append(out, Option{one, f.WordOf(field, one)})
		}
	}
	return out
}

// lines adds the rows of the line items, and empty ones.
func (f Format) lines(in *Input, field forms.Field, form url.Values) {
	if field.Items == nil {
		return
	}
	last := 0
	for i := 0; domain.HasRow(form, field, i); i++ {
		last = i + 1
	}
	for i := range min(last+domain.Rows, max(field.MaxItems, 1)) {
		var row []Input
		for _, sub := range domain.Columns(field) {
			one := f.input(sub, in.Name+"."+strconv.Itoa(i)+"."+sub.Name, form, nil)
			one.Required = false
			row = append(row, one)
		}
		in.Rows = append(in.Rows, row)
	}
}
