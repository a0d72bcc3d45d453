package api_test

import (
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

// TestErrorResponsesOfClosures checks that every operation on closures refuses an unknown caller, an invalid body, and an unknown
// query parameter. A database fault is an internal error.
func TestErrorResponsesOfClosures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, live := both(ids.New[ids.TenantPrefix](), t)
	const body = `{"name":"C","date_from":"2030-05-01","date_to":"2030-05-01"}`
	at := "/closures/" + w.closes(ctx, `"date_from":"2030-05-01","date_to":"2030-05-01"`).ID
	requests := []struct{ method, path, body string }{
		{"GET", "/closures", ""}, {"GET", at, ""}, {"POST", "/closures", body}, {"PATCH", at, `{"name":"x"}`}, {"DELETE", at, ""},
	}
	for _, r := range requests {
		w.do(ctx, r.method, r.path, r.body, caller.Header+": forged").is(401, "invalid_credential")
		w.do(ctx, r.method, r.path+"?x=1", r.body).is(422, "invalid_request", "x")
		if r.path == at {
			w.do(live, r.method, r.path, r.body).is(403, "mode_mismatch")
		}
	}
	w.do(ctx, "GET", "/closures?cursor=x", "").is(400, "invalid_cursor")
	big := `{"name":"` + strings.Repeat("x", 1<<20) + `"}`
	w.engine = w.serve(w.Impatient(100 * time.Millisecond))
	release := w.HoldKey(caller.FromContext(ctx), "k")
	for _, r := range requests[2:4] {
		w.do(ctx, r.method, r.path, `[]`).is(400, "malformed_json")
		w.do(ctx, r.method, r.path, big).is(413, "request_too_large")
		w.do(ctx, r.method, r.path, r.body, "Idempotency-Key: k").is(409, "idempotency_in_progress")
	}
	release()
	w.engine = w.serve(w.DB.App)
	w.Exec(`drop table closures cascade`)
	for _, r := range requests {
		w.do(ctx, r.method, r.path, r.body).is(500, "internal_error")
	}
}
