package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"
)

// found returns the ids of the leads in a list, page by page.
func (w *world) found(ctx context.Context, query string) []string {
	w.T.Helper()
	out := []string{}
	for next := ""; ; {
		a := w.do(ctx, "GET", "/leads?"+query+next, "").is(200)
		got := decode[struct {
			Data       []lead
			NextCursor *string `json:"next_cursor"`
		}](a)
		for _, l := range got.Data {
			out = append(out, l.ID)
		}
		if got.NextCursor == nil {
			return out
		}
		next = "&cursor=" + url.QueryEscape(*got.NextCursor)
	}
}

func TestFiltersOfLeads(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	first := w.lead(ctx, `"last_name":"Lee","email":"ann.lee@Example.com","company":"Acme Ltd","source":"web","metadata":{"k":"v"}`)
	second := w.lead(ctx, `"source":"Web","metadata":{"k":"w","l":"v"}`)
	third := w.leadIn(ctx, "converted")
	fourth := w.leadIn(ctx, "lost")
	all := []string{fourth.ID, third.ID, second.ID, first.ID}
	pick := func(numbers ...int) []string {
		out := []string{}
		for _, n := range numbers {
			out = append(out, all[4-n])
		}
		return out
	}
	for query, want := range map[string][]string{
		"limit=1":                          all,
		"status=new":                       pick(2, 1),
		"status=lost":                      pick(4),
		"status=new,lost,converted":        all,
		"status=lost,new&limit=1":          pick(4, 2, 1),
		"status=qualified":                 {},
		"status=new,new":                   pick(2, 1),
		"source=web":                       pick(1),
		"source=":                          {},
		"source=web&status=lost":           {},
		"customer_id=" + *third.CustomerID: pick(3),
		"customer_id=" + *third.CustomerID + "&status=lost":     {},
		"customer_id=" + ids.New[ids.CustomerPrefix]().String(): {},
		"customer_id=cu_x":            {},
		"q=ann":                       all,
		"q=LEE":                       pick(1),
		"q=example":                   pick(1),
		"q=acm ann":                   pick(1),
		"q=xyz":                       {},
		"q=ann&status=new,lost":       pick(4, 2, 1),
		"metadata[k]=v":               pick(1),
		"metadata[k]=w&metadata[l]=v": pick(2),
		"metadata[k]=v&metadata[l]=v": {},
		"metadata[k]=w&q=a&source=Web&status=new":                     pick(2),
		"created_after=" + second.CreatedAt.Format(time.RFC3339Nano):  pick(4, 3, 2),
		"created_before=" + second.CreatedAt.Format(time.RFC3339Nano): pick(1),
		"updated_after=" + fourth.UpdatedAt.Format(time.RFC3339Nano):  pick(4),
		"updated_before=" + third.UpdatedAt.Format(time.RFC3339Nano):  pick(2, 1),
	} {
		query = strings.ReplaceAll(query, " ", "%20")
		if got := w.found(ctx, query); !slices.Equal(got, want) {
			t.Errorf("%s finds %v, want %v", query, got, want)
		}
	}
	for query, field := range map[string]string{
		"status=done": "status", "status=": "status", "expand=quote": "expand", "sort=name": "sort", "email=x": "email",
		"source=" + strings.Repeat("s", 101): "source", "q=" + strings.Repeat("q", 201): "q", "limit=0": "limit",
	} {
		w.do(ctx, "GET", "/leads?"+query, "").is(422, "invalid_request", field)
	}
	w.do(ctx, "GET", "/leads?cursor=x", "").is(400, "invalid_cursor")
	w.do(ctx, "GET", "/leads/"+first.ID+"?x=1", "").is(422, "invalid_request", "x")
	// The oldest change is first. The conversion and the loss follow it.
	deadline := time.Now().Add(20 * time.Second)
	for _, states := range []string{"", "&status=new,converted,lost"} {
		var got []string
		for time.Now().Before(deadline) {
			if got = w.found(ctx, "sort=updated_at&limit=1"+states); len(got) == 4 {
				break
			}
		}
		if !slices.Equal(got, pick(1, 2, 3, 4)) {
			t.Errorf("sync%s finds %v", states, got)
		}
	}
}

