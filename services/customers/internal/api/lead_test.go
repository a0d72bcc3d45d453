package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
	publicapi "holdfast.dev/proto/api"
)

// lead is the response body as a client reads it.
type lead struct {
	ID, Status, Mode       string
	Version                int64
	FirstName              string `json:"first_name"`
	Email, Source, Company *string
	EventDate              *time.Time      `json:"event_date"`
	EventLocalDate         *string         `json:"event_local_date"`
	CustomerID             *string         `json:"customer_id"`
	BookingID              *string         `json:"converted_booking_id"`
	LostReason             *string         `json:"lost_reason"`
	QuoteIDs               []string        `json:"quote_ids"`
	ConvertedAt            *time.Time      `json:"converted_at"`
	CreatedAt              time.Time       `json:"created_at"`
	UpdatedAt              time.Time       `json:"updated_at"`
	Customer               json.RawMessage `json:"customer"`
}

func (a response) lead() lead { return decode[lead](a) }

// lead creates a lead with these fields in addition to the required one.
func (w *world) lead(ctx context.Context, fields string) lead {
	w.T.Helper()
	body := `{"first_name":"Ann"`
	if fields != "" {
		body += "," + fields
	}
	return w.do(ctx, "POST", "/leads", body+"}").is(201).lead()
}

// withScopes returns ctx with a caller that has these scopes.
func withScopes(ctx context.Context, scopes ...string) context.Context {
	c := caller.FromContext(ctx)
	c.Scopes = scopes
	return caller.With(ctx, c)
}

// catalogue adds a service, a unit and a package to bookings.
func (w *world) catalogue() (service, unit, pkg string) {
	service, unit, pkg = ids.New[ids.ServicePrefix]().String(), ids.New[ids.UnitPrefix]().String(), ids.New[ids.PackagePrefix]().String()
	for _, id := range []string{service, unit, pkg} {
		w.bookings.AddCatalogue(id)
	}
	return service, unit, pkg
}

func TestCreateLead(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	a := w.do(ctx, "POST", "/leads", `{"first_name":"Ann"}`).is(201)
	l := a.lead()
	if a.Header.Get("Location") != "/api/v1/leads/"+l.ID || a.Header.Get("ETag") != `"1"` || l.Status != "new" || l.Mode != "test" {
		t.Errorf("%v %s", a.Header, a.Body)
	}
	if got := w.do(ctx, "GET", "/leads/"+l.ID, "").is(200); string(got.Body) != string(a.Body) {
		t.Errorf("GET differs from POST:\n%s\n%s", got.Body, a.Body)
	}
	e := w.Events()
	if len(e) != 1 || e[0].Type != "lead.created" || string(e[0].Object) != string(a.Body) || e[0].Internal {
		t.Errorf("got %v", e)
	}
}

func TestEachFieldOfALeadIsWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	service, unit, pkg := w.catalogue()
	all := fmt.Sprintf(`{"source":"website","first_name":"Bea","last_name":"Kay","email":"bea@example.com","phone":"+1 2","company":"Co",
		"event_type":"wedding","event_date":"2030-06-01T12:00:00Z","guest_count":7,"budget":{"amount":5000,"currency":"USD"},"message":"Hi",
		"service_id":%q,"unit_id":%q,"package_id":%q,"metadata":{"k":"v"}}`, service, unit, pkg)
	lost := strings.TrimSuffix(all, "}") + `,"status":"lost","lost_reason":"too dear"}`
	id := w.lead(ctx, "").ID
	apitest.Written[publicapi.LeadUpdate](t, lost, w.do(ctx, "PATCH", "/leads/"+id, lost).is(200).Body)
	apitest.Written[publicapi.LeadUpdate](t, lost, w.do(ctx, "GET", "/leads/"+id, "").is(200).Body)
	created := w.do(ctx, "POST", "/leads", all).is(201)
	apitest.Written[publicapi.LeadCreate](t, all, created.Body)
	apitest.Written[publicapi.LeadCreate](t, all, w.do(ctx, "GET", "/leads/"+created.lead().ID, "").is(200).Body)
	none := `{"source":null,"last_name":null,"email":null,"phone":null,"company":null,"event_type":null,"event_date":null,"guest_count":null,
		"budget":null,"message":null,"service_id":null,"unit_id":null,"package_id":null}`
	cleared := w.do(ctx, "PATCH", "/leads/"+created.lead().ID, none).is(200)
	apitest.Written[publicapi.LeadUpdate](t, none, cleared.Body, "first_name", "status", "lost_reason", "metadata")
}

