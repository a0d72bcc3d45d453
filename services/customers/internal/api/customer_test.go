package api_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	publicapi "holdfast.dev/proto/api"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	a := w.do(ctx, "POST", "/customers", `{"first_name":" Ann ","last_name":"Lee","email":"Ann@Example.COM","phone":"+1 2",`+
		`"company":"A <&> B","metadata":{ "b":"1", "a":"2" },"unknown":{"x":[1]}}`).is(201)
	c := a.customer()
	if got, want := a.Header.Get("Location"), "/api/v1/customers/"+c.ID; got != want {
		t.Errorf("Location %q, want %q", got, want)
	}
	if a.Header.Get("ETag") != `"1"` || c.Version != 1 || c.Mode != "test" || !strings.HasPrefix(c.ID, "cu_") {
		t.Errorf("ETag %s, %+v", a.Header.Get("ETag"), c)
	}
	if c.Name != "Ann  Lee" || c.FirstName != " Ann " || c.Email != "Ann@Example.COM" || deref(c.Company) != "A <&> B" {
		t.Errorf("fields are stored as given: %+v", c)
	}
	if !strings.Contains(string(a.Body), `"metadata":{"b":"1","a":"2"}`) {
		t.Errorf("the order is preserved: %s", a.Body)
	}
	got := w.do(ctx, "GET", "/customers/"+c.ID, "").is(200)
	if string(got.Body) != string(a.Body) || got.Header.Get("ETag") != `"1"` {
		t.Errorf("GET differs from POST:\n%s\n%s", got.Body, a.Body)
	}
	e := w.Events()
	if len(e) != 1 || e[0].Type != "customer.created" || string(e[0].Object) != string(a.Body) || string(e[0].PreviousAttributes) != "{}" ||
		e[0].ObjectId != c.ID || e[0].ResourceVersion != 1 || e[0].Internal || e[0].Livemode {
		t.Errorf("got %v", e)
	}
	if w.wakes.Load() != 1 {
		t.Errorf("the relay was woken %d times", w.wakes.Load())
	}
}

func TestCreateLeast(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	a := w.do(ctx, "POST", "/customers", `{"first_name":"Ann","email":"a@b.co"}`).is(201)
	for _, want := range []string{`"name":"Ann"`, `"last_name":null`, `"phone":null`, `"company":null`, `"metadata":{}`, `"mode":"live"`} {
		if !strings.Contains(string(a.Body), want) {
			t.Errorf("no %s in %s", want, a.Body)
		}
	}
	w.do(ctx, "POST", "/customers", `{"first_name":"Ann","email":"a@b.co"}`).is(201) // an e-mail need not be unique
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	created := w.create(ctx, `"last_name":"Lee","phone":"1","company":"Acme","metadata":{"a":"1","b":"2"}`)
	path := "/customers/" + created.ID

	a := w.do(ctx, "PATCH", path, `{"last_name":null,"phone":"2","metadata":["x","x"]}`).is(200)
	c := a.customer()
	if c.LastName != nil || deref(c.Phone) != "2" || string(c.Metadata) != `["x","x"]` || deref(c.Company) != "Acme" || c.Name != "Ann" {
		t.Errorf("got %s", a.Body)
	}
	if c.Version != 2 || a.Header.Get("ETag") != `"2"` || !c.CreatedAt.Equal(created.CreatedAt) || !c.UpdatedAt.After(created.UpdatedAt) {
		t.Errorf("version and times: %s", a.Body)
	}
	if a.Header.Get("Location") != "" {
		t.Error("a PATCH has no Location")
	}
	if got := w.do(ctx, "GET", path, "").is(200); string(got.Body) != string(a.Body) {
		t.Errorf("GET differs from PATCH:\n%s\n%s", got.Body, a.Body)
	}
	e := w.Events()
	const previous = `{"name":"Ann Lee","last_name":"Lee","phone":"1","metadata":{"a":"1","b":"2"}}`
	if len(e) != 2 || e[1].Type != "customer.updated" || string(e[1].Object) != string(a.Body) ||
		string(e[1].PreviousAttributes) != previous || e[1].ResourceVersion != 2 {
		t.Errorf("got %v", e)
	}
	for _, empty := range []string{"null", "{}", "[]"} {
		w.do(ctx, "PATCH", path, `{"metadata":["x"]}`).is(200)
		if c := w.do(ctx, "PATCH", path, `{"metadata":`+empty+`}`).is(200).customer(); string(c.Metadata) != "{}" {
			t.Errorf("%s reads back as %s", empty, c.Metadata)
		}
	}
}

