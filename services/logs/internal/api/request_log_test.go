package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/logs/internal/domain"
)

type page struct {
	Data []map[string]any
	More bool `json:"has_more"`
}

// The body has each field of the contract, with null for what is absent.
func TestGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	bare := w.store(ctx, 1)[0]
	full := w.store(ctx, 1, func(l *domain.RequestLog) {
		l.Status, l.QueryNames, l.Code, l.Param, l.ObjectID = 409, []string{"expand"}, new("slot_unavailable"), new("starts_at"), new("bk_1")
		l.DurationMS, l.ClientNetwork, l.UserAgent, l.SDKVersion = 17, new("203.0.113.0/24"), new("curl/8"), new("holdfast-go/1.0.0")
		l.IdempotencyKeyHash, l.Replayed = []byte{0xab}, true
	})[0]
	a := w.get(ctx, "/request-logs/"+bare.ID.String())
	a.Is(http.StatusOK)
	for _, part := range []string{`"query_names":[]`, `"code":null`, `"client_network":null`, `"idempotency_key_hash":null`, `"replayed":false`} {
		if !strings.Contains(string(a.Body), part) {
			t.Errorf("no %s in %s", part, a.Body)
		}
	}
	a = w.get(ctx, "/request-logs/"+full.ID.String())
	a.Is(http.StatusOK)
	for _, part := range []string{
		`"status":409`, `"query_names":["expand"]`, `"param":"starts_at"`, `"object_id":"bk_1"`, `"duration_ms":17`, `"idempotency_key_hash":"ab"`,
		`"replayed":true`, `"mode":"test"`, `"created_at":"` + full.ID.Time().Format(time.RFC3339Nano) + `"`,
	} {
		if !strings.Contains(string(a.Body), part) {
			t.Errorf("no %s in %s", part, a.Body)
		}
	}
	for _, id := range []string{ids.New[ids.RequestPrefix]().String(), "req_1", "bk_1"} {
		w.get(ctx, "/request-logs/"+id).Is(http.StatusNotFound, "request_log_not_found")
	}
	live := w.as(caller.FromContext(ctx).Tenant, caller.Live)
	w.get(live, "/request-logs/"+full.ID.String()).Is(http.StatusForbidden, "mode_mismatch")
	w.get(w.ctx(), "/request-logs/"+full.ID.String()).Is(http.StatusNotFound, "request_log_not_found")
}

// TestListsWithAFilterArePlannedForTheirValues checks that PostgreSQL never uses a plan for all values for a list with a filter, and does so
// for one without after five requests.
func TestListsWithAFilterArePlannedForTheirValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	w.store(ctx, 3)
	w.Exec(`analyze`)
	for range 10 {
		w.get(ctx, "/request-logs").Is(http.StatusOK)
		w.get(ctx, "/request-logs?route=/bookings").Is(http.StatusOK)
	}
	for filtered, want := range map[bool]bool{false: true, true: false} { // on the same connection, the last one that was returned
		generic, err := pg.One(ctx, w.DB.App.Read(ctx), pgx.RowTo[bool], pgx.ErrNoRows, `select generic_plans > 0 from pg_prepared_statements
			where statement like @list and statement like '%l.route =%' = @filtered and generic_plans + custom_plans = 10`,
			pg.Args{"list": "%from request_logs l%", "filtered": filtered})
		if err != nil || generic != want {
			t.Errorf("with a filter %v: a plan for all values %v, %v", filtered, generic, err)
		}
	}
}

// A list returns each request once over its pages, newest first, and only those that match.
func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	all := w.store(ctx, 5)
	failed := w.store(ctx, 1, func(l *domain.RequestLog) { l.Status, l.Code = 422, new("invalid_request") })[0]
	w.store(w.ctx(), 3)
	got, _ := w.Walk(func(query string) apitest.Response { return w.get(ctx, "/request-logs?"+query) }, 2)
	if len(got) != 6 || got[0] != failed.ID.String() || got[5] != all[0].ID.String() {
		t.Errorf("%v", got)
	}
	for query, n := range map[string]int{
		"status=422": 1, "status=4xx": 1, "status=2xx": 5, "status=5xx": 0, "code=invalid_request": 1, "method=POST&status=201": 5, "method=GET": 0,
		"route=" + url.QueryEscape("/bookings"): 6, "credential_id=key_1": 6, "credential_id=key_2": 0, "object_id=bk_1": 0,
		"created_after=" + time.Now().Add(time.Minute).UTC().Format(time.RFC3339): 0, "created_before=" + time.Now().Add(time.Minute).UTC().Format(time.RFC3339): 6,
	} {
		if a := apitest.Decode[page](w.get(ctx, "/request-logs?"+query)); len(a.Data) != n || a.More {
			t.Errorf("%s: %d rows", query, len(a.Data))
		}
	}
	for _, query := range []string{"status=4x", "status=99", "status=600", "method=HEAD", "limit=101", "object_id=", "sort=created_at"} {
		w.get(ctx, "/request-logs?"+query).Is(http.StatusUnprocessableEntity)
	}
	w.get(ctx, "/request-logs?cursor=x").Is(http.StatusBadRequest, "invalid_cursor")
}

// A request that is older than the retention is not returned, although its day still has a partition.
func TestRetentionOfReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	l := w.store(ctx, 1)[0]
	id := "/request-logs/" + l.ID.String()
	w.get(ctx, id).Is(http.StatusOK)
	w.Exec(`update request_logs set id = overlay(id::text placing left(uuid_floor(now() - interval '7 days 1 minute')::text, 13) from 1 for 13)::uuid`)
	if a := apitest.Decode[page](w.get(ctx, "/request-logs")); len(a.Data) != 0 {
		t.Errorf("%v", a.Data)
	}
	w.get(ctx, id).Is(http.StatusNotFound)
}

// A forged caller, an unknown parameter and a fault of the database each get the response of the contract.
func TestErrorResponses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	paths := []string{"/request-logs", "/request-logs/" + w.store(ctx, 1)[0].ID.String()}
	for _, path := range paths {
		w.get(ctx, path, caller.Header+": forged").Is(http.StatusUnauthorized, "invalid_credential")
		w.get(ctx, path+"?bodies=true").Is(http.StatusUnprocessableEntity, "invalid_request", "bodies")
	}
	w.Exec(`alter table request_logs rename to renamed`)
	for _, path := range paths {
		w.get(ctx, path).Is(http.StatusInternalServerError, "internal_error")
	}
}
