package domain_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/forms"
	"holdfast.dev/proto"

	"holdfast.dev/services/console/internal/domain"
)

var operations = sync.OnceValues(func() (map[string]forms.Form, error) { return forms.Load(proto.OpenAPI) })

// written is text as a person writes it, without surrounding spaces, because forms trim them.
var written = rapid.Custom(func(t *rapid.T) string {
	return strings.TrimSpace(rapid.StringOf(rapid.SampledFrom([]rune("aZ09 äß日\n\"<>&%+=;,.\u202e😀"))).Draw(t, "text"))
})

var amount = rapid.Custom(func(t *rapid.T) any {
	return map[string]any{"amount": json.Number(fmt.Sprint(rapid.Int64Range(0, 1e12).Draw(t, "minor"))), "currency": "USD"}
})

var someIDs = rapid.Custom(func(t *rapid.T) []any {
	list := []any{}
	for i := range rapid.IntRange(0, 3).Draw(t, "ids") {
		list = append(list, fmt.Sprintf("un_%d", i))
	}
	return list
})

func whole(t *rapid.T, most int64) any {
	return json.Number(fmt.Sprint(rapid.Int64Range(0, most).Draw(t, "number")))
}

// clockTime returns a random time of day.
func clockTime(t *rapid.T) string {
	return fmt.Sprintf("%02d:%02d", rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"))
}

// instant returns a random instant of three years, without seconds. In this period the clocks change six times.
func instant(t *rapid.T) time.Time {
	return time.Date(2026, 1, 1, 0, rapid.IntRange(0, 3*365*24*60).Draw(t, "minutes"), 0, 0, time.UTC)
}

func week(t *rapid.T) any {
	out := map[string]any{}
	for _, day := range domain.Weekdays {
		var list []any
		for range rapid.IntRange(0, 2).Draw(t, day) {
			list = append(list, []any{clockTime(t), clockTime(t)})
		}
		if list != nil {
			out[day] = list
		}
	}
	return out
}

// valueOf returns a random value as the API returns it for a field.
func valueOf(t *rapid.T, f forms.Field) any {
	if f.Nullable && rapid.Bool().Draw(t, f.Name+" is null") {
		return nil
	}
	switch domain.InputOf(f) {
	case domain.MoneyInput:
		return amount.Draw(t, f.Name)
	case domain.PercentInput, domain.NumberInput, domain.DepositInput:
		return whole(t, 1e6)
	case domain.CheckInput:
		return rapid.Bool().Draw(t, f.Name)
	case domain.ChoicesInput:
		return someIDs.Draw(t, f.Name)
	case domain.HoursInput:
		return week(t)
	case domain.AddressInput:
		out := map[string]any{}
		for _, part := range f.Fields {
			out[part.Name] = "x" + written.Draw(t, part.Name)
		}
		return out
	case domain.AppliesInput:
		if list := someIDs.Draw(t, f.Name); len(list) > 0 {
			return map[string]any{rapid.SampledFrom([]string{"service_ids", "package_ids"}).Draw(t, "kind"): list}
		}
		return "all"
	case domain.JSONInput:
		return rapid.Custom(func(t *rapid.T) any {
			out := map[string]any{}
			for k, v := range rapid.MapOfN(written, written, 0, 3).Draw(t, "metadata") {
				out[k] = v
			}
			return out
		}).Draw(t, f.Name)
	case domain.HeadersInput:
		return map[string]any{"X-" + written.Draw(t, "name"): nil}
	case domain.DatetimeInput:
		return instant(t).Format(time.RFC3339)
	case domain.DateInput:
		return instant(t).Format(time.DateOnly)
	case domain.TimeInput:
		return clockTime(t)
	case domain.LinesInput:
		list := []any{}
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			item := map[string]any{"description": "x" + written.Draw(t, "line")}
			for _, sub := range domain.Columns(f) {
				if sub.Name != "description" {
					item[sub.Name] = valueOf(t, sub)
				}
			}
			if _, ok := item["discount_bps"]; ok {
				discount(t, item)
			}
			list = append(list, item)
		}
		return list
	case domain.TaxesInput:
		list := []any{}
		for _, name := range []string{"VAT", "GST (federal)", "25"}[:rapid.IntRange(0, 3).Draw(t, f.Name)] {
			list = append(list, map[string]any{"name": name, "rate": rapid.SampledFrom([]string{"0", "5", "9.975", "100", "0.0001"}).Draw(t, "rate")})
		}
		return list
	case domain.CustomerInput:
		return "cu_1"
	default:
		return written.Draw(t, f.Name)
	}
}

