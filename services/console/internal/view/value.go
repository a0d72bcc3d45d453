package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/services/console/internal/domain"
)

// Kind specifies how a value is displayed.
type Kind string

// The kinds of values.
const (
	Nothing Kind = "nothing"
	Plain   Kind = "plain"
	Link    Kind = "link"
	Links   Kind = "links"
	Badge   Kind = "badge"
	Amount  Kind = "amount"
	Code    Kind = "code"
	Hours   Kind = "hours"
	Members Kind = "members" // of an object: names and values
	Lines   Kind = "lines"
	Taxes   Kind = "taxes"
	Paid    Kind = "payments"
	Until   Kind = "until"   // an instant that is counted down
	Instant Kind = "instant" // or a day
)

// Value is a field of a resource as a page shows it.
type Value struct {
	Name  string // of the field
	Label string
	Kind  Kind
	Text  string
	Href  string
	Tone  string // of a badge: good, bad, busy, calm
	At    string // RFC 3339, of an instant that is counted down
	Links []Value
	Rows  [][]string // of lines, payments, hours, and members
}

// Values converts fields to values. Path returns the address of a page of the workspace. NameOf returns the name of a resource by
// its id, or "" if the name is unknown.
type Values struct {
	Format

	Path   func(page string) string
	NameOf func(id string) string
}

// tones are the tones of statuses; all others are calm.
var tones = map[string]string{
	"confirmed": "good", "paid": "good", "accepted": "good", "succeeded": "good", "active": "good", "enabled": "good", "converted": "good", "completed": "good", "deposit_paid": "good",
	"pending": "busy", "open": "busy", "sent": "busy", "partially_paid": "busy", "new": "busy", "processing": "busy", "delivering": "busy", "requires_action": "busy",
	"requires_capture": "busy", "unpaid": "busy", "maintenance": "busy", "quoted": "busy", "contacted": "busy", "qualified": "busy",
	"invited": "busy", "rotated": "busy",
	"failed": "bad", "no_show": "bad", "overdue": "bad", "uncollectible": "bad", "disabled": "bad", "lost": "bad", "overpaid": "bad",
}

// enumerations are the fields whose values are enumerations.
var enumerations = []string{"pricing", "booking_mode", "tax_behavior", "refund", "method", "source_kind", "kind", "deposit_type", "recurrence", "capture_method", "reason", "cause", "disabled_reason", "failure_reason", "booking_status", "role", "mode"}

// amount shows an amount. Only a rounded total shows its rounding.
func (v Values) amount(out Value, m domain.Money) Value {
	if out.Kind, out.Text = Amount, v.Money(m); out.Name == "rounding_amount" && m.Minor == 0 {
		out.Kind, out.Text = Nothing, ""
	}
	return out
}

// Of returns how a page shows a field of a resource.
func (v Values) Of(o domain.Object, name string) Value {
	out := Value{Name: name, Label: v.Label(name), Kind: Plain}
	raw := o[name]
	if name == "changes" {
		out.Text = v.changes(o)
		if out.Text == "" {
			out.Kind = Nothing
		}
		return out
	}
	if inner := o.Object("data").Object("object"); name == "object" && inner != nil { // of an event
		out.Text = inner.Text("id")
		v.link(&out, o, name, out.Text)
		return out
	}
	if m, ok := o.Money(name); ok && strings.Contains(name, "amount") || ok && o.Object(name) != nil {
		return v.amount(out, m)
	}
	switch value := raw.(type) {
	case nil:
		out.Kind = Nothing
	case bool:
		out.Text = v.T("no")
		if value {
			out.Text = v.T("yes")
		}
		if name == "overdue" || name == "disputed" {
			out.Kind, out.Tone = Badge, "calm"
			if value {
				out.Tone = "bad"
			}
		}
	case json.Number:
		v.number(&out, o, name)
	case string:
		v.text(&out, o, name, value)
	case []any:
		v.list(&out, o, name, value)
	case map[string]any:
		v.object(&out, name, value)
	}
	return out
}

func (v Values) number(out *Value, o domain.Object, name string) {
	n, _ := o.Int(name)
	switch {
	case strings.HasSuffix(name, "_bps"):
		out.Text = v.Percent(n)
	case name == "deposit_value" && o.Text("deposit_type") == "percentage":
		out.Text = v.Percent(n)
	case name == "deposit_value":
		if price, ok := o.Money("base_price"); ok {
			out.Text = v.Money(domain.Money{Minor: n, Currency: price.Currency})
		}
	default:
		out.Text = strconv.FormatInt(n, 10)
	}
}