func TestUpdateThatChangesNothing(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	created := w.do(ctx, "POST", "/customers", `{"first_name":"Ann","email":"a@b.co","phone":"1","metadata":{"a":"1","b":"2"}}`).is(201)
	path := "/customers/" + created.customer().ID
	for _, body := range []string{`{}`, `{"first_name":"Ann"}`, `{"phone":"1","last_name":null}`, `{"metadata":{ "a" : "1","b":"2"}}`, `{"nickname":"x"}`} {
		a := w.do(ctx, "PATCH", path, body, "Idempotency-Key: "+header(body)).is(200)
		if string(a.Body) != string(created.Body) || a.Header.Get("ETag") != `"1"` {
			t.Errorf("%s changed something: %s", body, a.Body)
		}
	}
	if got := w.Types(); got != "created" {
		t.Errorf("events: %s", got)
	}
	// Metadata is stored verbatim, including the order of its keys.
	w.do(ctx, "PATCH", path, `{"metadata":{"b":"2","a":"1"}}`).is(200)
	if got := w.Types(); got != "created updated" {
		t.Errorf("events: %s", got)
	}
}

func TestIfMatch(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	w.do(ctx, "PATCH", path, `{"phone":"1"}`, `If-Match: "1"`).is(200)
	w.do(ctx, "PATCH", path, `{"phone":"2"}`, `If-Match: "1"`).is(412, "version_mismatch")
	w.do(ctx, "PATCH", path, `{"phone":"1"}`, `If-Match: "1"`).is(412) // also if nothing would change
	w.do(ctx, "PATCH", path, `{"phone":"2"}`, `If-Match: W/"2"`).is(412)
	w.do(ctx, "PATCH", path, `{"phone":"2"}`, `If-Match: 2`).is(422, "invalid_request", "If-Match")
	w.do(ctx, "PATCH", path, `{"phone":"2"}`, `If-Match: *`).is(200)
	w.do(ctx, "DELETE", path, "", `If-Match: "2"`).is(412, "version_mismatch")
	w.do(ctx, "DELETE", path, "", `If-Match: x`).is(422, "invalid_request", "If-Match")
	w.do(ctx, "DELETE", path, "", `If-Match: "3"`).is(204)
	w.do(ctx, "DELETE", path, "", `If-Match: "3"`).is(404)
	if got := w.Types(); got != "created updated updated erased updated" {
		t.Errorf("events: %s", got)
	}
}

// personal contains words that occur nowhere else: not in ids, times or numbers.
var personal = []string{"secretus", "personius", "telephonus", "mobilius", "hiddenco", "confidential", "privatus"}

// holdPersonal fails the test unless each field of a body contains one of the words.
func holdPersonal(t *testing.T, body string) {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		if name != "country" && !slices.ContainsFunc(personal, func(word string) bool { return strings.Contains(strings.ToLower(string(value)), word) }) {
			t.Errorf("%s holds none of %q: send one of them, so that its erasure is seen", name, personal)
		}
	}
}

