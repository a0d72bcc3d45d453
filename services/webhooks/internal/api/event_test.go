package api_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

func idsOf(list []map[string]any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i], _ = v["id"].(string)
	}
	return out
}

func names(events []domain.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.ID.String()
	}
	return out
}

// Lists of events with the largest bodies, and of deliveries with the largest responses, have pages of limited size and contain
// each item once.
func TestPagesOfTheLargestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	endpoint := w.endpoint(ctx, "customer.created")
	var want []string
	for _, e := range w.ingest(ctx, "customer.created", 12) {
		want = append([]string{e.ID.String()}, want...)
	}
	w.Exec(`update events set body = convert_to(replace(convert_from(body, 'UTF8'), '<&>', repeat('x', 600000)), 'UTF8')`)
	get := func(path string) func(query string) apitest.Response {
		return func(query string) apitest.Response { return w.do(ctx, "GET", path+query, "").Response }
	}
	if got, sizes := w.Walk(get("/events?"), 100); !slices.Equal(got, want) || len(sizes) != 4 {
		t.Errorf("%d of %d events in %d pages", len(got), len(want), len(sizes))
	}
	w.Exec(`update deliveries set attempts = jsonb_build_array(jsonb_build_object('number', 1, 'at', now(), 'status_code', 500,
		'duration_ms', 1, 'error', null, 'response_body', repeat('x', 600000)))`)
	if got, sizes := w.Walk(get("/webhook-endpoints/"+endpoint+"/deliveries?"), 100); len(got) != 12 || len(sizes) != 4 {
		t.Errorf("%d deliveries in %d pages", len(got), len(sizes))
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := w.as(tenant, caller.Test)
	customers := w.ingest(ctx, "customer.created", 5)
	time.Sleep(2 * time.Millisecond) // the next millisecond, which ids distinguish
	bookings := w.ingest(ctx, "booking.created", 3)
	newest := append(names(customers), names(bookings)...)
	slices.Reverse(newest)
	var got []string
	for path := "/events?limit=3"; path != ""; {
		a := w.do(ctx, "GET", path, "").is(200)
		got = append(got, idsOf(a.data())...)
		if path = ""; a.str("next_cursor") != "" {
			path = "/events?limit=3&cursor=" + a.str("next_cursor")
		}
	}
	if !slices.Equal(got, newest) {
		t.Errorf("paged %v\nwant %v", got, newest)
	}
	for query, want := range map[string]int{
		"": 8, "type=customer.created": 5, "type=customer.created,booking.created": 8, "type=lead.created": 0, "object_id=" + customers[2].ObjectID: 1, "object_id=x": 0,
		"created_before=2026-01-01T00:00:00Z": 0, "created_after=2026-01-01T00:00:00Z&updated_after=2026-01-01T00:00:00Z": 8, "updated_before=2026-01-01T00:00:00Z": 0,
		"created_after=" + bookings[0].ID.Time().Format(time.RFC3339Nano): 3, "created_before=" + bookings[0].ID.Time().Format(time.RFC3339Nano): 5,
	} {
		if n := len(w.do(ctx, "GET", "/events?"+query, "").is(200).data()); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
	synced := idsOf(w.do(ctx, "GET", "/events?sort=updated_at", "").is(200).data())
	if len(synced) != 8 || synced[7] != bookings[2].ID.String() && !slices.Contains(names(bookings), synced[7]) {
		t.Errorf("synced %v", synced)
	}
	w.do(ctx, "GET", "/events?type=nonsense", "").is(422, "invalid_request", "type")
	w.do(ctx, "GET", "/events?cursor=nonsense", "").is(400, "invalid_cursor")
	one := w.do(ctx, "GET", "/events/"+customers[0].ID.String(), "").is(200)
	if want := fmt.Sprintf(`"data":{"object":{"id":%q,"name":"<&>"},"previous_attributes":{}}`, customers[0].ObjectID); !strings.Contains(string(one.Body), want) {
		t.Errorf("%s", one.Body)
	}
	w.do(ctx, "GET", "/events/"+customers[0].ID.String()+"?x=1", "").is(422)
	w.do(w.as(tenant, caller.Live), "GET", "/events/"+customers[0].ID.String(), "").is(403, "mode_mismatch")
	w.do(w.ctx(), "GET", "/events/"+customers[0].ID.String(), "").is(404, "event_not_found")
	w.do(ctx, "GET", "/events/evt_1", "").is(404, "event_not_found")
	if other := w.do(w.as(tenant, caller.Live), "GET", "/events", "").is(200).data(); len(other) != 0 {
		t.Errorf("live mode sees %v", other)
	}
}

// A test sends a sample of any type to one endpoint. The contract's schema allows it. The deliveries contain it, but /events does
// not.
func TestSamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	id := w.endpoint(ctx, "lead.updated")
	w.endpoint(ctx)
	for _, kind := range proto.EventTypes {
		w.do(ctx, "POST", "/webhook-endpoints/"+id+"/test", fmt.Sprintf(`{"type":%q}`, kind.Name)).is(202)
	}
	last := w.do(ctx, "POST", "/webhook-endpoints/"+id+"/test", ``).is(202)
	list := w.do(ctx, "GET", "/webhook-endpoints/"+id+"/deliveries?limit=100", "").is(200).data()
	samples := len(proto.EventTypes) + 1
	if len(list) != samples || list[0]["event_type"] != "lead.updated" || list[0]["status"] != "pending" {
		t.Errorf("%v", list)
	}
	if last.str("object") != "delivery" || last.str("id") != list[0]["id"] || last.str("endpoint_id") != id {
		t.Errorf("the last test returned %s, its delivery is %v", last.Body, list[0])
	}
	if n := w.Count(`select count(*) from deliveries`); n != samples {
		t.Errorf("%d deliveries in all", n)
	}
	if events := w.do(ctx, "GET", "/events", "").is(200).data(); len(events) != 0 {
		t.Errorf("listed: %v", events)
	}
	sample, _ := list[0]["event_id"].(string)
	w.do(ctx, "GET", "/events/"+sample, "").is(404)
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	id := w.endpoint(ctx)
	w.ingest(ctx, "customer.created", 3)
	w.ingest(ctx, "booking.created", 2)
	path := "/webhook-endpoints/" + id + "/deliveries"
	w.Exec(`update deliveries set status = 'failed', attempts = '[{"number":1,"at":"2026-01-01T00:00:00Z","status_code":null,"duration_ms":3,"error":"no","response_body":null}]'
		where event_type = 'booking.created'`)
	w.Exec(`delete from queue where delivery_id in (select id from deliveries where status = 'failed')`)
	for query, want := range map[string]int{
		"": 5, "status=failed": 2, "status=pending": 3, "status=delivering": 0, "status=succeeded": 0, "event_type=booking.created": 2,
		"status=failed&event_type=customer.created": 0, "created_before=2026-01-01T00:00:00Z": 0, "updated_after=2026-01-01T00:00:00Z": 5, "sort=updated_at": 5,
	} {
		if n := len(w.do(ctx, "GET", path+"?"+query, "").is(200).data()); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
	w.do(ctx, "GET", path+"?status=lost", "").is(422, "invalid_request", "status")
	cursor := w.do(ctx, "GET", path+"?limit=2", "").is(200).str("next_cursor")
	if n := len(w.do(ctx, "GET", path+"?limit=9&cursor="+cursor, "").is(200).data()); n != 3 {
		t.Errorf("%d behind the cursor", n)
	}
	other := w.endpoint(ctx)
	w.do(ctx, "GET", "/webhook-endpoints/"+other+"/deliveries?cursor="+cursor, "").is(400, "invalid_cursor")
	failed := idsOf(w.do(ctx, "GET", path+"?status=failed", "").is(200).data())[0]
	retried := w.do(ctx, "POST", path+"/"+failed+"/retry", "").is(200)
	if retried.str("status") != "pending" || retried.str("next_attempt_at") == "" || len(apitest.Decode[struct{ Attempts []any }](retried.Response).Attempts) != 1 {
		t.Errorf("%s", retried.Body)
	}
	w.do(ctx, "POST", path+"/"+failed+"/retry", "").is(200)
	if n := w.Count(`select count(*) from queue where not first and attempts = 1`); n != 1 {
		t.Errorf("queued %d times", n)
	}
	w.Exec(`update queue set claimed = true, due_at = now() + interval '1 minute'`)
	w.do(ctx, "POST", path+"/"+failed+"/retry", "").is(422, "invalid_status_transition", "status")
	if n := len(w.do(ctx, "GET", path+"?status=delivering", "").is(200).data()); n != 4 {
		t.Errorf("%d in flight", n)
	}
	w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"status":"disabled"}`).is(200)
	w.do(ctx, "POST", path+"/"+failed+"/retry", "").is(422, "invalid_status_transition", "status")
}

func TestReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	w.ingest(ctx, "customer.created", 4)
	w.ingest(ctx, "booking.created", 2)
	id := w.endpoint(ctx, "customer.created", "lead.created")
	replay := func(rest string) response {
		t.Helper()
		return w.do(ctx, "POST", "/events/replay", fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"%s}`, id, rest))
	}
	queued := func(a response, want float64) {
		t.Helper()
		if got := apitest.Decode[map[string]any](a.is(202).Response)["queued"]; got != want {
			t.Errorf("queued %v, want %v", got, want)
		}
	}
	queued(replay(``), 4)
	queued(replay(`,"types":["booking.created"]`), 2)
	queued(replay(`,"to":"2026-01-02T00:00:00Z"`), 0)
	first := w.do(ctx, "POST", "/events/replay", fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"}`, id), "Idempotency-Key: r")
	queued(first, 4)
	queued(w.do(ctx, "POST", "/events/replay", fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"}`, id), "Idempotency-Key: r"), 4)
	if n := w.Count(`select count(*) from deliveries`); n != 4+2+4 {
		t.Errorf("%d deliveries", n)
	}
	replay(`,"to":"2025-01-02T00:00:00Z"`).is(422, "invalid_request", "to")
	replay(`,"types":["x"]`).is(422, "invalid_request", "types.0")
	w.do(ctx, "POST", "/events/replay", `{}`).is(422, "invalid_request", "endpoint_id")
	w.do(ctx, "PATCH", "/webhook-endpoints/"+id, `{"status":"disabled"}`).is(200)
	replay(``).is(422, "invalid_request", "endpoint_id")
	many := w.ctx()
	big := w.endpoint(many)
	c := caller.FromContext(many)
	w.Exec(`insert into events (tenant_id, livemode, id, type, object_id, body, updated_at)
		select $1, $2, uuid_v7(now()), 'booking.created', 'x', '{}', now() from generate_series(1, 10001)`, c.Tenant, c.Live())
	w.do(many, "POST", "/events/replay", fmt.Sprintf(`{"endpoint_id":%q,"from":"2026-01-01T00:00:00Z"}`, big)).is(422, "invalid_request", "to")
	if n := w.Count(`select count(*) from deliveries where tenant_id = $1`, c.Tenant); n != 0 {
		t.Errorf("%d of a refused replay", n)
	}
}

// stream reads server-sent events from a real server until it has n events or the stream ends.
func (w *world) stream(ctx context.Context, url string, n int, headers ...string) []string {
	w.T.Helper()
	return streamed(w.open(ctx, url, headers...), n)
}

// open returns when the stream has started. The stream contains all later events.
func (w *world) open(ctx context.Context, url string, headers ...string) *http.Response {
	w.T.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.T.Error(err)
		return nil
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		w.T.Errorf("%d %v", res.StatusCode, res.Header)
	}
	return res
}

// streamed returns the ids of the next n events, or of fewer if the stream ends first.
func streamed(res *http.Response, n int) (got []string) {
	if res == nil { // open already reported why
		return nil
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); len(got) < n && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			got = append(got, id)
		}
	}
	return got
}

