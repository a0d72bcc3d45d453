package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
)

// converter returns the context of a caller with all scopes for conversions.
func converter(t *testing.T) context.Context {
	t.Helper()
	return withScopes(pgtest.Ctx(t, caller.Test), "write:leads", "read:customers", "write:customers", "write:bookings")
}

// kinds returns the types of all events, sorted.
func (w *world) kinds() string {
	w.T.Helper()
	var out []string
	for _, e := range w.Events() {
		out = append(out, e.GetType())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// settledLeads fails the test if a lead is still being converted.
func (w *world) settledLeads() {
	w.T.Helper()
	if n := w.Count(`select count(*) from leads where converting_until is not null or converting_customer_id is not null
		or converting_body is not null or converting_new_customer or converting_tries <> 0`); n != 0 {
		w.T.Errorf("%d leads are still being converted", n)
	}
}

const withEmail = `"email":"ann@example.com","last_name":"Lee","phone":"1","company":"Acme"`

func TestConvertSelectsTheCustomer(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)

	fresh := w.lead(ctx, withEmail)
	a := w.do(ctx, "POST", "/leads/"+fresh.ID+"/convert", `{}`).is(200)
	l := a.lead()
	if l.Status != "converted" || l.ConvertedAt == nil || l.BookingID != nil || l.Version != 2 {
		t.Errorf("got %s", a.Body)
	}
	created := w.do(ctx, "GET", "/customers/"+*l.CustomerID, "").is(200).customer()
	if created.Name != "Ann Lee" || created.Email != "ann@example.com" || *created.Phone != "1" || *created.Company != "Acme" {
		t.Errorf("got %+v", created)
	}
	if got := w.kinds(); got != "customer.created lead.created lead.updated" {
		t.Errorf("events: %s", got)
	}
	if again := w.do(ctx, "POST", "/leads/"+fresh.ID+"/convert", ``).is(200); string(again.Body) != string(a.Body) {
		t.Errorf("converted twice: %s", again.Body)
	}

	same := w.lead(ctx, `"email":"ANN@example.com"`)
	if l := w.do(ctx, "POST", "/leads/"+same.ID+"/convert", ``).is(200).lead(); *l.CustomerID != created.ID {
		t.Errorf("got %+v", l)
	}
	other := w.create(ctx, `"phone":"2"`) // the same e-mail address
	third := w.lead(ctx, withEmail)
	several := w.do(ctx, "POST", "/leads/"+third.ID+"/convert", ``).is(422, "invalid_request", "customer_id")
	if body := string(several.Body); !strings.Contains(body, created.ID) || !strings.Contains(body, other.ID) {
		t.Errorf("the message does not name them: %s", body)
	}
	if l := w.do(ctx, "POST", "/leads/"+third.ID+"/convert", `{"customer_id":"`+other.ID+`"}`).is(200).lead(); *l.CustomerID != other.ID {
		t.Errorf("got %+v", l)
	}

	bare := w.lead(ctx, "")
	w.do(ctx, "POST", "/leads/"+bare.ID+"/convert", ``).is(422, "invalid_request", "email")
	gone := w.create(ctx, "")
	w.do(ctx, "DELETE", "/customers/"+gone.ID, "").is(204)
	elsewhere := w.create(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), "")
	for _, id := range []string{gone.ID, elsewhere.ID, ids.New[ids.CustomerPrefix]().String(), "cu_x"} {
		w.do(ctx, "POST", "/leads/"+bare.ID+"/convert", `{"customer_id":"`+id+`"}`).is(422, "invalid_request", "customer_id")
	}
	if l := w.do(ctx, "GET", "/leads/"+bare.ID, "").is(200).lead(); l.Version != 1 || l.CustomerID != nil {
		t.Errorf("got %+v", l)
	}
	w.settledLeads()
}

