package domain

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Object is a resource as the API returns it. Numbers are json.Number.
type Object map[string]any

// List is a page of a list as the API returns it.
type List struct {
	Data       []Object `json:"data"`
	HasMore    bool     `json:"has_more"`
	NextCursor string   `json:"next_cursor"`
}

// Decode decodes a response into out, and preserves numbers as they are written.
func Decode(raw json.RawMessage, out any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(out)
}

// Text returns the text of a field; "" for null and for any other type.
func (o Object) Text(name string) string {
	s, _ := o[name].(string)
	return s
}

// First returns the first non-empty text.
func (o Object) First(names ...string) string {
	for _, name := range names {
		if s := o.Text(name); s != "" {
			return s
		}
	}
	return ""
}

// Int returns the whole number of a field, and whether it contains one.
func (o Object) Int(name string) (int64, bool) { return whole(o[name]) }

// Count returns an integer field, or 0.
func (o Object) Count(name string) int {
	n, _ := o.Int(name)
	return int(n)
}

func whole(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	return i, err == nil
}

// Bool returns the Boolean value of a field; false for null.
func (o Object) Bool(name string) bool {
	b, _ := o[name].(bool)
	return b
}

// Object returns a nested object; nil for null.
func (o Object) Object(name string) Object {
	m, _ := o[name].(map[string]any)
	return m
}

// Objects returns the objects of a nested list.
func (o Object) Objects(name string) []Object {
	list, _ := o[name].([]any)
	out := make([]Object, 0, len(list))
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// Texts returns the texts of a nested list.
func (o Object) Texts(name string) []string {
	list, _ := o[name].([]any)
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Time returns the instant of a field; nil for null.
func (o Object) Time(name string) *time.Time {
	t, err := time.Parse(time.RFC3339Nano, o.Text(name))
	if err != nil {
		return nil
	}
	return &t
}

// Version returns the resource's version; 0 if it has none.
func (o Object) Version() int64 {
	v, _ := o.Int("version")
	return v
}

// Money is an amount in the smallest unit of its currency.
type Money struct {
	Minor    int64
	Currency string
}

// Money returns an amount: an object with amount and currency, or a number with the resource's currency. It also reports whether
// the field contains one.
func (o Object) Money(name string) (Money, bool) {
	if m := o.Object(name); m != nil {
		minor, ok := m.Int("amount")
		return Money{minor, m.Text("currency")}, ok && m.Text("currency") != ""
	}
	minor, ok := o.Int(name)
	return Money{minor, o.Text("currency")}, ok && o.Text("currency") != ""
}
