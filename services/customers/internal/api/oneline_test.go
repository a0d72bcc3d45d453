package api_test

import (
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

func TestOneLine(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	if n := w.OneLine(ctx, w.engine); n < 8 {
		t.Errorf("%d texts were tried", n)
	}
	for query, field := range map[string]string{
		"/customers?phone=%E2%80%AE1": "phone", "/leads?source=a%0Ab": "source",
	} {
		w.do(ctx, "GET", query, "").is(422, "invalid_request", field)
	}
	// A search without a token excludes no row.
	for _, query := range []string{"/customers?q=%20", "/customers?q=%E2%80%8B", "/leads?q=%E3%85%A4", "/leads?q=a%0Ab"} {
		w.do(ctx, "GET", query, "").is(200)
	}
	for _, email := range []string{"a\u200b@b.co", "a@b\u00ad.co", "\u202ea@b.co"} {
		w.do(ctx, "POST", "/customers", `{"first_name":"A","email":`+str(email)+`}`).is(422, "invalid_request", "email")
		w.do(ctx, "POST", "/leads", `{"first_name":"A","email":`+str(email)+`}`).is(422, "invalid_request", "email")
	}
	w.do(ctx, "POST", "/customers", `{"first_name":"👩\u200d👧","last_name":"\u200fשרה","email":"a@b.co","metadata":{"a":"b\nc"}}`).is(201)
	w.do(ctx, "POST", "/leads", `{"first_name":"A","message":"a\nb\n"}`).is(201)
}
