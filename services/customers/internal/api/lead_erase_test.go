package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
	publicapi "holdfast.dev/proto/api"
)

const personalLead = `{"source":"web","first_name":"Secretus","last_name":"Personius","email":"secretus@personius.example","phone":"Telephonus",
	"company":"Hiddenco","message":"Confidential","metadata":{"Confidential":"Privatus"}}`

// notPersonal contains the fields of a lead that remain when its customer is erased.
var notPersonal = []string{"source", "event_type", "event_date", "guest_count", "budget", "service_id", "unit_id", "package_id"}

// forgotten fails the test if a table contains a personal word.
func (w *world) forgotten() {
	w.T.Helper()
	columns := map[string]string{"outbox": "message", "idempotency_keys": "body"}
	for _, table := range []string{"customers", "customer_words", "customer_metadata", "leads", "lead_words", "lead_metadata", "outbox", "idempotency_keys"} {
		for _, word := range personal {
			text := `lower(t::text)`
			if c := columns[table]; c != "" {
				text = `lower(encode(` + c + `, 'escape'))`
			}
			if n := w.Count(`select count(*) from `+table+` t where `+text+` like '%' || $1 || '%'`, word); n != 0 {
				w.T.Errorf("%s still holds %q", table, word)
			}
		}
	}
}

func TestEraseTheLeadsOfACustomer(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	created := w.do(ctx, "POST", "/leads", personalLead, "Idempotency-Key: k1").is(201)
	apitest.Written[publicapi.LeadCreate](t, personalLead, created.Body, notPersonal...) // so that no field is left out below
	path := "/leads/" + created.lead().ID
	w.do(ctx, "PATCH", path, `{"status":"lost","lost_reason":"Mobilius"}`).is(200)
	w.do(ctx, "PATCH", path, `{"status":"contacted"}`).is(200)
	l := w.do(ctx, "POST", path+"/convert", `{"booking":{"event_date":"2030-01-01","notes":"Privatus"}}`, "Idempotency-Key: k2").is(200).lead()
	untouched := w.lead(ctx, `"email":"bea@example.com"`)
	for range 101 { // more than fit in one batch
		other := w.lead(ctx, `"last_name":"Personius"`)
		w.do(ctx, "POST", "/leads/"+other.ID+"/convert", `{"customer_id":"`+*l.CustomerID+`"}`).is(200)
	}

	w.do(ctx, "DELETE", "/customers/"+*l.CustomerID, "").is(204)
	w.forgotten()
	got := w.do(ctx, "GET", path+"?expand=customer", "").is(200).lead()
	if got.FirstName != "" || got.Email != nil || *got.Source != "web" || got.Status != "converted" || *got.CustomerID != *l.CustomerID ||
		got.Version != l.Version+1 || string(got.Customer) != "null" {
		t.Errorf("got %+v", got)
	}
	if got := w.do(ctx, "GET", "/leads/"+untouched.ID, "").is(200).lead(); got.Version != 1 || *got.Email != "bea@example.com" {
		t.Errorf("another person's: %+v", got)
	}
	erased := 0
	for _, e := range w.Events() {
		if e.Type == "lead.erased" {
			erased++
			if !e.Internal || string(e.Object) != fmt.Sprintf(`{"id":%q,"object":"lead","erased":true}`, e.ObjectId) {
				t.Errorf("got %v", e)
			}
		}
	}
	if erased != 102 {
		t.Errorf("%d of 102 leads are erased elsewhere", erased)
	}
	again := w.do(ctx, "POST", path+"/convert", `{"booking":{"event_date":"2030-01-01","notes":"Privatus"}}`, "Idempotency-Key: k2").is(200)
	if strings.Contains(string(again.Body), "Secretus") || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v %s", again.Header, again.Body)
	}
}

// TestEraseAmidAConversion checks that the lead is erased together with a customer who is erased while bookings decides.
func TestEraseAmidAConversion(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	c := w.create(ctx, "")
	id := w.do(ctx, "POST", "/leads", personalLead, "Idempotency-Key: k1").is(201).lead().ID
	w.bookings.Before = func(context.Context, string) error {
		w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204)
		return nil
	}
	l := w.do(ctx, "POST", "/leads/"+id+"/convert", `{"customer_id":"`+c.ID+`","booking":{"event_date":"2030-01-01"}}`, "Idempotency-Key: k2").is(200).lead()
	if l.Status != "converted" || *l.CustomerID != c.ID || l.FirstName != "" || l.BookingID == nil {
		t.Errorf("got %+v", l)
	}
	w.forgotten()
	if got := w.kinds(); got != "customer.created customer.erased customer.updated lead.created lead.erased lead.updated" {
		t.Errorf("events: %s", got)
	}
}

// TestEraseAmidConversions checks that a lead that is converted while its customer is erased is either erased too, or not converted
// to that customer.
func TestEraseAmidConversions(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	for range 15 {
		c := w.create(ctx, "")
		atOnce(5, func(i int) {
			if i == 4 {
				w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204)
				return
			}
			l := w.do(ctx, "POST", "/leads", personalLead).is(201).lead()
			w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"customer_id":"`+c.ID+`"`+map[bool]string{true: `,"booking":{"event_date":"2030-01-01"}`}[i%2 == 0]+`}`)
		})
	}
	if n := w.Count(`select count(*) from leads l join customers c on c.id = l.customer_id where c.erased_at is not null and l.first_name <> ''`); n != 0 {
		t.Errorf("%d leads of erased customers hold personal data", n)
	}
	w.settledLeads()
}

// TestQuotedLeadBelongsToItsCustomer checks that a lead that was quoted to a customer but never converted is exported and erased
// with the customer, because it contains the person's data.
func TestQuotedLeadBelongsToItsCustomer(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c, other := w.create(ctx, ""), w.create(ctx, "")
	quoted, later, free := w.lead(ctx, `"email":"lea@example.com"`), w.lead(ctx, `"email":"max@example.com"`), w.lead(ctx, `"email":"eva@example.com"`)
	quote := func(customer, fields string) response {
		return w.do(ctx, "POST", "/quotes", `{"customer_id":`+str(customer)+`,`+lines+fields+`}`).is(201)
	}
	quote(c.ID, `,"lead_id":`+str(quoted.ID))
	q := decode[struct{ ID string }](quote(c.ID, ""))
	w.do(ctx, "PATCH", "/quotes/"+q.ID, `{"lead_id":`+str(later.ID)+`}`).is(200)
	if n := len(w.export(ctx, c.ID).Leads); n != 2 {
		t.Errorf("%d leads are exported", n)
	}
	if n := len(w.export(ctx, other.ID).Leads); n != 0 {
		t.Errorf("%d leads of another customer are exported", n)
	}
	if l := w.do(ctx, "GET", "/leads/"+quoted.ID, "").is(200); !strings.Contains(string(l.Body), `"customer_id":null`) {
		t.Errorf("the lead has become the customer: %s", l.Body)
	}
	w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204)
	for id, retained := range map[string]bool{quoted.ID: false, later.ID: false, free.ID: true} {
		if l := w.do(ctx, "GET", "/leads/"+id, "").is(200); strings.Contains(string(l.Body), "@example.com") != retained {
			t.Errorf("%s", l.Body)
		}
	}
}