// discount changes a line item to one kind of discount, as the API returns it.
func discount(t *rapid.T, item map[string]any) {
	fixed := item["discount_amount"]
	delete(item, "discount_amount")
	switch rapid.SampledFrom([]string{"none", "percentage", "fixed"}).Draw(t, "discount") {
	case "none":
		delete(item, "discount_bps")
	case "percentage":
		item["discount_bps"] = json.Number("1250")
	default:
		delete(item, "discount_bps")
		item["discount_amount"], item["fixed_discount_amount"] = fixed, fixed
	}
}

// long reports whether an input has several lines.
func long(f forms.Field) bool {
	return domain.InputOf(f) == domain.LongInput || domain.InputOf(f) == domain.JSONInput
}

// browser returns what a browser submits for a form: lines end with CRLF in multi-line inputs, and every input is present except
// an unchecked box.
func browser(fields []forms.Field, form url.Values) url.Values {
	out := url.Values{}
	for name, values := range form {
		br := ""
		if slices.ContainsFunc(fields, func(f forms.Field) bool { return f.Name == name && long(f) }) {
			br = "\r\n"
		}
		for _, v := range values {
			out.Add(name, strings.ReplaceAll(v, "\n", br))
		}
	}
	for _, f := range fields {
		switch domain.InputOf(f) {
		case domain.CheckInput:
			if out.Get(f.Name) != "true" {
				out.Del(f.Name)
			}
		case domain.ChoicesInput:
			out[f.Name] = append([]string{""}, out[f.Name]...)
		case domain.AppliesInput:
			for _, kind := range []string{"service_ids", "package_ids"} {
				out[f.Name+"."+kind] = append([]string{""}, out[f.Name+"."+kind]...)
			}
		case domain.LinesInput:
			n := 0
			for out.Has(fmt.Sprintf("%s.%d.description", f.Name, n)) {
				n++
			}
			for i := n; i < n+domain.Rows; i++ {
				for _, sub := range f.Items.Fields {
					out.Set(fmt.Sprintf("%s.%d.%s", f.Name, i, sub.Name), "")
				}
			}
		case domain.HoursInput:
		case domain.AddressInput:
			for _, part := range f.Fields {
				if !out.Has(f.Name + "." + part.Name) {
					out.Set(f.Name+"."+part.Name, "")
				}
			}
		default:
			if !out.Has(f.Name) {
				out.Set(f.Name, "")
			}
		}
	}
	return out
}

// each checks a property for the edit form of every resource that has one.
func each(t *testing.T, property func(t *rapid.T, r domain.Reader, fields []forms.Field, o domain.Object)) {
	t.Helper()
	all, err := operations()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, res := range domain.Resources {
		if res.Update == "" {
			continue
		}
		n++
		var fields []forms.Field
		for _, name := range res.Edit {
			if f := all[res.Update].Field(name); f.Name != "" {
				fields = append(fields, f)
			}
		}
		t.Run(res.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				o := domain.Object{"id": "xx_1", "version": json.Number("1")}
				for _, f := range fields {
					o[f.Name] = valueOf(t, f)
					if f.Name == "event_date" {
						o["event_local_date"] = o[f.Name]
					}
				}
				if _, ok := o["deposit_value"]; ok {
					o["deposit_type"] = rapid.SampledFrom([]string{"none", "flat", "percentage"}).Draw(t, "deposit_type")
				}
				property(t, domain.Reader{Zone: zones[rapid.IntRange(0, len(zones)-1).Draw(t, "zone")], Currency: "USD"}, fields, o)
			})
		})
	}
	if n < 9 {
		t.Errorf("only %d resources", n)
	}
}