func TestEventDateOfALead(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test) // New York
	for given, want := range map[string][2]string{
		"2030-06-01":                {"2030-06-01T04:00:00Z", "2030-06-01"},
		"2030-06-01T02:00:00Z":      {"2030-06-01T02:00:00Z", "2030-05-31"},
		"2030-06-01T23:30:00-04:00": {"2030-06-02T03:30:00Z", "2030-06-01"},
	} {
		l := w.lead(ctx, `"event_date":"`+given+`"`)
		if l.EventDate.Format(time.RFC3339) != want[0] || *l.EventLocalDate != want[1] {
			t.Errorf("%s reads back as %v, %s", given, l.EventDate, *l.EventLocalDate)
		}
	}
	for _, wrong := range []string{"2030-02-30", "2030-06-01T10:00:00", "1899-12-31", "tomorrow"} {
		w.do(ctx, "POST", "/leads", `{"first_name":"Ann","event_date":"`+wrong+`"}`).is(422, "invalid_request", "event_date")
	}
	// If the same day is given again as a bare date, nothing changes.
	l := w.lead(ctx, `"event_date":"2030-06-01"`)
	if got := w.do(ctx, "PATCH", "/leads/"+l.ID, `{"event_date":"2030-06-01"}`).is(200).lead(); got.Version != 1 {
		t.Errorf("version %d", got.Version)
	}
}

func TestLeadFieldsThatAreWrong(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	service, unit, pkg := w.catalogue()
	path := "/leads/" + w.lead(ctx, "").ID
	for field, values := range map[string][]string{
		"service_id": {str(ids.New[ids.ServicePrefix]().String()), `"srv_x"`, str(unit), `1`},
		"unit_id":    {str(ids.New[ids.UnitPrefix]().String()), `"un_x"`, str(service)},
		"package_id": {str(ids.New[ids.PackagePrefix]().String()), `"pkg_x"`, str(unit)},
	} {
		for _, v := range values {
			w.do(ctx, "POST", "/leads", `{"first_name":"Ann","`+field+`":`+v+`}`).is(422, "invalid_request", field)
			w.do(ctx, "PATCH", path, `{"`+field+`":`+v+`}`).is(422, "invalid_request", field)
		}
	}
	w.do(ctx, "POST", "/leads", `{"first_name":"Ann","budget":{"amount":1,"currency":"EUR"}}`).is(422, "invalid_request", "budget.currency")
	w.do(ctx, "PATCH", path, `{"budget":{"amount":1,"currency":"EUR"}}`).is(422, "invalid_request", "budget.currency")
	a := w.do(ctx, "POST", "/leads", `{"first_name":"Ann","package_id":"pkg_x","service_id":"`+ids.New[ids.ServicePrefix]().String()+
		`","unit_id":"un_x","budget":{"amount":1,"currency":"EUR"}}`).is(422, "invalid_request", "budget.currency")
	var got struct{ Errors map[string][]string }
	if err := json.Unmarshal(a.Body, &got); err != nil || len(got.Errors) != 4 || len(got.Errors["package_id"]) != 1 {
		t.Errorf("%v: %s", err, a.Body)
	}
	if got := w.Types(); got != "created" {
		t.Errorf("events: %s", got)
	}
	// Items that bookings returned are known from then on. For items in the projection, bookings is not needed.
	w.lead(ctx, fmt.Sprintf(`"service_id":%q,"unit_id":%q,"package_id":%q`, service, unit, pkg))
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.lead(ctx, fmt.Sprintf(`"service_id":%q,"unit_id":%q,"package_id":%q`, service, unit, pkg))
	w.do(ctx, "POST", "/leads", `{"first_name":"Ann","unit_id":"`+ids.New[ids.UnitPrefix]().String()+`"}`).is(503, "unavailable")
	w.do(ctx, "POST", "/leads", `{"first_name":"Ann","unit_id":"un_x"}`).is(422, "invalid_request", "unit_id")
}