func TestCursorsOfLeads(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live)
	for range 3 {
		w.lead(ctx, "")
		w.create(ctx, "")
	}
	cursor := func(path string) string {
		return "cursor=" + url.QueryEscape(*decode[struct {
			NextCursor *string `json:"next_cursor"`
		}](w.do(ctx, "GET", path, "").is(200)).NextCursor)
	}
	own := cursor("/leads?limit=1&status=new")
	w.do(ctx, "GET", "/leads?limit=2&status=new&"+own, "").is(200)
	for _, c := range []struct {
		ctx  context.Context
		path string
	}{
		{ctx, "/leads?" + own},
		{ctx, "/leads?status=lost&" + own},
		{ctx, "/customers?" + own},
		{live, "/leads?status=new&" + own},
		{pgtest.Ctx(t, caller.Test), "/leads?status=new&" + own},
		{ctx, "/leads?" + cursor("/customers?limit=1")},
	} {
		w.do(c.ctx, "GET", c.path, "").is(400, "invalid_cursor")
	}
}

func TestExpandTheCustomersOfLeads(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	a, bare := w.leadIn(ctx, "converted"), w.lead(ctx, "")
	gone := w.leadIn(ctx, "converted")
	w.do(ctx, "DELETE", "/customers/"+*gone.CustomerID, "").is(204)
	customer := string(w.do(ctx, "GET", "/customers/"+*a.CustomerID, "").is(200).Body)
	list := w.do(ctx, "GET", "/leads?expand=customer", "").is(200).leads()
	for i, want := range []struct{ id, customer string }{{gone.ID, "null"}, {bare.ID, "null"}, {a.ID, customer}} {
		if got := list[i]; got.ID != want.id || string(got.Customer) != want.customer {
			t.Errorf("%d: %+v %s", i, got, got.Customer)
		}
		if got := w.do(ctx, "GET", "/leads/"+want.id+"?expand=customer", "").is(200).lead(); string(got.Customer) != want.customer {
			t.Errorf("%d alone: %s", i, got.Customer)
		}
	}
	if got := w.do(ctx, "GET", "/leads/"+a.ID, "").is(200).lead(); got.Customer != nil {
		t.Errorf("not requested: %s", got.Customer)
	}
}