func TestErase(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	body := `{"first_name":"Secretus","last_name":"Personius","email":"secretus@personius.example","phone":"Telephonus","company":"Hiddenco","tax_id":"Privatus","billing_address":{"line1":"Personius","line2":null,"city":"Secretus","state":null,"postal_code":null,"country":"DE"},"country":"DE","locale":"de-x-secretus","metadata":{"Confidential":"Privatus"}}`
	created := w.do(ctx, "POST", "/customers", body, "Idempotency-Key: k1").is(201)
	apitest.Written[publicapi.CustomerCreate](t, body, created.Body) // so that no field is left out below
	holdPersonal(t, body)
	c := created.customer()
	path := "/customers/" + c.ID
	w.do(ctx, "PATCH", path, `{"phone":"Mobilius"}`, "Idempotency-Key: k2").is(200)
	other := w.do(ctx, "POST", "/customers", `{"first_name":"Bea","email":"b@b.co"}`, "Idempotency-Key: k3").is(201).customer()

	w.do(ctx, "DELETE", path, "").is(204)
	w.do(ctx, "DELETE", path, "").is(404, "customer_not_found")
	w.do(ctx, "GET", path, "").is(404, "customer_not_found")
	w.do(ctx, "PATCH", path, `{"phone":"1"}`).is(404, "customer_not_found")
	w.do(pg.OtherMode(ctx), "GET", path, "").is(404, "customer_not_found")
	for _, q := range []string{"?q=secretus", "?email=secretus@personius.example", "?phone=Mobilius", "?metadata[Confidential]=Privatus", "?email=", "?q=s"} {
		if got := w.do(ctx, "GET", "/customers"+q, "").is(200).list(); len(got.Data) != 0 {
			t.Errorf("%s finds %v", q, got.Data)
		}
	}
	if got := w.do(ctx, "GET", "/customers", "").is(200).list(); len(got.Data) != 1 || got.Data[0].ID != other.ID {
		t.Errorf("the list shows %v", got.Data)
	}
	if n := w.Count(`select count(*) from customers where erased_at is not null and country is null`); n != 1 {
		t.Errorf("%d customers without a country", n)
	}
	for _, table := range []string{"customers", "customer_words", "customer_metadata", "outbox", "idempotency_keys"} {
		for _, word := range personal {
			if n := w.Count(`select count(*) from `+table+` t where lower(t::text) like '%' || $1 || '%'`, word); n != 0 {
				t.Errorf("%s still holds %q", table, word)
			}
			if table == "outbox" || table == "idempotency_keys" {
				column := map[string]string{"outbox": "message", "idempotency_keys": "body"}[table]
				if n := w.Count(`select count(*) from `+table+` where lower(encode(`+column+`, 'escape')) like '%' || $1 || '%'`, word); n != 0 {
					t.Errorf("a %s of %s still holds %q", column, table, word)
				}
			}
		}
	}
	e := w.Events()
	if w.Types() != "created updated created erased updated" || !e[3].Internal || e[3].ResourceVersion != 3 || e[3].ObjectId != c.ID || e[4].Internal || e[4].ResourceVersion != 3 {
		t.Errorf("got %v", e)
	}
	if !strings.Contains(string(e[0].Object), `"email":null`) || string(e[1].PreviousAttributes) != `{"phone":null}` || !strings.Contains(string(e[2].Object), "b@b.co") {
		t.Errorf("events that wait: %s, and of another customer %s", e[1].PreviousAttributes, e[2].Object)
	}
	synced := w.do(ctx, "GET", "/customers?sort=updated_at", "").is(200)
	tombstone := synced.list().Data[1]
	if len(synced.list().Data) != 2 || tombstone.ID != c.ID || tombstone.Version != 3 || tombstone.ErasedAt == nil || !tombstone.UpdatedAt.After(c.UpdatedAt) {
		t.Errorf("a copy in sync reads %s", synced.Body)
	}
	if !bytes.Contains(synced.Body, e[4].Object) {
		t.Errorf("the event shows %s, and the list %s", e[4].Object, synced.Body)
	}
	const cleared = `{"name":"","first_name":"","last_name":null,"email":null,"phone":null,"company":null,"tax_id":null,"billing_address":null,"country":null,"locale":null,"metadata":{},"erased_at":null}`
	if got := string(e[4].PreviousAttributes); got != cleared {
		t.Errorf("previous attributes %s", got)
	}
	if got := w.do(ctx, "GET", "/customers?sort=updated_at", "", "Accept: text/csv").is(200); !strings.Contains(string(got.Body), c.ID+",customer,,,,,,,{},test,3,") {
		t.Errorf("CSV %s", got.Body)
	}
	w.Exec(`update customers set tax_id = 'Privatus', erased_at = erased_at`) // as the previous version, which does not know the column
	if n := w.Count(`select count(*) from customers where tax_id is not null`); n != 1 {
		t.Errorf("an erasure by the previous version leaves %d tax ids", n-1)
	}
}