// TestReplayOfALead checks that a replay does not need bookings.
func TestReplayOfALead(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	_, unit, _ := w.catalogue()
	body := fmt.Sprintf(`{"first_name":"Ann","unit_id":%q}`, unit)
	first := w.do(ctx, "POST", "/leads", body, "Idempotency-Key: k").is(201)
	w.Exec(`delete from catalogue_items`)
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	again := w.do(ctx, "POST", "/leads", body, "Idempotency-Key: k").is(201)
	if string(again.Body) != string(first.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v %s", again.Header, again.Body)
	}
	w.do(ctx, "POST", "/leads", `{"first_name":"Bea"}`, "Idempotency-Key: k").is(422, "idempotency_mismatch")
	if got := w.Types(); got != "created" {
		t.Errorf("events: %s", got)
	}
}

var leadStatuses = []string{"new", "contacted", "qualified", "quoted", "converted", "lost"}

// leadMoves are the transitions that a PATCH can make.
var leadMoves = map[string]string{
	"new": "contacted qualified quoted lost", "contacted": "qualified quoted lost", "qualified": "quoted lost", "quoted": "lost",
	"lost": "contacted", "converted": "",
}

// in creates a lead in a status.
func (w *world) leadIn(ctx context.Context, status string) lead {
	w.T.Helper()
	l := w.lead(ctx, "")
	path := "/leads/" + l.ID
	switch status {
	case "new":
		return l
	case "lost":
		return w.do(ctx, "PATCH", path, `{"status":"lost","lost_reason":"gone"}`).is(200).lead()
	case "converted":
		all := withScopes(ctx, "read:customers")
		return w.do(all, "POST", path+"/convert", `{"customer_id":"`+w.create(ctx, "").ID+`"}`).is(200).lead()
	default:
		return w.do(ctx, "PATCH", path, `{"status":"`+status+`"}`).is(200).lead()
	}
}

func TestEachTransitionOfALead(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for _, from := range leadStatuses {
		for _, to := range leadStatuses {
			l := w.leadIn(ctx, from)
			w.Exec(`delete from outbox`)
			body := `{"status":"` + to + `"}`
			if to == "lost" {
				body = `{"status":"lost","lost_reason":"gone"}`
			}
			a := w.do(ctx, "PATCH", "/leads/"+l.ID, body)
			switch {
			case from == to:
				if got := a.is(200).lead(); got.Version != l.Version || w.Types() != "" {
					t.Errorf("%s again: version %d, events %q", from, got.Version, w.Types())
				}
			case strings.Contains(" "+leadMoves[from]+" ", " "+to+" "):
				if got := a.is(200).lead(); got.Status != to || got.Version != l.Version+1 || w.Types() != "updated" {
					t.Errorf("%s to %s: %+v, events %q", from, to, got, w.Types())
				}
			default:
				a.is(422, "invalid_status_transition", "status")
				if w.Types() != "" {
					t.Errorf("%s to %s: events %q", from, to, w.Types())
				}
			}
		}
	}
	w.do(ctx, "PATCH", "/leads/"+w.lead(ctx, "").ID, `{"status":"done"}`).is(422, "invalid_request", "status")
}

func TestLostReason(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/leads/" + w.lead(ctx, "").ID
	for _, body := range []string{
		`{"status":"lost"}`, `{"status":"lost","lost_reason":null}`, `{"status":"lost","lost_reason":" "}`,
		`{"lost_reason":"x"}`, `{"status":"contacted","lost_reason":"x"}`, `{"status":"converted","lost_reason":"x"}`,
	} {
		w.do(ctx, "PATCH", path, body).is(422, "invalid_request", "lost_reason")
	}
	w.do(ctx, "PATCH", path, `{"lost_reason":null}`).is(200)
	w.do(ctx, "PATCH", path, `{"status":"lost","lost_reason":"x"}`).is(200)
	if got := w.do(ctx, "PATCH", path, `{"lost_reason":"y"}`).is(200).lead(); *got.LostReason != "y" {
		t.Errorf("got %+v", got)
	}
	w.do(ctx, "PATCH", path, `{"lost_reason":null}`).is(422, "invalid_request", "lost_reason")
	if got := w.do(ctx, "PATCH", path, `{"status":"contacted"}`).is(200).lead(); got.LostReason != nil || got.Version != 4 {
		t.Errorf("got %+v", got)
	}
	e := w.Events()
	if got := w.Types(); got != "created updated updated updated" || string(e[3].PreviousAttributes) != `{"status":"lost","lost_reason":"y"}` {
		t.Errorf("events %s: %s", got, e[3].PreviousAttributes)
	}
}