func (v Values) text(out *Value, o domain.Object, name, s string) {
	out.Text = s
	switch {
	case s == "":
		out.Kind = Nothing
	case name == "status" || name == "payment_status" || name == "state":
		out.Kind, out.Text, out.Tone = Badge, v.Word(s), tones[s]
	case slices.Contains(enumerations, name):
		out.Text = v.WordOf(name, s)
	case strings.HasSuffix(name, "_id") || name == "id" || name == "actor" || name == "object":
		v.link(out, o, name, s)
	case name == "hold_expires_at" && o.Text("status") == "pending":
		if at := o.Time(name); at != nil {
			out.Kind, out.Text, out.At = Until, v.DateTime(*at), at.Format(time.RFC3339)
		}
	case name == domain.LastDay && s == o.Text("event_local_date"): // only bookings of several days show it
		out.Kind, out.Text = Nothing, ""
	case name == "event_local_date", name == "event_local_end_date", name == "date_from", name == "date_to":
		out.Kind, out.Text = Instant, v.Day(s)
	case name == "applies_to":
		out.Text = v.T("applies_all")
	case name == "at" || strings.HasSuffix(name, "_at") || strings.HasSuffix(name, "event_date"):
		if at := o.Time(name); at != nil {
			out.Kind, out.Text = Instant, v.DateTime(*at)
		}
	}
}

// link sets the value of an id: a link with a name for another resource, only text for the resource itself.
func (v Values) link(out *Value, o domain.Object, name, id string) {
	r := domain.ResourceOf(id)
	if r == nil && name == "actor" {
		out.Text = v.Actor(id)
		return
	}
	if r == nil || !r.HasPage() || name == "id" && r.Prefix != "pi" && r.Prefix != "rf" && r.Prefix != "evt" && r.Prefix != "req" {
		out.Kind, out.Text = Code, id
		return
	}
	out.Kind, out.Href = Link, v.Path(r.Name+"/"+id)
	if inner := o.Object(strings.TrimSuffix(name, "_id")); inner != nil {
		out.Text = r.TitleOf(inner)
	} else if title := v.NameOf(id); title != "" && name != "id" {
		out.Text = title
	}
}

func (v Values) list(out *Value, o domain.Object, name string, list []any) {
	if len(list) == 0 {
		out.Kind = Nothing
		return
	}
	switch name {
	case "line_items":
		out.Kind = Lines
		for _, item := range o.Objects(name) {
			unit, _ := item.Money("unit_amount")
			sum, _ := item.Money("amount")
			quantity, _ := item.Int("quantity")
			discount, _ := item.Money("discount_amount")
			out.Rows = append(out.Rows, []string{
				item.Text("description"), strconv.FormatInt(quantity, 10), v.Money(unit), v.Money(discount), v.Taxes(item.Objects("taxes")), v.Money(sum),
			})
		}
	case "tax_breakdown":
		out.Kind = Taxes
		for _, r := range o.Objects(name) {
			taxable, _ := r.Money("taxable_amount")
			tax, _ := r.Money("tax_amount")
			out.Rows = append(out.Rows, []string{r.Text("name"), v.Rate(r.Text("rate")), v.Money(taxable), v.Money(tax)})
		}
	case "default_taxes":
		out.Text = v.Taxes(o.Objects(name))
	case "payments":
		out.Kind = Paid
		for _, p := range o.Objects(name) {
			m, _ := p.Money("amount")
			at, state := "", v.T("paid")
			if t := p.Time("paid_at"); t != nil {
				at = v.DateTime(*t)
			}
			if p.Text("reversed_at") != "" {
				state = v.T("reversed")
			}
			reverse := ""
			if p.Text("source") == "manual" && p.Text("reversed_at") == "" {
				reverse = p.Text("id")
			}
			out.Rows = append(out.Rows, []string{at, v.Word(p.Text("method")), p.Text("reference"), v.Money(m), state, reverse})
		}
	case "allocations", "refund_rules":
		out.Kind = Members
		for _, one := range o.Objects(name) {
			out.Rows = append(out.Rows, v.members(v.amountOf(one, o))...)
		}
	default:
		v.texts(out, o, name, list)
	}
}

// amountOf returns an object with the currency of the object that contains it, so that its amounts can be shown.
func (v Values) amountOf(o, outer domain.Object) domain.Object {
	currency := outer.Text("currency")
	if m, ok := outer.Money("amount"); ok {
		currency = m.Currency
	}
	if currency == "" {
		return o
	}
	out := maps.Clone(o)
	out["currency"] = currency
	return out
}

// memberOrder is the order of the members that pages show before all others.
var memberOrder = []string{"cancelled_at", "reason", "refund_amount_due", "payment_intent_id", "hours_before", "percent"}

// members returns the names and values of the members of an object and of the objects in it. Members without a value are omitted.
func (v Values) members(o domain.Object) [][]string {
	names := slices.Sorted(maps.Keys(o))
	slices.SortStableFunc(names, func(a, b string) int {
		rank := func(name string) int {
			if i := slices.Index(memberOrder, name); i >= 0 {
				return i
			}
			return len(memberOrder)
		}
		return rank(a) - rank(b)
	})
	var rows, inner [][]string
	for _, name := range names {
		if name == "currency" {
			continue
		}
		switch one := v.Of(o, name); one.Kind {
		case Nothing:
		case Members:
			inner = append(inner, one.Rows...)
		default:
			rows = append(rows, []string{one.Label, one.Text})
		}
	}
	return append(rows, inner...)
}