// TestReplayAfterErasure checks that a request repeated after the erasure has no effect and returns the person's fields empty.
func TestReplayAfterErasure(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	create := `{"first_name":"Secretus","last_name":"Personius","email":"secretus@personius.example","phone":"Telephonus","company":"Hiddenco","tax_id":"Privatus","billing_address":{"line1":"Personius","line2":null,"city":"Secretus","state":null,"postal_code":null,"country":"DE"},"country":"DE","locale":"de-x-secretus","metadata":{"Confidential":"Privatus"}}`
	patch := `{"company":"Hiddenco Ltd"}`
	first := w.do(ctx, "POST", "/customers", create, "Idempotency-Key: k1").is(201)
	path := "/customers/" + first.customer().ID
	second := w.do(ctx, "PATCH", path, patch, "Idempotency-Key: k2").is(200)
	for i := range 50 { // more than fit in one batch
		w.do(ctx, "PATCH", path, `{}`, header("Idempotency-Key: more "+strings.Repeat("x", i+1))).is(200)
	}
	w.do(ctx, "DELETE", path, "").is(204)
	w.Exec(`delete from outbox`)
	for _, r := range []struct {
		method, path, body, key string
		before                  response
	}{
		{"POST", "/customers", create, "k1", first},
		{"PATCH", path, patch, "k2", second},
		{"PATCH", path, `{}`, "more x", second},
		{"PATCH", path, `{}`, "more " + strings.Repeat("x", 50), second},
	} {
		a := w.do(ctx, r.method, r.path, r.body, header("Idempotency-Key: "+r.key)).is(r.before.Status)
		for _, name := range []string{"Location", "ETag"} {
			if r.key[0] == 'k' && a.Header.Get(name) != r.before.Header.Get(name) {
				t.Errorf("%s: %s %q, want %q", r.key, name, a.Header.Get(name), r.before.Header.Get(name))
			}
		}
		for _, word := range personal {
			if strings.Contains(strings.ToLower(string(a.Body)), word) {
				t.Errorf("%s returns %q: %s", r.key, word, a.Body)
			}
		}
		c, was := a.customer(), r.before.customer()
		if a.Header.Get("Idempotent-Replayed") != "true" || c.ID != was.ID || c.Version != was.Version || !c.CreatedAt.Equal(was.CreatedAt) ||
			c.FirstName+c.Email+c.Name != "" || c.LastName != nil || c.Phone != nil || c.Company != nil || string(c.Metadata) != "{}" {
			t.Errorf("%s: %v %s", r.key, a.Header, a.Body)
		}
	}
	w.do(ctx, "POST", "/customers", patch, "Idempotency-Key: k1").is(422, "idempotency_mismatch")
	if n := w.Count(`select count(*) from customers`); n != 1 || w.Types() != "" {
		t.Errorf("%d customers, events %q", n, w.Types())
	}
}

func TestWhoSeesACustomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	own, mode, foreign := pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live), pgtest.Ctx(t, caller.Test)
	c := w.create(own, "")
	valid := "/customers/" + c.ID
	other := ids.New[ids.EventPrefix]().String()
	malformed := []string{
		"x", "cu_", "cu_x", c.ID + "x", strings.ToUpper(c.ID), strings.TrimPrefix(c.ID, "cu_"), "bk_" + strings.TrimPrefix(c.ID, "cu_"),
		other, "%00", "cu_%2F", "..", "cu_80000000000000000000000000",
	}
	for _, verb := range []struct{ method, body string }{
		{"GET", ""}, {"PATCH", `{"phone":"1"}`}, {"PATCH", `{"email":"no e-mail"}`}, {"DELETE", ""},
	} {
		w.do(foreign, verb.method, valid, verb.body).is(404, "customer_not_found")
		w.do(mode, verb.method, valid, verb.body).is(403, "mode_mismatch")
		w.do(own, verb.method, "/customers/"+ids.New[ids.CustomerPrefix]().String(), verb.body).is(404, "customer_not_found")
		for _, id := range malformed {
			w.do(own, verb.method, "/customers/"+id, verb.body).is(404)
		}
	}
	if got := w.do(own, "GET", valid, "").is(200).customer(); got.Version != 1 {
		t.Errorf("somebody has changed it: %+v", got)
	}
	for name, q := range map[string]string{"all": "", "email": "?email=ann@example.com", "q": "?q=ann"} {
		if got := w.do(mode, "GET", "/customers"+q, "").is(200).list(); len(got.Data) != 0 {
			t.Errorf("%s: the other mode sees %v", name, got.Data)
		}
		if got := w.do(foreign, "GET", "/customers"+q, "").is(200).list(); len(got.Data) != 0 {
			t.Errorf("%s: another tenant sees %v", name, got.Data)
		}
	}
}

func TestUnsignedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/customers", `{"first_name":"Ann","email":"a@b.co"}`},
		{"GET", "/customers", ""},
		{"GET", path, ""},
		{"PATCH", path, `{}`},
		{"DELETE", path, ""},
	} {
		w.do(ctx, r.method, r.path, r.body, "X-Caller: ").is(401, "invalid_credential")
		w.do(ctx, r.method, r.path, r.body, "X-Caller: gateway.k1.e30.AAAA").is(401, "invalid_credential")
	}
}

func TestBrokenDatabaseIsAnInternalError(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	w.Exec(`drop table customers cascade`)
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/customers", `{"first_name":"Ann","email":"a@b.co"}`},
		{"GET", "/customers", ""},
		{"GET", path, ""},
		{"PATCH", path, `{}`},
		{"DELETE", path, ""},
	} {
		a := w.do(ctx, r.method, r.path, r.body).is(500, "internal_error")
		if strings.Contains(string(a.Body), "relation") {
			t.Errorf("the cause is shown: %s", a.Body)
		}
	}
	if got := w.Types(); got != "created" {
		t.Errorf("events of what was rolled back: %s", got)
	}
}

// TestEachFieldIsWritten checks that a writable field is returned as it was written, in the response and in the next read.
func TestEachFieldIsWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const all = `{"first_name":"Bea","last_name":"Kay","email":"bea@example.com","phone":"+1 2","company":"Co","tax_id":"DE 1","billing_address":{"line1":"Pier 4","line2":"Hut","city":"Berlin","state":"BE","postal_code":"10115","country":"DE"},"country":"DE","locale":"de","metadata":{"k":"v"}}`
	id := w.create(ctx, "").ID
	apitest.Written[publicapi.CustomerUpdate](t, all, w.do(ctx, "PATCH", "/customers/"+id, all).is(200).Body)
	apitest.Written[publicapi.CustomerUpdate](t, all, w.do(ctx, "GET", "/customers/"+id, "").is(200).Body)
	created := w.do(ctx, "POST", "/customers", all).is(201)
	apitest.Written[publicapi.CustomerCreate](t, all, created.Body)
	apitest.Written[publicapi.CustomerCreate](t, all, w.do(ctx, "GET", "/customers/"+created.customer().ID, "").is(200).Body)
	apitest.SameFields[publicapi.CustomerCreate, publicapi.CustomerUpdate](t) // one function converts both
}