// TestPagesOfTheLargestLeads checks that a hundred of the largest leads with the largest customers are returned in sufficiently
// small pages, each once.
func TestPagesOfTheLargestLeads(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	metadata := apitest.LargestMetadata()
	var want []string
	for range 100 {
		c := w.create(ctx, `"metadata":`+metadata)
		l := w.lead(ctx, `"message":`+str(strings.Repeat("\U00010000", 5000))+`,"metadata":`+metadata)
		w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"customer_id":"`+c.ID+`"}`).is(200)
		want = append([]string{l.ID}, want...)
	}
	for _, query := range []string{"", "&expand=customer", "&status=converted,new", "&q=ann"} {
		get := func(q string) apitest.Response { return w.do(ctx, "GET", "/leads?"+q+query, "").Response }
		if got, sizes := w.Walk(get, 100); !slices.Equal(got, want) || len(sizes) < 100*len(metadata)/page.MaxBytes {
			t.Errorf("%s: %d of %d rows in %d pages", query, len(got), len(want), len(sizes))
		}
	}
}

// leadBounds are values of single fields. wrong is the field that the error names, or "" for a valid value.
var leadBounds = []struct{ field, value, wrong string }{
	{"source", str(strings.Repeat(emoji, 100)), ""},
	{"source", str(strings.Repeat("s", 101)), "source"},
	{"first_name", str(strings.Repeat(emoji, 100)), ""},
	{"first_name", str(strings.Repeat("a", 101)), "first_name"},
	{"first_name", `""`, "first_name"},
	{"first_name", `null`, "first_name"},
	{"last_name", str(strings.Repeat(emoji, 100)), ""},
	{"last_name", str(strings.Repeat("a", 101)), "last_name"},
	{"email", str(mail(255)), ""},
	{"email", str(mail(256)), "email"},
	{"email", `"ann"`, "email"},
	{"email", `""`, "email"},
	{"email", `null`, ""},
	{"phone", str(strings.Repeat(emoji, 50)), ""},
	{"phone", str(strings.Repeat("1", 51)), "phone"},
	{"company", str(strings.Repeat(emoji, 200)), ""},
	{"company", str(strings.Repeat("c", 201)), "company"},
	{"event_type", str(strings.Repeat(emoji, 100)), ""},
	{"event_type", str(strings.Repeat("e", 101)), "event_type"},
	{"event_date", `"1900-01-01"`, ""},
	{"event_date", `"2199-12-31"`, ""},
	{"event_date", `"2200-01-01"`, "event_date"},
	{"event_date", `"1899-12-31"`, "event_date"},
	{"guest_count", `0`, ""},
	{"guest_count", `2147483647`, ""},
	{"guest_count", `2147483648`, "guest_count"},
	{"guest_count", `-1`, "guest_count"},
	{"guest_count", `1.0`, "guest_count"},
	{"budget", `{"amount":0,"currency":"USD"}`, ""},
	{"budget", `{"amount":99999999999,"currency":"USD"}`, ""},
	{"budget", `{"amount":100000000000,"currency":"USD"}`, "budget.amount"},
	{"budget", `{"amount":-1,"currency":"USD"}`, "budget.amount"},
	{"budget", `{"amount":1}`, "budget.currency"},
	{"budget", `{"amount":1,"currency":"usd"}`, "budget.currency"},
	{"message", str(strings.Repeat(emoji, 5000)), ""},
	{"message", str(strings.Repeat("m", 5001)), "message"},
	{"service_id", `"srv_"`, "service_id"},
	{"unit_id", `""`, "unit_id"},
	{"package_id", str("pkg_" + strings.Repeat("p", 97)), "package_id"},
	{"metadata", bag(50), ""},
	{"metadata", bag(51), "metadata"},
	{"nickname", `"\u0000"`, "nickname"},
}

func TestBoundsOfLeads(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	path := "/leads/" + w.lead(ctx, "").ID
	for _, b := range leadBounds {
		body := `{` + str(b.field) + `:` + b.value + `}`
		created := `{"first_name":"Ann",` + body[1:]
		if b.field == "first_name" {
			created = body
		}
		if b.wrong == "" {
			w.do(ctx, "POST", "/leads", created).is(201)
			w.do(ctx, "PATCH", path, body).is(200)
			continue
		}
		w.do(ctx, "POST", "/leads", created).is(422, "invalid_request", b.wrong)
		w.do(ctx, "PATCH", path, body).is(422, "invalid_request", b.wrong)
	}
	w.do(ctx, "POST", "/leads", `{}`).is(422, "invalid_request", "first_name")
	w.do(ctx, "PATCH", path, `{"status":"lost","lost_reason":`+str(strings.Repeat(emoji, 5000))+`}`).is(200)
	w.do(ctx, "PATCH", path, `{"lost_reason":`+str(strings.Repeat("r", 5001))+`}`).is(422, "invalid_request", "lost_reason")
	convert := path + "/convert"
	for field, body := range map[string]string{
		"customer_id": `{"customer_id":7}`, "booking": `{"booking":[]}`, "booking.guest_count": `{"booking":{"guest_count":-1}}`,
		"booking.event_start_time": `{"booking":{"event_start_time":"24:00"}}`, "booking.hold_minutes": `{"booking":{"hold_minutes":43201}}`,
		"booking.notes": `{"booking":{"notes":` + str(strings.Repeat("n", 5001)) + `}}`, "booking.unit_id": `{"booking":{"unit_id":"cu_x"}}`,
		"booking.status": `{"booking":{"status":"cancelled"}}`, "booking.event_date": `{"booking":{"event_date":null}}`,
	} {
		w.do(ctx, "POST", convert, body).is(422, "invalid_request", field)
	}
	for _, r := range []struct{ method, path string }{{"POST", "/leads"}, {"PATCH", path}, {"POST", convert}} {
		w.do(ctx, r.method, r.path, `{`).is(400, "malformed_json")
		w.do(ctx, r.method, r.path, `{}`, "Content-Type: text/plain").is(400, "missing_content_type")
		w.do(ctx, r.method, r.path, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`).is(413, "request_too_large")
	}
}

