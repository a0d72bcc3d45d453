package contract_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
)

func FuzzBody(f *testing.F) {
	op := load(f).Operation("createOrder")
	for _, seed := range []string{
		`{}`, `{"title":"t","buyer":"a@b.co"}`, `{"title":"\u0000","count":10.0}`, `{"count":1e999999999}`, `{"metadata":{"a":1,"a":"2"}}`,
		`{"lines":[{"quantity":"x","price":{"amount":1}}]}`, `{"note":"\ud83d"}`, `[]`, `{"a":`, "{\"a\":\"\xff\"}", `{"metadata":["a",1]}`, `{"":{"":[]}}`,
		`{"at":"2026-05-10T15:04:05Z","day":"2026-05-10","date":"2026-05-10"}`, `{"metadata":{"\ud800":"\\u0000"}}`, `{"big":-0,"ratio":-0.0e-0}`,
		`{"title":"t","buyer":"a@b.co","metadata":{"\u0061":"\ud83d\ude00\u2028"}}`, full,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		canonical, err := contract.Canonical(body)
		parsed, same := op.Parse(body)
		if (err == nil) != (same == nil) || err != nil && err.Error() != same.Error() {
			t.Fatalf("%q: %v and %v", body, err, same)
		}
		if err != nil {
			if apperr.As(err).Kind != apperr.BadRequest {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q passed as JSON", body)
		}
		if again, err := contract.Canonical(canonical); err != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("%s becomes %s: %v", canonical, again, err)
		}
		validated(t, op, body, parsed)
	})
}

// validated validates a body that is I-JSON, and checks that a valid body can be decoded.
func validated(t *testing.T, op *contract.Operation, body []byte, parsed *contract.Body) {
	t.Helper()
	err := op.ValidateBody(parsed, false)
	if err == nil {
		if len(op.Ignored(parsed)) > 0 != (op.ValidateBody(parsed, true) != nil) {
			t.Fatalf("%q: ignores %q", body, op.Ignored(parsed))
		}
		var v order
		if err := op.Decode(parsed, &v); err != nil && apperr.As(err).Kind != apperr.Invalid {
			t.Fatalf("%q passed and does not decode: %v", body, err)
		}
		return
	}
	e := apperr.As(err)
	if e.Kind != apperr.Invalid || len(e.Fields) == 0 || len(e.Fields) > 100 {
		t.Fatalf("%q: %v", body, err)
	}
	for _, field := range e.Fields {
		if field.Field == "" || !strings.HasSuffix(field.Message, ".") {
			t.Fatalf("%q: field %q says %q", body, field.Field, field.Message)
		}
	}
}
