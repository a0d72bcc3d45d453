package domain

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"
	"holdfast.dev/libs/money"
)

// Weekdays are the days of opening hours, in the order of a form.
var Weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// Draft is the input that an operator entered into a form before they had to sign in again.
type Draft struct {
	Page   string // path of the page that contains the form
	Values url.Values
}

// Keepable returns the values of a form that can be stored: all except secrets, files and the form's token.
func Keepable(form url.Values) url.Values {
	out := url.Values{}
	for name, values := range form {
		if name != "form" && !slices.Contains([]Input{SecretInput, HeadersInput, FileInput}, special[name]) {
			out[name] = values
		}
	}
	return out
}

// RestoreIDs replaces the names of customers that a form showed, and that were not changed, with their ids.
func RestoreIDs(form url.Values) {
	for name := range special {
		shown, id := "shown_"+name, "id_"+name
		if special[name] == CustomerInput && form.Has(id) && form.Get(name) == form.Get(shown) {
			form.Set(name, form.Get(id))
		}
		form.Del(shown)
		form.Del(id)
	}
}

// Rows is how many line items a form has in addition to the existing ones.
const Rows = 3

// Reader converts forms to request bodies and back, in a tenant's time zone and currency, with numbers in the notation of the
// form's language.
type Reader struct {
	Zone     *time.Location
	Currency string
	Notation Notation
}

// Input is the kind of input of a field.
type Input string

// The inputs of forms.
const (
	TextInput     Input = "text"
	LongInput     Input = "long" // several lines
	EmailInput    Input = "email"
	URLInput      Input = "url"
	NumberInput   Input = "number"
	MoneyInput    Input = "money"   // a decimal number in the tenant's currency
	PercentInput  Input = "percent" // of basis points
	DateInput     Input = "date"
	TimeInput     Input = "time"
	DatetimeInput Input = "datetime"
	CheckInput    Input = "check"
	ChoiceInput   Input = "choice"
	ChoicesInput  Input = "choices"
	CustomerInput Input = "customer"
	HoursInput    Input = "hours"
	LinesInput    Input = "lines"
	AppliesInput  Input = "applies"
	JSONInput     Input = "json"
	TextsInput    Input = "texts" // one in each line
	SecretInput   Input = "secret"
	HeadersInput  Input = "headers" // JSON that no page shows, because its values are secret
	DepositInput  Input = "deposit" // an amount or a percentage, depending on deposit_type
	TaxesInput    Input = "taxes"   // names and rates
	AddressInput  Input = "address" // one text for each part
	FileInput     Input = "file"
)

// long are the text fields with a multi-line input.
var long = []string{"notes", "description", "message", "terms", "billing_address", "address"}

// special are the fields whose input does not follow from their type.
var special = map[string]Input{
	"customer_id": CustomerInput, "opening_hours": HoursInput, "line_items": LinesInput, "applies_to": AppliesInput, "metadata": JSONInput,
	"headers": HeadersInput, "endpoint_id": ChoiceInput,
	"deposit_value": DepositInput, "amount_minor": MoneyInput, "service_id": ChoiceInput, "unit_id": ChoiceInput, "package_id": ChoiceInput,
	"redirect_uris": TextsInput, "browser_origins": TextsInput, "overlap_seconds": ChoiceInput, "secret_key": SecretInput, "webhook_secret": SecretInput,
	"refund_rules": LinesInput, "taxes": TaxesInput, "default_taxes": TaxesInput, "event_date": DateInput, "url": URLInput, "type": ChoiceInput,
	"logo": FileInput,
}

// InputOf returns the input of a field of the contract.
func InputOf(f forms.Field) Input {
	if in, ok := special[f.Name]; ok {
		return in
	}
	switch {
	case f.IsMoney():
		return MoneyInput
	case slices.ContainsFunc(f.Fields, func(part forms.Field) bool { return part.Name == "postal_code" }):
		return AddressInput
	case f.Kind == "boolean":
		return CheckInput
	case f.Kind == "array":
		return ChoicesInput
	case f.Kind == "integer" && strings.HasSuffix(f.Name, "_bps"):
		return PercentInput
	case f.Kind == "integer":
		return NumberInput
	case len(f.Enum) > 0:
		return ChoiceInput
	case f.Format == "email":
		return EmailInput
	case f.Format == "date":
		return DateInput
	case f.Format == "date-time", f.Format == "holdfast-datetime":
		return DatetimeInput
	case strings.HasSuffix(f.Name, "_time"):
		return TimeInput
	case slices.Contains(long, f.Name):
		return LongInput
	}
	return TextInput
}

