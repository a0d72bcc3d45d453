package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// TestACustomerHasAnAddressOrANumber checks that a customer can be created and changed with only a telephone number, and that one of
// the two always remains.
func TestACustomerHasAnAddressOrANumber(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for _, body := range []string{
		`{"first_name":"Ann"}`, `{"first_name":"Ann","phone":""}`, `{"first_name":"Ann","phone":null,"email":null}`, `{"first_name":"Ann","company":"Acme"}`,
	} {
		a := w.do(ctx, "POST", "/customers", body).is(422, "invalid_request", "email")
		if got := decode[struct{ Errors map[string][]string }](a).Errors; len(got) != 2 || len(got["phone"]) != 1 {
			t.Errorf("%s: %v, want an error on email and on phone", body, got)
		}
	}
	w.do(ctx, "POST", "/customers", `{"phone":"+49 30 901820"}`).is(422, "invalid_request", "first_name")
	a := w.do(ctx, "POST", "/customers", `{"first_name":"Ann","phone":"+49 30 901820"}`).is(201)
	if !strings.Contains(string(a.Body), `"email":null,"phone":"+49 30 901820"`) {
		t.Errorf("got %s", a.Body)
	}
	path := "/customers/" + a.customer().ID
	if got := w.do(ctx, "GET", path, "").is(200); string(got.Body) != string(a.Body) || string(w.Events()[0].Object) != string(a.Body) {
		t.Errorf("GET %s, event %s", got.Body, w.Events()[0].Object)
	}

	w.do(ctx, "PATCH", path, `{"phone":null}`).is(422, "invalid_request", "email")
	w.do(ctx, "PATCH", path, `{"phone":"","last_name":"Lee"}`).is(422, "invalid_request", "email")
	w.do(ctx, "PATCH", path, `{"phone":null}`, `If-Match: "7"`).is(412, "version_mismatch") // precedes what the state does not allow
	swapped := w.do(ctx, "PATCH", path, `{"phone":null,"email":"ann@example.com"}`).is(200)
	if !strings.Contains(string(swapped.Body), `"email":"ann@example.com","phone":null`) {
		t.Errorf("got %s", swapped.Body)
	}
	w.do(ctx, "PATCH", path, `{"email":null}`).is(422, "invalid_request", "email")
	w.do(ctx, "PATCH", path, `{"email":null,"phone":"1"}`).is(200)
	e := w.Events()
	if len(e) != 3 || string(e[1].PreviousAttributes) != `{"email":null,"phone":"+49 30 901820"}` ||
		string(e[2].PreviousAttributes) != `{"email":"ann@example.com","phone":null}` {
		t.Errorf("events %v", e)
	}
}

// TestListsOfCustomersWithoutAnAddress checks the filters, the CSV, and the expansion of a customer without an e-mail address.
func TestListsOfCustomersWithoutAnAddress(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	ctx = withScopes(ctx, "read:leads", "write:leads", "read:customers", "write:customers")
	id := w.do(ctx, "POST", "/customers", `{"first_name":"Ann","phone":"+49 30 901820"}`).is(201).customer().ID
	w.create(ctx, "")
	for q, want := range map[string]int{
		"?email=": 0, "?email=ann@example.com": 1, "?phone=030901820": 1, "?phone=0049%2030%20901820": 1, "?q=901820": 1, "?q=ann": 2, "": 2,
	} {
		if got := w.do(ctx, "GET", "/customers"+q, "").is(200).list(); len(got.Data) != want {
			t.Errorf("%q: %d customers, want %d", q, len(got.Data), want)
		}
	}
	csv := string(w.do(ctx, "GET", "/customers?phone=030901820", "", "Accept: text/csv").is(200).Body)
	if !strings.Contains(csv, ",Ann,,,'+49 30 901820,") {
		t.Errorf("CSV: %s", csv)
	}
	lead := w.lead(ctx, `"phone":"1"`)
	w.do(ctx, "POST", "/leads/"+lead.ID+"/convert", `{"customer_id":"`+id+`"}`).is(200)
	if got := string(w.do(ctx, "GET", "/leads/"+lead.ID+"?expand=customer", "").is(200).Body); !strings.Contains(got, `"email":null,"phone":"+49 30 901820"`) {
		t.Errorf("expanded: %s", got)
	}
}