func TestConvertWithABooking(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	service, unit, pkg := w.catalogue()
	fresh := w.lead(ctx, withEmail+fmt.Sprintf(`,"event_date":"2030-06-01T15:00:00Z","guest_count":7,"event_type":"wedding","service_id":%q,"unit_id":%q,"package_id":%q`, service, unit, pkg))
	path := "/leads/" + fresh.ID + "/convert"
	a := w.do(ctx, "POST", path, `{"booking":{}}`, "Idempotency-Key: k").is(200)
	l := a.lead()
	requests := w.bookings.Requests()
	if len(requests) != 1 || len(w.bookings.Created()) != 1 || *l.BookingID != w.bookings.Created()[0].ID.String() || requests[0].Key != "lead:"+l.ID {
		t.Fatalf("requests %v, got %s", requests, a.Body)
	}
	var body map[string]any
	if err := json.Unmarshal(requests[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"customer_id": *l.CustomerID, "event_date": "2030-06-01T15:00:00Z", "guest_count": 7.0, "event_type": "wedding",
		"service_id": service, "unit_id": unit, "package_id": pkg,
	}
	if fmt.Sprint(body) != fmt.Sprint(want) {
		t.Errorf("the body is %v, want %v", body, want)
	}
	if got := w.do(ctx, "GET", "/customers/"+*l.CustomerID, "").is(200).customer(); got.Email != "ann@example.com" {
		t.Errorf("got %+v", got)
	}
	if got := w.kinds(); got != "customer.created lead.created lead.updated" {
		t.Errorf("events: %s", got)
	}
	replay := w.do(ctx, "POST", path, `{"booking":{}}`, "Idempotency-Key: k").is(200)
	if string(replay.Body) != string(a.Body) || replay.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v %s", replay.Header, replay.Body)
	}
	w.do(ctx, "POST", path, `{"booking":{"notes":"x"}}`, "Idempotency-Key: k").is(422, "idempotency_mismatch", "Idempotency-Key")
	if again := w.do(ctx, "POST", path, `{"booking":{"event_date":"2031-01-01"}}`).is(200); string(again.Body) != string(a.Body) {
		t.Errorf("converted twice: %s", again.Body)
	}
	if n := len(w.bookings.Requests()); n != 1 {
		t.Errorf("bookings was called %d times", n)
	}
	w.settledLeads()
}

// TestConvertWithAUsedKey checks that a key of another request is refused before anything happens.
func TestConvertWithAUsedKey(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	l := w.lead(ctx, withEmail)
	w.do(ctx, "PATCH", "/leads/"+l.ID, `{"phone":"9"}`, "Idempotency-Key: k").is(200)
	w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`, "Idempotency-Key: k").is(422, "idempotency_mismatch")
	if n := len(w.bookings.Requests()); n != 0 {
		t.Errorf("bookings was called %d times", n)
	}
	w.settledLeads()
}

func TestBookingDefaultsFromTheLead(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	service, unit, pkg := w.catalogue()
	for given, want := range map[string]string{
		`{"event_date":"2031-02-03","guest_count":1}`: fmt.Sprintf(`event_date:2031-02-03 guest_count:1 package_id:%s service_id:%s unit_id:%s`, pkg, service, unit),
		`{"unit_id":null,"guest_count":null}`:         fmt.Sprintf(`event_date:2030-06-01T04:00:00Z guest_count:<nil> package_id:%s service_id:%s unit_id:<nil>`, pkg, service),
		`{"starts_at":"2031-02-03T10:00:00Z"}`:        fmt.Sprintf(`guest_count:7 package_id:%s service_id:%s starts_at:2031-02-03T10:00:00Z unit_id:%s`, pkg, service, unit),
		`{"package_id":"pkg_1","notes":"n"}`:          fmt.Sprintf(`event_date:2030-06-01T04:00:00Z guest_count:7 notes:n package_id:pkg_1 unit_id:%s`, unit),
		`{"status":"confirmed","hold_minutes":5,"metadata":["a"],"event_type":"x","event_start_time":"10:00","event_end_time":null}`: fmt.Sprintf(
			`event_date:2030-06-01T04:00:00Z event_end_time:<nil> event_start_time:10:00 event_type:x guest_count:7 hold_minutes:5 metadata:[a] package_id:%s service_id:%s status:confirmed unit_id:%s`, pkg, service, unit),
	} {
		l := w.lead(ctx, withEmail+fmt.Sprintf(`,"event_date":"2030-06-01","guest_count":7,"service_id":%q,"unit_id":%q,"package_id":%q`, service, unit, pkg))
		got := w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":`+given+`}`).is(200).lead()
		requests := w.bookings.Requests()
		var body map[string]any
		if err := json.Unmarshal(requests[len(requests)-1].Body, &body); err != nil {
			t.Fatal(err)
		}
		want = fmt.Sprintf("map[customer_id:%s %s]", *got.CustomerID, want)
		if fmt.Sprint(body) != want {
			t.Errorf("%s:\n%v, want\n%s", given, body, want)
		}
	}
}