// Body creates a request body from a form. An empty field is null if the contract allows that, else it is omitted. The error
// contains a message for each field that cannot be read.
func (r Reader) Body(fields []forms.Field, form url.Values) (map[string]any, error) {
	body := map[string]any{}
	var wrong []error
	for _, f := range fields {
		v, given, err := r.value(f, form)
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case given:
			body[f.Name] = v
		case f.Nullable:
			body[f.Name] = nil
		}
	}
	return body, apperr.Join(wrong...)
}

// Changes is Body with only the fields that differ from the resource. A cleared field that cannot be null becomes an empty text or
// an error.
func (r Reader) Changes(fields []forms.Field, form url.Values, o Object) (map[string]any, error) {
	was := r.Form(fields, o)
	var changed []forms.Field
	for _, f := range fields {
		if !sameInput(f, form, was) {
			changed = append(changed, f)
		}
	}
	body, err := r.Body(changed, form)
	wrong := []error{err}
	for _, f := range changed {
		if _, ok := body[f.Name]; ok || fieldOf(err, f.Name) {
			continue
		}
		switch InputOf(f) {
		case TextInput, LongInput, EmailInput, URLInput:
			body[f.Name] = ""
		case TaxesInput:
			body[f.Name] = []any{}
		case HoursInput, SecretInput, HeadersInput: // the form contains no value
		default:
			wrong = append(wrong, apperr.Field(f.Name, "Is required."))
		}
	}
	return body, apperr.Join(wrong...)
}

// fieldOf reports whether an error concerns a field or a part of it.
func fieldOf(err error, name string) bool {
	return err != nil && slices.ContainsFunc(apperr.As(err).Fields, func(f apperr.FieldError) bool { return f.Field == name || strings.HasPrefix(f.Field, name+".") })
}