// server returns a server whose requests are signed for the caller of ctx.
func (w *world) server(ctx context.Context) string {
	w.T.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.Sign(ctx, r, "gateway")
		w.engine.ServeHTTP(rw, r)
	}))
	w.T.Cleanup(srv.Close)
	return srv.URL + "/api/v1/events/stream"
}

func TestStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := w.as(tenant, caller.Test)
	before := w.ingest(ctx, "customer.created", 3)
	url := w.server(ctx)
	stream := w.open(t.Context(), url)
	w.ingest(w.as(tenant, caller.Live), "customer.created", 1)
	w.ingest(w.ctx(), "customer.created", 1)
	after := append(w.ingest(ctx, "customer.created", 2), w.ingest(ctx, "booking.created", 2)...)
	got := streamed(stream, 4)
	slices.Sort(got)
	want := names(after)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("streamed %v, want %v", got, want)
	}
	// A stream that resumes after an event contains the later events, in the same order, each once.
	all := w.stream(t.Context(), url, 6, "Last-Event-ID", w.firstIn(before))
	if len(all) != 6 {
		t.Fatalf("resumed: %v", all)
	}
	for i, id := range all[:5] {
		if rest := w.stream(t.Context(), url, 5-i, "Last-Event-ID", id); !slices.Equal(rest, all[i+1:]) {
			t.Errorf("behind %d: %v, want %v", i, rest, all[i+1:])
		}
	}
	if only := w.stream(t.Context(), url+"?type=booking.created", 2, "Last-Event-ID", all[0]); !slices.Equal(only, all[4:]) {
		t.Errorf("bookings: %v", only)
	}
}

func TestStreamEndsByItsLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.streams.MaxDuration = 200 * time.Millisecond
	ctx := w.ctx()
	w.ingest(ctx, "customer.created", 1)
	result := make(chan []string, 1)
	stream := w.open(t.Context(), w.server(ctx))
	go func() { result <- streamed(stream, 1) }()
	select {
	case got := <-result:
		if len(got) != 0 {
			t.Errorf("a quiet stream gave %v", got)
		}
	case <-time.After(time.Minute):
		t.Error("the stream has no end")
	}
}

// An event whose transaction starts first and ends last is not missed: later events wait for it.
func TestStreamMissesNoLateCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	c := caller.FromContext(ctx)
	start := w.ingest(ctx, "customer.created", 1)
	late, taken, end := ids.New[ids.EventPrefix](), make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- w.DB.Worker.SystemTx(context.WithoutCancel(ctx), func(ctx context.Context, tx pg.Tx) error {
			event := domain.Event{ID: late, Tenant: c.Tenant, Type: "customer.created", ObjectID: "cu_1"}
			if _, err := (&store.Queue{Wake: func() {}}).AddEvents(ctx, tx, []store.Intake{{Event: event, Body: []byte(`{}`)}}, time.Now()); err != nil {
				return err
			}
			close(taken)
			<-end
			return nil
		})
	}()
	<-taken
	came := make(chan []string)
	url := w.server(ctx)
	go func() { came <- w.stream(t.Context(), url, 2, "Last-Event-ID", start[0].ID.String()) }()
	quick := w.ingest(ctx, "customer.created", 1)
	time.Sleep(300 * time.Millisecond) // the stream reads and finds only the second event
	close(end)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.notifier.Broadcast(app.Audience{Tenant: c.Tenant, Livemode: c.Live()})
	if got, want := <-came, []string{late.String(), quick[0].ID.String()}; !slices.Equal(got, want) {
		t.Errorf("streamed %v, want %v", got, want)
	}
}