func TestAConvertedLeadCanBeUpdated(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	l := w.leadIn(ctx, "converted")
	got := w.do(ctx, "PATCH", "/leads/"+l.ID, `{"company":"Acme","metadata":{"k":"v"},"status":"converted"}`).is(200).lead()
	if got.Version != l.Version+1 || *got.Company != "Acme" || *got.CustomerID != *l.CustomerID || !got.ConvertedAt.Equal(*l.ConvertedAt) {
		t.Errorf("got %+v", got)
	}
}

func TestIfMatchOfALead(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), withScopes(pgtest.Ctx(t, caller.Test), "write:customers")
	path := "/leads/" + w.lead(ctx, `"email":"a@b.co"`).ID
	w.do(ctx, "PATCH", path, `{"phone":"1"}`, `If-Match: "1"`).is(200)
	w.do(ctx, "PATCH", path, `{"status":"new"}`, `If-Match: "1"`).is(412, "version_mismatch")
	w.do(ctx, "PATCH", path, `{"status":"converted"}`, `If-Match: "1"`).is(412, "version_mismatch") // checked before the state
	w.do(ctx, "POST", path+"/convert", ``, `If-Match: "1"`).is(412, "version_mismatch")
	w.do(ctx, "POST", path+"/convert", `{"customer_id":"cu_x"}`, `If-Match: "1"`).is(422, "invalid_request", "customer_id")
	w.do(ctx, "POST", path+"/convert", ``, `If-Match: "2"`).is(200)
	w.do(ctx, "POST", path+"/convert", ``, `If-Match: "2"`).is(412)
	w.do(ctx, "POST", path+"/convert", ``, `If-Match: *`).is(200)
}

func TestWhoSeesALead(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	own, mode, foreign := pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live), pgtest.Ctx(t, caller.Test)
	l := w.lead(own, `"source":"web"`)
	path := "/leads/" + l.ID
	for _, r := range []struct{ method, path, body string }{
		{"GET", path, ""},
		{"PATCH", path, `{"phone":"1"}`},
		{"PATCH", path, `{"email":"x"}`},
		{"POST", path + "/convert", "{}"},
		{"POST", path + "/convert", `{"customer_id":1}`},
	} {
		w.do(withScopes(foreign, "write:customers"), r.method, r.path, r.body).is(404, "lead_not_found")
		w.do(withScopes(mode, "write:customers"), r.method, r.path, r.body).is(403, "mode_mismatch")
		for _, id := range []string{ids.New[ids.LeadPrefix]().String(), "x", "ld_x", strings.Replace(l.ID, "ld_", "cu_", 1)} {
			w.do(withScopes(own, "write:customers"), r.method, strings.Replace(r.path, l.ID, id, 1), r.body).is(404, "lead_not_found")
		}
		w.do(own, r.method, r.path, r.body, "X-Caller: ").is(401, "invalid_credential")
	}
	w.do(own, "POST", "/leads", `{"first_name":"A"}`, "X-Caller: ").is(401)
	w.do(own, "GET", "/leads", "", "X-Caller: ").is(401)
	for _, q := range []string{"", "?q=ann", "?source=web", "?status=new"} {
		if len(w.do(own, "GET", "/leads"+q, "").is(200).leads()) != 1 {
			t.Errorf("%s does not find it", q)
		}
		for _, other := range []context.Context{mode, foreign} {
			if got := w.do(other, "GET", "/leads"+q, "").is(200).leads(); len(got) != 0 {
				t.Errorf("%s: somebody else sees %v", q, got)
			}
		}
	}
	if got := w.do(own, "GET", path, "").is(200).lead(); got.Version != 1 {
		t.Errorf("somebody has changed it: %+v", got)
	}
}

func (a response) leads() []lead { return decode[struct{ Data []lead }](a).Data }
