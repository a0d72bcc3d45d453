package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

func TestLookups(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	a, b, gone := w.create(ctx, `"phone":"1"`), w.create(ctx, ""), w.create(ctx, "")
	other := w.create(pg.OtherMode(ctx), "")
	foreign := w.create(pgtest.Ctx(t, caller.Test), "")
	w.do(ctx, "DELETE", "/customers/"+gone.ID, "").is(204)

	one := w.from(ctx, w.engine, "bookings", "GET", "/internal/v1/customers/"+a.ID, "").is(200)
	if public := w.do(ctx, "GET", "/customers/"+a.ID, ""); string(one.Body) != string(public.Body) {
		t.Errorf("not the public body: %s", one.Body)
	}
	hidden := []string{gone.ID, other.ID, foreign.ID, ids.New[ids.CustomerPrefix]().String(), "x"}
	for _, id := range hidden {
		w.from(ctx, w.engine, "bookings", "GET", "/internal/v1/customers/"+id, "").is(404, "customer_not_found")
	}
	batch := func(list ...string) response {
		body, err := json.Marshal(map[string]any{"ids": list})
		if err != nil {
			t.Fatal(err)
		}
		return w.from(ctx, w.engine, "bookings", "POST", "/internal/v1/customers/batch", string(body))
	}
	var got []string
	for _, c := range batch(append(hidden, a.ID, b.ID, a.ID)...).is(200).list().Data {
		got = append(got, c.ID)
	}
	if slices.Sort(got); !slices.Equal(got, []string{a.ID, b.ID}) {
		t.Errorf("got %v", got)
	}
	if a := batch([]string{}...).is(200); string(a.Body) != `{"data":[]}` {
		t.Errorf("got %s", a.Body)
	}
	many := strings.Split(strings.TrimSuffix(strings.Repeat(a.ID+" ", 101), " "), " ")
	batch(many[:100]...).is(200)
	batch(many...).is(422, "invalid_request", "ids")
	for body, code := range map[string]string{"": "missing_content_type", "{": "malformed_json", "[]": "malformed_json"} {
		w.from(ctx, w.engine, "bookings", "POST", "/internal/v1/customers/batch", body).is(400, code)
	}
	for _, body := range []string{`{"ids":[1]}`, `{"ids":null}`} {
		w.from(ctx, w.engine, "bookings", "POST", "/internal/v1/customers/batch", body).is(422, "invalid_request")
	}
}

func TestOnlyBookingsLooksUp(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/internal/v1/customers/" + w.create(ctx, "").ID
	for _, r := range []struct{ method, path, body string }{
		{"GET", path, ""}, {"POST", "/internal/v1/customers/batch", fmt.Sprintf(`{"ids":[%q]}`, path)},
	} {
		w.from(ctx, w.engine, "gateway", r.method, r.path, r.body).is(401, "invalid_credential")
		w.from(ctx, w.engine, "bookings", r.method, r.path, r.body, "X-Caller: ").is(401, "invalid_credential")
	}
}