// TestLeadChangesAtOnce checks that parallel changes of one lead each have their event, in order.
func TestLeadChangesAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	path := "/leads/" + w.lead(ctx, "").ID
	atOnce(20, func(i int) { w.do(ctx, "PATCH", path, fmt.Sprintf(`{"phone":"%d"}`, i)).is(200) })
	events := w.Events()
	if len(events) != 21 {
		t.Fatalf("%d events, want one per change", len(events))
	}
	for i, e := range events {
		if e.ResourceVersion != int64(i)+1 {
			t.Errorf("event %d has version %d", i, e.ResourceVersion)
		}
	}
	// All accepted parallel changes of the status follow the table of transitions.
	atOnce(12, func(i int) {
		to := []string{"contacted", "qualified", "quoted", "lost"}[i%4]
		w.do(ctx, "PATCH", path, `{"status":"`+to+`"`+map[bool]string{true: `,"lost_reason":"x"`}[to == "lost"]+`}`)
	})
	for _, e := range w.Events()[21:] {
		was, is := decodeJSON[lead](t, e.PreviousAttributes).Status, decodeJSON[lead](t, e.Object).Status
		if !strings.Contains(" "+leadMoves[was]+" ", " "+is+" ") {
			t.Errorf("%s became %s", was, is)
		}
	}
}

func TestBrokenTableOfLeads(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	path := "/leads/" + w.lead(ctx, "").ID
	w.Exec(`drop table leads`)
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/leads", `{"first_name":"Ann"}`},
		{"GET", "/leads", ""},
		{"GET", path, ""},
		{"PATCH", path, `{}`},
		{"POST", path + "/convert", ""},
		{"POST", path + "/convert", `{"booking":{"event_date":"2030-01-01"}}`},
	} {
		if a := w.do(ctx, r.method, r.path, r.body).is(500, "internal_error"); strings.Contains(string(a.Body), "relation") {
			t.Errorf("the cause is shown: %s", a.Body)
		}
	}
	if got := w.kinds(); got != "lead.created" || len(w.bookings.Requests()) != 0 {
		t.Errorf("events of what was rolled back: %s", got)
	}
}

func TestKeysOfLeadsInUse(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	path := "/leads/" + w.lead(ctx, `"email":"a@b.co"`).ID
	w.engine = w.serve(w.Impatient(100 * time.Millisecond))
	release := w.HoldKey(caller.FromContext(ctx), "k")
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/leads", `{"first_name":"Ann"}`}, {"PATCH", path, `{"phone":"1"}`}, {"POST", path + "/convert", ""},
	} {
		w.do(ctx, r.method, r.path, r.body, "Idempotency-Key: k").is(409, "idempotency_in_progress")
	}
	// The booking already exists, so the conversion completes even if the response is lost.
	w.do(ctx, "POST", path+"/convert", `{"booking":{"event_date":"2030-01-01"}}`, "Idempotency-Key: k").is(409, "idempotency_in_progress")
	release()
	w.complete(31 * time.Second)
	l := w.do(ctx, "POST", path+"/convert", `{"booking":{"event_date":"2030-01-01"}}`, "Idempotency-Key: k").is(200).lead()
	if l.Status != "converted" || l.BookingID == nil || w.kinds() != "customer.created lead.created lead.updated" || len(w.bookings.Created()) != 1 {
		t.Errorf("got %+v, events %s", l, w.kinds())
	}
	w.settledLeads()
}