// zones are time zones with and without clock changes.
var zones = func() (out []*time.Location) {
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Asia/Kathmandu", "UTC", "Australia/Lord_Howe"} {
		if z, err := time.LoadLocation(name); err == nil {
			out = append(out, z)
		}
	}
	return out
}()

// TestUnchangedFormsChangeNothing checks that an unchanged form changes nothing.
func TestUnchangedFormsChangeNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *rapid.T, r domain.Reader, fields []forms.Field, o domain.Object) {
		body, err := r.Changes(fields, browser(fields, r.Form(fields, o)), o)
		if err != nil || len(body) != 0 {
			t.Fatalf("%v, %v", body, err)
		}
	})
}

// TestFormsAreReadBack checks that the values of a form are read back unchanged.
func TestFormsAreReadBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *rapid.T, r domain.Reader, fields []forms.Field, o domain.Object) {
		body, err := r.Body(fields, browser(fields, r.Form(fields, o)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			was, is := o[f.Name], body[f.Name]
			if domain.InputOf(f) == domain.HeadersInput {
				was = nil // no form shows them
			}
			if at, err := time.Parse(time.RFC3339, fmt.Sprint(was)); err == nil && domain.InputOf(f) == domain.DatetimeInput {
				was, is = at.In(r.Zone).Format("2006-01-02T15:04"), fmt.Sprint(is)[:16] // an hour that occurs twice is read as its first occurrence
			}
			if list, ok := was.([]any); ok && f.Name == "line_items" {
				for _, item := range list {
					if m, ok := item.(map[string]any); ok {
						delete(m, "fixed_discount_amount") // it is sent as discount_amount
					}
				}
			}
			want, got := flat(was), flat(is)
			if !long(f) {
				want = strings.ReplaceAll(want, `\n`, "")
			}
			if want != got {
				t.Fatalf("%s: %s, want %s", f.Name, got, want)
			}
		}
	})
}

// TestHeadersReplaceAll checks that a form keeps headers unless the operator enters new ones, and that no draft stores them.
func TestHeadersReplaceAll(t *testing.T) {
	t.Parallel()
	fields := []forms.Field{{Name: "headers", Kind: "object", Nullable: true}}
	o := domain.Object{"headers": map[string]any{"X-Api-Key": nil}}
	for text, want := range map[string]string{
		"": `{}`, "  \r\n": `{}`, "{}": `{"headers":{}}`, "{\r\n\"X-A\": \"a b\"}": `{"headers":{"X-A":"a b"}}`,
	} {
		body, err := domain.Reader{}.Changes(fields, url.Values{"headers": {text}}, o)
		got, _ := json.Marshal(body)
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	if _, err := (domain.Reader{}).Changes(fields, url.Values{"headers": {"X-A: a"}}, o); err == nil {
		t.Error("a text that is not JSON is accepted")
	}
	if shown := (domain.Reader{}).Form(fields, o); shown.Get("headers") != "" {
		t.Errorf("the form shows %v", shown)
	}
	if draft := domain.Keepable(url.Values{"headers": {"{}"}, "url": {"u"}}); len(draft) != 1 {
		t.Errorf("a draft stores %v", draft)
	}
}

// flat returns a value as JSON; empty and missing values are null.
func flat(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err.Error()
	}
	raw, _ = json.Marshal(prune(plain))
	return string(raw)
}

func prune(v any) any {
	switch value := v.(type) {
	case map[string]any:
		for k, inner := range value {
			if value[k] = prune(inner); value[k] == nil {
				delete(value, k)
			}
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		for i := range value {
			value[i] = prune(value[i])
		}
		if value = slices.DeleteFunc(value, func(x any) bool { return x == nil }); len(value) == 0 {
			return nil
		}
		return value
	case string:
		if value == "" {
			return nil
		}
	}
	return v
}