func TestScopesOfAConversion(t *testing.T) {
	t.Parallel()
	w, all := newWorld(t), converter(t)
	known := w.create(all, "")
	l := w.lead(all, `"email":"new@example.com"`)
	path := "/leads/" + l.ID + "/convert"
	for _, tc := range []struct {
		scopes, body, missing string
	}{
		{"write:leads", `{}`, "write:customers"},
		{"write:leads", `{"customer_id":"` + known.ID + `"}`, "write:customers"},
		{"write:leads read:customers", `{}`, "write:customers"},
		{"write:leads read:customers write:customers", `{"booking":{"event_date":"2030-01-01"}}`, "write:bookings"},
		{"write:leads write:bookings read:customers", `{"booking":{"event_date":"2030-01-01"}}`, "write:customers"},
		{"write:leads write:bookings", `{"booking":{"event_date":"2030-01-01"}}`, "write:customers"},
	} {
		a := w.do(withScopes(all, strings.Fields(tc.scopes)...), "POST", path, tc.body).is(403, "insufficient_scope")
		if !strings.Contains(string(a.Body), tc.missing) || !strings.Contains(a.Header.Get("WWW-Authenticate"), tc.missing) {
			t.Errorf("%s %s: %v %s", tc.scopes, tc.body, a.Header, a.Body)
		}
	}
	if got := w.kinds(); got != "customer.created lead.created" || len(w.bookings.Requests()) != 0 {
		t.Errorf("events: %s, bookings %v", got, w.bookings.Requests())
	}
	w.settledLeads()
	w.do(withScopes(all, "write:leads", "read:customers"), "POST", path, `{"customer_id":"`+known.ID+`"}`).is(200)
	w.do(withScopes(all, "read:leads"), "GET", "/leads/"+l.ID+"?expand=customer", "").is(403, "insufficient_scope")
	w.do(withScopes(all, "read:leads"), "GET", "/leads?expand=customer", "").is(403, "insufficient_scope")
}