// TestConvertMatchesThePhone checks which customer a lead becomes: the one with its e-mail address, else the one with the digits of
// its telephone number, else a new one.
func TestConvertMatchesThePhone(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	ann := w.do(ctx, "POST", "/customers", `{"first_name":"Ann","phone":"+49 (0)30 90-18 20"}`).is(201).customer().ID
	bea := w.do(ctx, "POST", "/customers", `{"first_name":"Bea","email":"bea@example.com","phone":"+1 212 555 0101"}`).is(201).customer().ID
	convert := func(fields string) string {
		t.Helper()
		return *w.do(ctx, "POST", "/leads/"+w.lead(ctx, fields).ID+"/convert", ``).is(200).lead().CustomerID
	}
	for fields, want := range map[string]string{
		`"phone":"+49 30 901820"`:                             ann,
		`"phone":"004930901820"`:                              ann,
		`"phone":"030 901820"`:                                ann,
		`"phone":"+1 212 555-0101"`:                           bea,
		`"phone":"+49 30 901820","email":"BEA@example.com"`:   bea, // the address comes first
		`"phone":"+49 30 901820","email":"other@example.com"`: ann, // no customer has the address
	} {
		if got := convert(fields); got != want {
			t.Errorf("%s: got %s, want %s", fields, got, want)
		}
	}
	for _, fields := range []string{`"phone":"+43 30 901820"`, `"phone":"+49 30 901821"`, `"phone":"none"`, `"phone":"none"`} {
		id := convert(fields)
		if got := w.do(ctx, "GET", "/customers/"+id, "").is(200); id == ann || id == bea || !strings.Contains(string(got.Body), `"email":null`) {
			t.Errorf("%s: got %s", fields, got.Body)
		}
	}
	other := w.do(ctx, "POST", "/customers", `{"first_name":"Cy","phone":"0049 30 901820"}`).is(201).customer().ID
	third := w.lead(ctx, `"phone":"+49 30 901820"`)
	several := w.do(ctx, "POST", "/leads/"+third.ID+"/convert", ``).is(422, "invalid_request", "customer_id")
	if body := string(several.Body); !strings.Contains(body, ann) || !strings.Contains(body, other) || !strings.Contains(body, "phone number") {
		t.Errorf("the message does not name them: %s", body)
	}
	w.do(ctx, "DELETE", "/customers/"+ann, "").is(204)
	if got := *w.do(ctx, "POST", "/leads/"+third.ID+"/convert", ``).is(200).lead().CustomerID; got != other {
		t.Errorf("after an erasure: got %s, want %s", got, other)
	}
	for _, fields := range []string{"", `"phone":""`} {
		w.do(ctx, "POST", "/leads/"+w.lead(ctx, fields).ID+"/convert", ``).is(422, "invalid_request", "email")
	}
	elsewhere := withScopes(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), "write:leads", "write:customers")
	for _, ctx := range []string{"live", "foreign"} {
		c := elsewhere
		if ctx == "foreign" {
			c = converter(t)
		}
		id := *w.do(c, "POST", "/leads/"+w.lead(c, `"phone":"0049 30 901820"`).ID+"/convert", ``).is(200).lead().CustomerID
		if id == other {
			t.Errorf("%s: the customer of another owner", ctx)
		}
	}
	w.settledLeads()
}

// TestConvertByPhoneAtOnce checks that leads with the same number in different notations become one customer, with and without a
// booking, and that none of them has an e-mail address in common.
func TestConvertByPhoneAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	w.catalogue()
	notations := []string{"+49 30 901820", "004930901820", "030 901820", "+49 (0)30 90 18 20"}
	const leads = 16
	ids := make([]string, leads)
	for i := range ids {
		fields := fmt.Sprintf(`"phone":%q,"event_date":"2030-06-01"`, notations[i%len(notations)])
		if i%2 == 0 {
			fields += fmt.Sprintf(`,"email":"ann%d@example.com"`, i)
		}
		ids[i] = w.lead(ctx, fields).ID
	}
	var mu sync.Mutex
	customers := map[string]bool{}
	atOnce(leads, func(i int) {
		body := `{}`
		if i%3 == 0 {
			body = `{"booking":{}}`
		}
		for {
			a := w.do(ctx, "POST", "/leads/"+ids[i]+"/convert", body)
			if a.Status == 409 {
				a.is(409, "idempotency_in_progress")
				continue
			}
			mu.Lock()
			customers[*a.is(200).lead().CustomerID] = true
			mu.Unlock()
			return
		}
	})
	if n := w.Count(`select count(*) from customers`); n != 1 || len(customers) != 1 {
		t.Errorf("%d customers, %v", n, customers)
	}
	w.settledLeads()
}
