package outbox_test

import (
	"encoding/json"
	"testing"

	"holdfast.dev/libs/outbox"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, after, want string }{
		"nothing":                {`{"a":1,"b":{"c":2}}`, `{"a":1,"b":{"c":2}}`, `{}`},
		"white space":            {`{"a": {"b" : 1}}`, `{"a":{"b":1}}`, `{}`},
		"one field":              {`{"id":"cu_1","name":"Ann","phone":null}`, `{"id":"cu_1","name":"Bea","phone":null}`, `{"name":"Ann"}`},
		"order of before":        {`{"b":1,"a":1}`, `{"a":2,"b":2}`, `{"b":1,"a":1}`},
		"null before":            {`{"phone":null}`, `{"phone":"1"}`, `{"phone":null}`},
		"null after":             {`{"phone":"1"}`, `{"phone":null}`, `{"phone":"1"}`},
		"bookkeeping":            {`{"version":1,"updated_at":"a","x":1}`, `{"version":2,"updated_at":"b","x":1}`, `{}`},
		"whole value of a field": {`{"m":{"k":"1","l":"2"}}`, `{"m":{"k":"1"}}`, `{"m":{"k":"1","l":"2"}}`},
		"duplicates in a value":  {`{"m":{"k":"1","k":"2"}}`, `{"m":{"k":"2"}}`, `{"m":{"k":"1","k":"2"}}`},
		"gone":                   {`{"a":1,"b":2}`, `{"b":2}`, `{"a":1}`},
		"new":                    {`{"b":2}`, `{"b":2,"a":1}`, `{"a":null}`},
		"html stays":             {`{"a":"<b>&"}`, `{"a":""}`, `{"a":"<b>&"}`},
		"nothing before":         {``, `{"a":1}`, `{"a":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := outbox.Diff(json.RawMessage(tc.before), json.RawMessage(tc.after))
			if string(got) != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
