package contract_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oapi-codegen/nullable"
)

type order struct {
	Title  string                    `json:"title"`
	Buyer  *string                   `json:"buyer,omitempty"`
	Note   nullable.Nullable[string] `json:"note,omitempty"`
	Count  nullable.Nullable[int32]  `json:"count,omitempty"`
	Big    int64                     `json:"big"`
	Ratio  *float64                  `json:"ratio,omitempty"`
	Gift   *bool                     `json:"gift,omitempty"`
	Status *status                   `json:"status,omitempty"`
	At     *time.Time                `json:"at,omitempty"`
	Lines  *[]struct {
		Description string `json:"description"`
		Quantity    int    `json:"quantity"`
		Price       *struct {
			Amount   int64  `json:"amount"`
			Currency string `json:"currency"`
		} `json:"price"`
	} `json:"lines,omitempty"`
	Exact    map[string]string                  `json:"exact,omitempty"`
	Metadata nullable.Nullable[json.RawMessage] `json:"metadata,omitempty"`
	Either   map[string]string                  `json:"either,omitempty"`
	Hidden   string                             `json:"-"`
}

type status string

const full = `{"title":"t","buyer":"a@b.co","note":null,"count":3,"big":-7,"ratio":1.5e2,"gift":true,"status":"open",` +
	`"at":"2026-05-10T17:04:05.5+02:00","lines":[{"description":"a","quantity":2,"price":{"amount":1,"currency":"EUR"}},` +
	`{"description":"b","quantity":1}],"exact":{"a":"x"},"metadata":{"b":"2","a":"1"}}`

// Decode agrees with encoding/json on everything in the contract.
func TestDecode(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	for _, body := range []string{full, `{}`, `{"title":"t","note":"","count":null,"gift":false,"lines":[],"metadata":null,"exact":{}}`} {
		var got, want order
		if err := op.Decode(parse(t, op, body), &got); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", body, diff)
		}
	}
}

// A name that differs from the contract's only in case is another field, also in nested objects.
func TestDecodeMatchesNamesExactly(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	var got order
	body := parse(t, op, `{"TITLE":"past the validator","title":"t","Title":"x","lines":[{"description":"b","DESCRIPTION":"c","quantity":1}]}`)
	if err := op.Decode(body, &got); err != nil || got.Title != "t" || (*got.Lines)[0].Description != "b" {
		t.Errorf("%+v %v", got, err)
	}
}

// Free-form values retain their order, and are written compactly in plain UTF-8, regardless of their escapes.
func TestDecodeWritesPlainText(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	for _, tc := range []struct{ sent, want string }{
		{`{ "b" : "2" , "a":"1" }`, `{"b":"2","a":"1"}`},
		{`{"\u0062":"\ud83d\ude00","\u00e9":"\u003c\u0026\u2028\/"}`, "{\"b\":\"😀\",\"é\":\"<&\u2028/\"}"},
		{`{"q":"\u0022\u005c\u000a\u001f\u007f\t"}`, "{\"q\":\"\\\"\\\\\\n\\u001f\x7f\\t\"}"},
		{`[ "\u0041" , "b" ]`, `["A","b"]`},
		{` [ ] `, `[]`},
		{` { } `, `{}`},
	} {
		var got order
		if err := op.Decode(parse(t, op, `{"metadata":`+tc.sent+`}`), &got); err != nil || string(got.Metadata.MustGet()) != tc.want {
			t.Errorf("%s: %s, want %s (%v)", tc.sent, got.Metadata.MustGet(), tc.want, err)
		}
		var sent, read any
		if json.Unmarshal([]byte(tc.sent), &sent) != nil || json.Unmarshal(got.Metadata.MustGet(), &read) != nil || !reflect.DeepEqual(sent, read) {
			t.Errorf("%s: the values are %v", tc.sent, read)
		}
	}
}

// Nothing is omitted if an alternative has no bound.
func TestDecodePreservesUnboundedValues(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	sent := map[string]string{}
	for i := range 1000 {
		sent[strconv.Itoa(i)] = "x"
	}
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got order
	b := parse(t, op, `{"title":"t","buyer":"a@b.co","either":`+string(text)+`}`)
	if err := op.ValidateBody(b, true); err != nil {
		t.Error(err)
	}
	if err := op.Decode(b, &got); err != nil || len(got.Either) != len(sent) {
		t.Errorf("%d of %d: %v", len(got.Either), len(sent), err)
	}
}

func TestDecodeFailures(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("createOrder")
	for body, want := range map[string]string{
		`{"big":99999999999999999999}`: "big: Is out of range.",
		`{"count":2147483648}`:         "count: Is out of range.",
		`{"ratio":1e999}`:              "ratio: Is out of range.",

		`{"lines":[{},{"price":{"amount":9999999999999999999}}]}`: "lines.1.price.amount: Is out of range.",
	} {
		if got := messages(op.Decode(parse(t, op, body), &order{})); got != want {
			t.Errorf("%s: %s", body, got)
		}
	}
	// A body that the validator would reject is an error, never a panic.
	for _, body := range []string{
		`{"title":1}`, `{"title":{}}`, `{"gift":"x"}`, `{"big":"1"}`, `{"lines":{}}`, `{"lines":[1]}`, `{"exact":[]}`, `{"at":"x"}`, `{"at":[]}`,
	} {
		if err := op.Decode(parse(t, op, body), &order{}); err == nil || !strings.Contains(err.Error(), "createOrder") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