// sameInput reports whether two forms have the same values for a field.
func sameInput(f forms.Field, a, b url.Values) bool {
	if InputOf(f) == CheckInput { // a browser sends nothing for an unchecked box
		return (a.Get(f.Name) == "true") == (b.Get(f.Name) == "true")
	}
	if InputOf(f) == HeadersInput { // no form contains the stored ones
		return strings.TrimSpace(a.Get(f.Name)) == strings.TrimSpace(b.Get(f.Name))
	}
	lines := strings.NewReplacer("\r\n", "\n")
	if in := InputOf(f); in != LongInput && in != JSONInput && in != TextsInput { // a browser removes line breaks in all other inputs
		lines = strings.NewReplacer("\r", "", "\n", "")
	}
	pick := func(v url.Values) []string {
		var out []string
		for name, values := range v {
			if name == f.Name || strings.HasPrefix(name, f.Name+".") || f.Name == "deposit_value" && name == "deposit_type" {
				for _, s := range values {
					if s = lines.Replace(s); s != "" {
						out = append(out, name+"="+s)
					}
				}
			}
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(pick(a), pick(b))
}

func (r Reader) value(f forms.Field, form url.Values) (v any, given bool, err error) {
	text := strings.TrimSpace(strings.ReplaceAll(form.Get(f.Name), "\r\n", "\n"))
	switch in := InputOf(f); in {
	case CheckInput:
		return text == "true", true, nil
	case ChoicesInput:
		return r.choices(f, form)
	case TextsInput:
		return texts(text), form.Has(f.Name), nil
	case HoursInput:
		return hours(f, form)
	case AddressInput:
		parts := address(f, form)
		return parts, len(parts) > 0, nil
	case LinesInput:
		return r.lines(f, form)
	case AppliesInput:
		return appliesTo(form), true, nil
	default:
		if text == "" && in == DepositInput && slices.Contains([]string{"flat", "percentage"}, form.Get("deposit_type")) {
			return nil, false, apperr.Field(f.Name, "Is required.")
		}
		if text == "" {
			return nil, false, nil
		}
		v, err = r.scalar(f, in, text, form)
		return v, err == nil, err
	}
}

func (r Reader) scalar(f forms.Field, in Input, text string, form url.Values) (any, error) {
	switch in {
	case PercentInput:
		return r.percent(f.Name, text)
	case MoneyInput, DepositInput:
		if in == DepositInput && form.Get("deposit_type") == "percentage" {
			return r.percent(f.Name, text)
		}
		a, err := r.amount(f.Name, text)
		if f.Kind == "integer" {
			return a.Minor, err
		}
		return map[string]any{"amount": a.Minor, "currency": a.Currency}, err
	case TaxesInput:
		return r.taxes(f.Name, text)
	case NumberInput, ChoiceInput:
		if f.Kind != "integer" {
			return text, nil
		}
		return r.whole(f.Name, text)
	case DatetimeInput:
		at, err := time.ParseInLocation("2006-01-02T15:04", text, r.Zone)
		if err != nil {
			return nil, apperr.Field(f.Name, "Must be a date with a time.")
		}
		return at.Format(time.RFC3339), nil
	case JSONInput, HeadersInput:
		var v json.RawMessage
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return nil, apperr.Field(f.Name, `Must be JSON, such as {"colour": "blue"}.`)
		}
		return v, nil
	case CustomerInput:
		parts := strings.Fields(text)
		for _, id := range []string{parts[0], parts[len(parts)-1]} { // the name can be before or after the id
			if ResourceOf(id) != nil {
				return id, nil
			}
		}
		return text, nil
	default:
		return text, nil
	}
}

func (r Reader) choices(f forms.Field, form url.Values) (any, bool, error) {
	if f.Items != nil && f.Items.Kind == "array" {
		return nil, false, nil
	}
	list := []string{}
	for _, v := range form[f.Name] {
		if v != "" {
			list = append(list, v)
		}
	}
	if len(list) == 0 && f.MinItems > 0 && !f.Required { // an empty selection is omitted if an empty list is not allowed
		return nil, false, nil
	}
	return list, len(list) > 0 || form.Has(f.Name), nil // a hidden empty value means that none was selected
}

// address returns the non-empty parts of an address.
func address(f forms.Field, form url.Values) map[string]any {
	out := map[string]any{}
	for _, part := range f.Fields {
		if text := strings.TrimSpace(form.Get(f.Name + "." + part.Name)); text != "" {
			out[part.Name] = text
		}
	}
	return out
}

// texts returns the non-empty lines of a text.
func texts(text string) []string {
	out := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// lines reads the rows of a list. Empty rows are omitted. Errors count rows in the order of RowsFirst.
func (r Reader) lines(f forms.Field, form url.Values) (any, bool, error) {
	list, wrong := []any{}, []error{}
	for i := 0; f.Items != nil && HasRow(form, f, i); i++ {
		if emptyRow(form, f, i) {
			continue
		}
		item := map[string]any{}
		for _, sub := range Columns(f) {
			named := sub
			named.Name = row(f.Name, len(list), sub.Name)
			text := strings.TrimSpace(form.Get(row(f.Name, i, sub.Name)))
			switch v, err := r.scalar(named, InputOf(sub), text, form); {
			case text == "" && sub.Required:
				wrong = append(wrong, apperr.Field(named.Name, "Is required."))
			case text == "":
			case err != nil:
				wrong = append(wrong, err)
			default:
				item[sub.Name] = v
			}
		}
		list = append(list, item)
	}
	return list, len(list) > 0, apperr.Join(wrong...)
}

// RowsFirst returns a form with the empty rows of each list after the others, so that the row numbers match the items in the body.
func RowsFirst(fields []forms.Field, form url.Values) url.Values {
	out := maps.Clone(form)
	for _, f := range fields {
		if InputOf(f) != LinesInput || f.Items == nil {
			continue
		}
		var full, empty []int
		for i := 0; HasRow(form, f, i); i++ {
			if emptyRow(form, f, i) {
				empty = append(empty, i)
			} else {
				full = append(full, i)
			}
		}
		for to, from := range append(full, empty...) {
			for _, sub := range Columns(f) {
				out[row(f.Name, to, sub.Name)] = form[row(f.Name, from, sub.Name)]
			}
		}
	}
	return out
}

// HasRow reports whether a form has a row with that number, empty or not.
func HasRow(form url.Values, f forms.Field, i int) bool {
	return slices.ContainsFunc(Columns(f), func(sub forms.Field) bool { return form.Has(row(f.Name, i, sub.Name)) })
}

// emptyRow reports whether a row has no significant input. A quantity alone is the initial state of the form.
func emptyRow(form url.Values, f forms.Field, i int) bool {
	return !slices.ContainsFunc(Columns(f), func(sub forms.Field) bool {
		return sub.Required && sub.Name != "quantity" && strings.TrimSpace(form.Get(row(f.Name, i, sub.Name))) != ""
	})
}

func row(name string, i int, field string) string { return name + "." + strconv.Itoa(i) + "." + field }

func appliesTo(form url.Values) any {
	switch kind := form.Get("applies_to"); kind {
	case "service_ids", "package_ids":
		list := []string{}
		for _, id := range form["applies_to."+kind] {
			if id != "" {
				list = append(list, id)
			}
		}
		return map[string]any{kind: list}
	}
	return "all"
}

// Form returns the values with which a form shows a resource.
func (r Reader) Form(fields []forms.Field, o Object) url.Values {
	form := url.Values{}
	for _, f := range fields {
		r.show(form, f, o)
	}
	return form
}

func (r Reader) show(form url.Values, f forms.Field, o Object) {
	switch in := InputOf(f); in {
	case ChoicesInput:
		form[f.Name] = o.Texts(f.Name)
	case TextsInput:
		form.Set(f.Name, strings.Join(o.Texts(f.Name), "\n"))
	case HoursInput:
		showHours(form, f.Name, o)
	case AddressInput:
		showAddress(form, f, o.Object(f.Name))
	case LinesInput:
		if f.Items == nil {
			return
		}
		for i, item := range o.Objects(f.Name) {
			if f.Name == "line_items" {
				item = enteredLine(item)
			}
			for _, sub := range Columns(f) {
				form.Set(row(f.Name, i, sub.Name), r.text(sub, InputOf(sub), item))
			}
		}
	case AppliesInput:
		form.Set(f.Name, "all")
		for _, kind := range []string{"service_ids", "package_ids"} {
			if list := o.Object(f.Name).Texts(kind); list != nil {
				form.Set(f.Name, kind)
				form[f.Name+"."+kind] = list
			}
		}
	default:
		if text := r.text(f, in, o); text != "" {
			form.Set(f.Name, text)
		}
	}
}

// showAddress sets the parts that an address has.
func showAddress(form url.Values, f forms.Field, address Object) {
	for _, part := range f.Fields {
		if text := address.Text(part.Name); text != "" {
			form.Set(f.Name+"."+part.Name, text)
		}
	}
}

// text returns the value of a field as its input shows it.
func (r Reader) text(f forms.Field, in Input, o Object) string {
	n, isInt := o.Int(f.Name)
	switch {
	case in == CheckInput:
		return strconv.FormatBool(o.Bool(f.Name))
	case in == MoneyInput && !isInt:
		if m, ok := o.Money(f.Name); ok {
			return r.decimal(m.Minor)
		}
		return ""
	case in == MoneyInput, in == DepositInput && isInt && o.Text("deposit_type") != "percentage":
		return r.decimal(n)
	case isInt && (in == PercentInput || in == DepositInput):
		return r.Notation.write(strings.TrimSuffix(money.Amount{Minor: n}.Decimal(2), ".00"))
	case isInt:
		return strconv.FormatInt(n, 10)
	case in == DatetimeInput:
		if at := o.Time(f.Name); at != nil {
			return at.In(r.Zone).Format("2006-01-02T15:04")
		}
		return ""
	case f.Name == "event_date":
		return o.Text("event_local_date")
	case f.Name == LastDay:
		return lastDay(o)
	case in == JSONInput:
		return indented(o[f.Name])
	case in == TaxesInput:
		if _, given := o[f.Name].([]any); given && len(o.Objects(f.Name)) == 0 && (f.Name != "default_taxes" || f.Nullable) {
			return noTaxes
		}
		return r.taxesText(o.Objects(f.Name))
	}
	return o.Text(f.Name)
}

// indented returns a value as JSON with one line for each member; "" for no value.
func indented(v any) string {
	m, _ := v.(map[string]any)
	list, _ := v.([]any)
	if len(m)+len(list) == 0 {
		return ""
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// ResourceKind returns the kind of resource that a field of ids refers to: unit for unit_id and unit_ids; "" for other fields.
func ResourceKind(field string) string {
	for _, ending := range []string{"_ids", "_id"} {
		if kind, ok := strings.CutSuffix(field, ending); ok {
			return kind
		}
	}
	return field
}