// firstIn returns the id of the event that was written first.
func (w *world) firstIn(list []domain.Event) string {
	w.T.Helper()
	var id [16]byte
	err := w.Owner().QueryRow(w.T.Context(), `select id from events where id = any($1) order by updated_at, id limit 1`, uuids(list)).Scan(&id)
	if err != nil {
		w.T.Fatal(err)
	}
	return ids.FromUUID[ids.EventPrefix](id).String()
}

func uuids(list []domain.Event) [][16]byte {
	out := make([][16]byte, len(list))
	for i, e := range list {
		out[i] = e.ID.UUID()
	}
	return out
}

func TestStreamIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.ctx()
	w.do(ctx, "GET", "/events/stream", "", "Last-Event-ID: evt_1").is(422, "invalid_request", "Last-Event-ID")
	w.do(ctx, "GET", "/events/stream?type=x", "").is(422, "invalid_request", "type")
	url := w.server(ctx)
	quiet, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan []string, 2)
	for range 2 {
		stream := w.open(quiet, url)
		go func() { result <- streamed(stream, 1) }()
	}
	close(w.stop)
	for range 2 {
		select {
		case <-result:
		case <-time.After(time.Minute):
			t.Fatal("a stop waits for streams")
		}
	}
	w.do(ctx, "GET", "/events/stream", "").is(200)
}
