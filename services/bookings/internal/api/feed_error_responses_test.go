package api_test

import (
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// TestErrorResponsesOfFeeds checks that every operation on feeds refuses an unknown caller, an invalid body, and an unknown query
// parameter. A database fault is an internal error.
func TestErrorResponsesOfFeeds(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	f := w.feed(ctx, `{"name":"Season"}`)
	at := "/calendar-feeds/" + f.ID
	for _, path := range []string{"/calendar-feeds", at} {
		w.do(ctx, "GET", path, "", caller.Header+": forged").is(401, "invalid_credential")
		w.do(ctx, "GET", path+"?x=1", "").is(422, "invalid_request", "x")
	}
	w.do(ctx, "GET", "/calendar-feeds?cursor=x", "").is(400, "invalid_cursor")
	w.do(ctx, "DELETE", at, "", caller.Header+": forged").is(401, "invalid_credential")
	w.do(ctx, "POST", "/calendar-feeds", `{"name":"x"}`, caller.Header+": forged").is(401, "invalid_credential")
	w.do(ctx, "POST", "/calendar-feeds", `[]`).is(400, "malformed_json")
	w.do(ctx, "POST", "/calendar-feeds", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`).is(413, "request_too_large")
	w.engine = w.serve(w.Impatient(100 * time.Millisecond))
	release := w.HoldKey(caller.FromContext(ctx), "k")
	w.do(ctx, "POST", "/calendar-feeds", `{"name":"x"}`, "Idempotency-Key: k").is(409, "idempotency_in_progress")
	release()
	w.engine = w.serve(w.DB.App)
	w.Exec(`drop table calendar_feeds cascade`)
	for _, path := range []string{"/calendar-feeds", at} {
		w.do(ctx, "GET", path, "").is(500, "internal_error")
	}
	w.do(ctx, "DELETE", at, "").is(500, "internal_error")
	w.do(ctx, "POST", "/calendar-feeds", `{"name":"x"}`).is(500, "internal_error")
	w.read(f).is(500, "internal_error")
}