func TestConvertInEachStatus(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	c := w.create(ctx, "")
	for _, status := range leadStatuses {
		for _, booking := range []string{"", `,"booking":{"event_date":"2030-01-01"}`} {
			l := w.leadIn(ctx, status)
			before := len(w.bookings.Requests())
			a := w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"customer_id":"`+c.ID+`"`+booking+`}`)
			requests := len(w.bookings.Requests()) - before
			switch status {
			case "lost":
				a.is(422, "invalid_status_transition", "status")
			case "converted":
				if got := a.is(200).lead(); got.Version != l.Version || *got.CustomerID != *l.CustomerID {
					t.Errorf("converted twice: %s", a.Body)
				}
			default:
				if got := a.is(200).lead(); got.Status != "converted" || got.Version != l.Version+1 {
					t.Errorf("%s: %s", status, a.Body)
				}
				if (requests == 1) != (booking != "") {
					t.Errorf("%s%s: bookings was called %d times", status, booking, requests)
				}
			}
			if final := status == "lost" || status == "converted"; final && requests != 0 {
				t.Errorf("%s: bookings was called", status)
			}
		}
	}
	w.settledLeads()
}

func TestARefusedBookingLeavesNothing(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	l := w.lead(ctx, withEmail)
	path := "/leads/" + l.ID + "/convert"
	body := `{"booking":{"event_date":"2030-01-01"}}`
	for _, tc := range []struct {
		err         error
		status      int
		code, field string
	}{
		{apperr.New(apperr.Conflict, "slot_unavailable", "The slot is taken."), 409, "slot_unavailable", ""},
		{apperr.Field("unit_id", "Unit not found."), 422, "invalid_request", "booking.unit_id"},
		{apperr.Field("customer_id", "Customer not found."), 422, "invalid_request", "customer_id"},
		{apperr.New(apperr.Forbidden, "insufficient_scope", "No."), 403, "insufficient_scope", ""},
	} {
		w.bookings.Before = func(context.Context, string) error { return tc.err }
		a := w.do(ctx, "POST", path, body, "Idempotency-Key: k")
		if tc.field == "" {
			a.is(tc.status, tc.code)
		} else {
			a.is(tc.status, tc.code, tc.field)
		}
		w.settledLeads()
		if n := w.Count(`select count(*) from customers`); n != 0 {
			t.Fatalf("%d customers", n)
		}
	}
	// Bookings may have copied the customer, so an event erases the copy. No other consumer gets an event.
	for _, e := range w.Events() {
		if e.Type != "lead.created" && (e.Type != "customer.erased" || !e.Internal) {
			t.Errorf("event %s", e.Type)
		}
	}
	if got := w.do(ctx, "GET", "/leads/"+l.ID, "").is(200).lead(); got.Version != 1 || got.Status != "new" {
		t.Errorf("got %+v", got)
	}
	w.bookings.Before = nil
	w.do(ctx, "POST", path, body, "Idempotency-Key: k").is(200)
	w.settledLeads()
}

// TestWhatIsSeenOfAConversion checks that bookings can look up the new customer while it decides, and that no other client sees
// anything.
func TestWhatIsSeenOfAConversion(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	l := w.lead(ctx, withEmail)
	var id string
	w.bookings.Before = func(context.Context, string) error {
		w.T.Helper()
		if err := w.Owner().QueryRow(t.Context(), `select converting_customer_id::text from leads`).Scan(&id); err != nil {
			return err
		}
		id = uuidToCustomer(t, id)
		a := w.from(ctx, w.engine, "bookings", "GET", "/internal/v1/customers/"+id, "").is(200)
		if c := a.customer(); c.Name != "Ann Lee" || c.ID != id || c.Version != 1 {
			t.Errorf("got %s", a.Body)
		}
		foreign := pgtest.Ctx(t, caller.Test)
		w.from(foreign, w.engine, "bookings", "GET", "/internal/v1/customers/"+id, "").is(404)
		w.do(ctx, "GET", "/customers/"+id, "").is(404, "customer_not_found")
		if got := w.do(ctx, "GET", "/leads/"+l.ID, "").is(200).lead(); got.Status != "new" || got.Version != 1 || got.CustomerID != nil {
			t.Errorf("got %+v", got)
		}
		return nil
	}
	if got := w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(200).lead(); *got.CustomerID != id {
		t.Errorf("got %+v", got)
	}
}

func uuidToCustomer(t *testing.T, text string) string {
	t.Helper()
	var id ids.Customer
	if err := id.Scan(text); err != nil {
		t.Fatal(err)
	}
	return id.String()
}

func TestConvertsAtOnce(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"booking": `{"booking":{"event_date":"2030-01-01"}}`, "none": `{}`} {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, keyed), func(t *testing.T) {
				t.Parallel()
				w, ctx := newWorld(t), converter(t)
				l := w.lead(ctx, withEmail)
				var all sync.WaitGroup
				bodies := make([]string, 20)
				for i := range bodies {
					all.Go(func() {
						var headers []header
						if keyed {
							headers = append(headers, "Idempotency-Key: k")
						}
						bodies[i] = string(w.do(ctx, "POST", "/leads/"+l.ID+"/convert", body, headers...).is(200).Body)
					})
				}
				all.Wait()
				slices.Sort(bodies)
				created := len(w.bookings.Created())
				if len(slices.Compact(bodies)) != 1 || w.kinds() != "customer.created lead.created lead.updated" || (created == 1) != (name == "booking") {
					t.Errorf("%d responses, %d bookings, events %s", len(slices.Compact(bodies)), created, w.kinds())
				}
				if n := w.Count(`select count(*) from customers`); n != 1 {
					t.Errorf("%d customers", n)
				}
				w.settledLeads()
			})
		}
	}
}

// TestLeadsWithOneEmail checks that leads with the same e-mail address that are converted at the same time get the same customer.
func TestLeadsWithOneEmail(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	for round := range 6 {
		email := fmt.Sprintf(`"email":"ann%d@example.com"`, round)
		leads := make([]lead, 8)
		for i := range leads {
			leads[i] = w.lead(ctx, email)
		}
		atOnce(len(leads), func(i int) {
			body := `{}`
			if (i+round)%4 == 0 && round%2 == 0 {
				body = `{"booking":{"event_date":"2030-01-01"}}`
			}
			w.do(ctx, "POST", "/leads/"+leads[i].ID+"/convert", body).is(200)
		})
		if n, of := w.Count(`select count(*) from customers`), w.Count(`select count(distinct customer_id) from leads`); n != round+1 || of != n {
			t.Errorf("after %d addresses: %d customers, leads of %d", round+1, n, of)
		}
	}
	if n := len(w.bookings.Created()); n != 6 {
		t.Errorf("%d bookings", n)
	}
	w.settledLeads()
}

// TestChangesAmidAConversion checks that changes of a lead wait for its conversion.
func TestChangesAmidAConversion(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	l := w.lead(ctx, withEmail)
	path := "/leads/" + l.ID
	var patched response
	var changes sync.WaitGroup
	w.bookings.Before = func(context.Context, string) error {
		changes.Go(func() { patched = w.do(ctx, "PATCH", path, `{"status":"lost","lost_reason":"x"}`) })
		return nil
	}
	w.do(ctx, "POST", path+"/convert", `{"booking":{"event_date":"2030-01-01"}}`)
	changes.Wait()
	if got := w.do(ctx, "GET", path, "").is(200).lead(); got.Status != "converted" {
		t.Errorf("got %+v", got)
	}
	patched.is(422, "invalid_status_transition", "status")
	stuck := w.lead(ctx, `"email":"b@b.co"`)
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.do(ctx, "POST", "/leads/"+stuck.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503)
	a := w.do(ctx, "PATCH", "/leads/"+stuck.ID, `{"phone":"1"}`).is(409, "idempotency_in_progress")
	if a.Header.Get("Retry-After") == "" {
		t.Error("409 without Retry-After")
	}
}

// TestEmailOfAConversionUnderWay checks that, while a conversion creates the customer of an e-mail address, another lead with that
// address, ignoring case, does not create a second one.
func TestEmailOfAConversionUnderWay(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	first, second := w.lead(ctx, `"email":"b@example.com"`), w.lead(ctx, `"email":"B@example.com"`)
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.do(ctx, "POST", "/leads/"+first.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503)
	w.do(ctx, "POST", "/leads/"+second.ID+"/convert", `{}`).is(409, "idempotency_in_progress")
	if n := w.Count(`select count(*) from customers`); n != 0 {
		t.Errorf("%d customers", n)
	}
}
