package contract_test

import (
	"strings"
	"testing"
)

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	with := func(field string) string { return `{"title":"t",` + field + `,"buyer":"a@b.co"}` }
	const nearest = ": Unknown field. The closest match is "
	for _, tc := range []struct{ body, ignored, strict string }{
		{with(`"note":null`), "", ""},
		{with(`"metadata":{"any":"x"},"exact":{"a":"x"}`), "", ""},
		// The nearest name: one letter less, two swapped letters, another case, no near name.
		{with(`"titel":1`), "titel", "titel" + nearest + "title."},
		{with(`"stauts":"open"`), "stauts", "stauts" + nearest + "status."},
		{with(`"dtae":1`), "dtae", "dtae" + nearest + "date."},
		{with(`"COUNT":1`), "COUNT", "COUNT" + nearest + "count."},
		{with(`"meta_data":{"deep":{"er":1}}`), "meta_data", "meta_data" + nearest + "metadata."},
		{with(`"` + strings.Repeat("z", 500) + `":1`), strings.Repeat("z", 200) + "…", strings.Repeat("z", 200) + "…" + nearest + "title."},
		{with(`"":1`), `""`, `""` + nearest + "at."},
		// Nested, in the order sent.
		{
			with(`"linez":[{"foo":1}],"lines":[{"description":"d","quantity":1,"qty":2},{"description":"d","quantity":1,"price":{"amount":1,"currency":"EUR","cents":0}}]`),
			"linez lines.0.qty lines.1.price.cents",
			"linez" + nearest + "lines.\nlines.0.qty" + nearest + "quantity.\nlines.1.price.cents" + nearest + "amount.",
		},
		// A rule of the contract itself reports these.
		{with(`"exact":{"b":1}`), "", "exact.b: Unknown field."},
		// After the known ones.
		{
			`{"zzz":"\u0000","lines":[{"qty":1}]}`, "zzz lines.0.qty",
			"title: Is required.\nbuyer: Is required.\nlines.0.description: Is required.\nlines.0.quantity: Is required.\n" +
				"zzz: Must not contain the NUL character.\nzzz" + nearest + "big.\nlines.0.qty" + nearest + "quantity.",
		},
	} {
		b := parse(t, op, tc.body)
		if got := strings.Join(op.Ignored(b), " "); got != tc.ignored {
			t.Errorf("%.100s\n ignored %s\nwant %s", tc.body, got, tc.ignored)
		}
		if got := messages(op.ValidateBody(b, true)); got != tc.strict {
			t.Errorf("%.100s\n got %s\nwant %s", tc.body, got, tc.strict)
		}
		if got := messages(op.ValidateBody(b, false)); tc.ignored != "" && strings.Contains(got, "nearest") {
			t.Errorf("%.100s is refused without strict: %s", tc.body, got)
		}
	}
	// One action takes no fields, and one operation has no body.
	shut, none := load(t).Operation("closeOrder"), load(t).Operation("listOrders")
	if got := messages(shut.ValidateBody(parse(t, shut, `{"x":1}`), true)); got != "x: Unknown field. This object has no fields." {
		t.Error(got)
	}
	if b := parse(t, none, `{"x":1}`); none.ValidateBody(b, true) != nil || none.Ignored(b) != nil {
		t.Error("a body that means nothing was looked at")
	}
}