func (v Values) texts(out *Value, o domain.Object, name string, list []any) {
	texts := o.Texts(name)
	if len(texts) < len(list) {
		out.Kind, out.Text = Code, Indented(list)
		return
	}
	if domain.ResourceOf(texts[0]) == nil {
		if out.Text = strings.Join(texts, ", "); out.Text == "*" {
			out.Text = v.T("all_events")
		}
		return
	}
	out.Kind = Links
	for _, id := range texts {
		one := Value{Name: name, Text: id}
		v.link(&one, nil, name+"_id", id)
		out.Links = append(out.Links, one)
	}
}

func (v Values) object(out *Value, name string, m domain.Object) {
	switch {
	case len(m) == 0 && name != "opening_hours":
		out.Kind = Nothing
	case name == "opening_hours":
		out.Kind = Hours
		for i, day := range domain.Weekdays {
			text := domain.HoursText(m[day])
			if text == "" {
				text = v.T("closed")
			}
			out.Rows = append(out.Rows, []string{v.Weekday(time.Weekday((i + 1) % 7)), text})
		}
	case name == "applies_to":
		out.Kind = Links
		for _, kind := range []string{"service_ids", "package_ids"} {
			for _, id := range m.Texts(kind) {
				one := Value{Name: name, Text: id}
				v.link(&one, nil, kind+"_id", id)
				out.Links = append(out.Links, one)
			}
		}
	case name == "billing_address":
		v.address(out, m)
	case name == "headers": // whose values are null
		names(out, m)
	case name == "failure" && m.Text("message") != "":
		out.Text = v.failure(m)
	case name == "cancellation" || name == "policy" || name == "request":
		out.Kind, out.Rows = Members, v.members(m)
	default:
		out.Kind, out.Text = Code, Indented(map[string]any(m))
	}
}

// address sets the parts that an address has.
func (v Values) address(out *Value, m domain.Object) {
	for _, part := range addressParts {
		if text := m.Text(part); text != "" {
			out.Rows = append(out.Rows, []string{v.T("address_" + part), text})
		}
	}
	if out.Kind = Members; out.Rows == nil {
		out.Kind = Nothing
	}
}

// addressParts are the parts of an address, in the order of a page.
var addressParts = []string{"line1", "line2", "postal_code", "city", "state", "country"}

// failure returns the text of a failed payment, with its codes.
func (v Values) failure(m domain.Object) string {
	out := m.Text("message")
	if text, ok := v.Find("failure_" + m.Text("code")); ok {
		out = text
	}
	for _, code := range []string{"code", "decline_code"} {
		if s := m.Text(code); s != "" {
			out += " (" + s + ")"
		}
	}
	return out
}

// names sets the names of the members of an object as the value.
func names(out *Value, m domain.Object) {
	if len(m) == 0 {
		out.Kind = Nothing
	}
	out.Text = strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// longestChange is the maximum number of characters of a value that the audit log shows.
const longestChange = 120

// unsaid are fields of every record that are omitted, because its other columns already show them.
var unsaid = []string{"id", "tenant_id", "version", "mode", "created_at", "updated_at"}

// changes describes a change in a record of the audit log: each field with its values, or only the names of the fields.
func (v Values) changes(o domain.Object) string {
	before, after := o.Object("before"), o.Object("after")
	if list, ok := after["fields"].([]any); ok { // from a service that does not store values
		names := make([]string, 0, len(list))
		for _, one := range after.Texts("fields") {
			names = append(names, v.Label(one))
		}
		return strings.Join(names, ", ")
	}
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if slices.Contains(unsaid, name) {
			continue
		}
		was, is := short(before[name]), short(after[name])
		switch {
		case was == is:
		case before == nil:
			lines = append(lines, v.Label(name)+": "+is)
		default:
			lines = append(lines, v.Label(name)+": "+was+" → "+is)
		}
	}
	return strings.Join(lines, "\n")
}

// short returns a value on one line.
func short(v any) string {
	s, ok := v.(string)
	if !ok {
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		s = string(raw)
	}
	if v == nil {
		s = "–"
	}
	if runes := []rune(s); len(runes) > longestChange {
		s = string(runes[:longestChange]) + "…"
	}
	return s
}

// MostShown is the maximum number of bytes of a document on a page, so that the page stays small regardless of the content of an
// event.
const MostShown = 32 << 10

// Indented returns a document in a readable form.
func Indented(v any) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return cut(strings.TrimSpace(out.String()))
}

// IndentedText returns a sent document in a readable form, with its fields in their original order.
func IndentedText(raw string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(raw), "", "  "); err != nil {
		return cut(raw)
	}
	return cut(out.String())
}

// cut shortens a text that is too long for a page and adds the number of omitted bytes.
func cut(s string) string {
	if len(s) <= MostShown {
		return s
	}
	shown := strings.ToValidUTF8(s[:MostShown], "")
	return fmt.Sprintf("%s\n… (+ %d bytes)", shown, len(s)-len(shown))
}
