package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/services/console/internal/domain"
)

const where = "/admin/alpha/test/"

// fill returns the form of a page with some values set.
func (p *platform) fill(token, path string, values url.Values) url.Values {
	p.t.Helper()
	form := formOf(p.t, parse(p.t, p.get(token, path).Body.String()), path)
	maps.Copy(form, values)
	p.forget()
	return form
}

// only returns the one write that was sent.
func (p *platform) only(t *testing.T) call {
	t.Helper()
	list := p.written()
	if len(list) != 1 {
		t.Fatalf("%d writes, want one", len(list))
	}
	return list[0]
}

// TestCreateIsSentOnce checks that a create has the key of its form, so that a second click creates nothing, and that it makes the
// service refuse unknown fields.
func TestCreateIsSentOnce(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form := p.fill("owner", where+"services/new", url.Values{"name": {"Boat tour"}, "duration_minutes": {"90"}})
	for range 2 {
		if w := p.post("owner", where+"services/new", form); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), where+"services/srv_") {
			t.Fatalf("%d to %s", w.Code, w.Header().Get("Location"))
		}
	}
	list := p.written()
	if len(list) != 2 {
		t.Fatalf("%d calls", len(list))
	}
	key := form.Get("once")
	for _, c := range list {
		if c.ID != "createService" || len(key) < 20 || c.Header.Get("Idempotency-Key") != key || c.Header.Get("Prefer") != "handling=strict" || c.Header.Get("If-Match") != "" {
			t.Errorf("%s %v", c.ID, c.Header)
		}
		if got := fmt.Sprint(c.body(t)); got != "map[active:true duration_minutes:90 name:Boat tour unit_ids:[]]" {
			t.Error(got)
		}
	}
	if other := p.fill("owner", where+"services/new", nil); other.Get("once") == key {
		t.Error("two forms have one key")
	}
}

// edits are changes of forms and the bodies that are sent for them: one for each kind of input.
var edits = []struct {
	page   string // resource and page
	change url.Values
	want   string // body as JSON; "" for no call
}{
	{"bookings/edit", nil, ""},
	{"customers/edit", nil, ""},
	{"leads/edit", nil, ""},
	{"quotes/edit", nil, ""},
	{"invoices/edit", nil, ""},
	{"services/edit", nil, ""},
	{"units/edit", nil, ""},
	{"packages/edit", nil, ""},
	{"holiday-rules/edit", nil, ""},
	{"endpoints/edit", nil, ""},
	{"bookings/edit", url.Values{"notes": {"Two\r\nlines"}}, `{"notes":"Two\nlines"}`},
	{"bookings/edit", url.Values{"guest_count": {"4"}}, `{"guest_count":4}`},
	{"bookings/edit", url.Values{"event_date": {"2027-07-05"}}, `{"event_date":"2027-07-05"}`},
	{"bookings/edit", url.Values{"metadata": {`{"order": "18"}`}}, `{"metadata":{"order":"18"}}`},
	{"bookings/edit", url.Values{"unit_id": {""}, "without_unit": {"true"}}, `{"unit_id":null}`},
	{"bookings/edit", url.Values{"customer_id": {"cu_01k00000000000000000000007"}}, `{"customer_id":"cu_01k00000000000000000000007"}`},
	{"quotes/edit", url.Values{"deposit_amount": {"12,5"}}, `{"deposit_amount":{"amount":1250,"currency":"USD"}}`},
	{"quotes/edit", url.Values{"expires_at": {"2027-03-14T03:30"}}, `{"expires_at":"2027-03-14T03:30:00-04:00"}`},
	{"quotes/edit", url.Values{"expires_at": {"2027-03-14T01:30"}}, `{"expires_at":"2027-03-14T01:30:00-05:00"}`},
	{"quotes/edit", url.Values{"expires_at": {"2027-11-07T03:00"}}, `{"expires_at":"2027-11-07T03:00:00-05:00"}`},
	{"holiday-rules/edit", url.Values{"multiplier_bps": {"112,5"}}, `{"multiplier_bps":11250}`},
	{"holiday-rules/edit", url.Values{"multiplier_bps": {"99.99 %"}}, `{"multiplier_bps":9999}`},
	{"holiday-rules/edit", url.Values{"applies_to": {"package_ids"}, "applies_to.package_ids": {"", "pkg_01k00000000000000000000001"}}, `{"applies_to":{"package_ids":["pkg_01k00000000000000000000001"]}}`},
	{"services/edit", url.Values{"active": nil}, `{"active":false}`},
	{"services/edit", url.Values{"unit_ids": {"", "un_01k00000000000000000000001"}}, `{"unit_ids":["un_01k00000000000000000000001"]}`},
	{"units/edit", url.Values{"service_ids": {""}}, `{"service_ids":[]}`},
	{"units/edit", url.Values{"opening_hours.always": nil, "opening_hours.mon": {"09:00 – 12:00, 13:00-17:00"}}, `{"opening_hours":{"mon":[["09:00","12:00"],["13:00","17:00"]]}}`},
	{"packages/edit", url.Values{"deposit_type": {"flat"}, "deposit_value": {"7,25"}}, `{"deposit_type":"flat","deposit_value":725}`},
	{"packages/edit", url.Values{"deposit_type": {"percentage"}, "deposit_value": {"7,25"}}, `{"deposit_value":725}`},
	{"packages/edit", url.Values{"base_price": {"99,5"}}, `{"base_price":{"amount":9950,"currency":"USD"}}`},
	{"packages/edit", url.Values{"base_price": {"1,234.50"}}, `{"base_price":{"amount":123450,"currency":"USD"}}`},
}

// hoursOnly are the initial opening hours of the unit in the tests: null, so that only the changed hours are sent.
var hoursOnly = map[string]any{"opening_hours": nil}

// TestEditSendsChanges checks that a form sends only the changed fields, for the version that the form showed.
func TestEditSendsChanges(t *testing.T) {
	t.Parallel()
	for _, tc := range edits {
		t.Run(tc.page+" "+tc.want, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, options{})
			p.setResponse("getUnit", func(c call) response { return response{http.StatusOK, exampleObject(t, "getUnit", hoursOnly)} })
			p.setResponse("getQuote", func(c call) response {
				return response{http.StatusOK, exampleObject(t, "getQuote", map[string]any{"status": "draft"})}
			})
			name, _, _ := strings.Cut(tc.page, "/")
			path := address("alpha", "test", "/"+name+"/:id/edit")
			form := p.fill("owner", path, tc.change)
			if w := p.post("owner", path, form); w.Code != http.StatusSeeOther {
				t.Fatalf("%d: %s", w.Code, alerts(parse(t, w.Body.String())))
			}
			if tc.want == "" {
				if n := len(p.written()); n != 0 {
					t.Errorf("an unchanged form sends %s", p.written()[0].Body)
				}
				return
			}
			c := p.only(t)
			if string(c.Body) != tc.want {
				t.Errorf("%s, want %s", c.Body, tc.want)
			}
			if v := form.Get("version"); v == "" || c.Header.Get("If-Match") != `"`+v+`"` || c.Header.Get("Prefer") != "handling=strict" || c.Header.Get("Idempotency-Key") != form.Get("once") {
				t.Errorf("%v", c.Header)
			}
		})
	}
}

// TestEditLineItems checks that rows of line items are added, changed, and removed. Empty rows are ignored.
func TestEditLineItems(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := address("alpha", "test", "/invoices/:id/edit")
	form := p.fill("owner", path, nil)
	rows := 0
	for form.Has(fmt.Sprintf("line_items.%d.description", rows)) {
		rows++
	}
	items := 0
	for items < rows && form.Get(fmt.Sprintf("line_items.%d.description", items)) != "" {
		items++
	}
	if rows != items+3 || items == 0 {
		t.Fatalf("%d rows for %d items", rows, items)
	}
	form.Set("line_items.0.description", "")
	form.Set("line_items.0.unit_amount", "")
	last := fmt.Sprintf("line_items.%d.", rows-1)
	form.Set(last+"description", "Towel")
	form.Set(last+"quantity", "2")
	form.Set(last+"unit_amount", "3,50")
	if w := p.post("owner", path, form); w.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", w.Code, alerts(parse(t, w.Body.String())))
	}
	body := p.only(t).body(t)
	list, _ := body["line_items"].([]any)
	if len(body) != 1 || len(list) != items {
		t.Fatalf("%v", body)
	}
	got, _ := json.Marshal(list[len(list)-1])
	if string(got) != `{"description":"Towel","quantity":2,"unit_amount":{"amount":350,"currency":"USD"}}` {
		t.Errorf("%s", got)
	}
}

// TestRefusedFormPreservesInput checks that a service's field error is next to its input, and that the input stays.
func TestRefusedFormPreservesInput(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("createUnit", refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{"name": {"Must be shorter, it is."}, "tenant": {"Has too many units, it has."}}))
	form := p.fill("owner", where+"units/new", url.Values{"name": {"Boat <1>"}, "description": {"A\r\nB"}, "opening_hours.mon": {"09:00-12:00"}, "opening_hours.always": nil})
	w := p.post("owner", where+"units/new", form)
	doc := parse(t, w.Body.String())
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(alerts(doc), "Has too many units, it has.") || !strings.Contains(alerts(doc), "Name: Must be shorter, it is.") {
		t.Errorf("%d: %q", w.Code, alerts(doc))
	}
	in := named(doc, "name")
	if attr(in, "aria-invalid") != "true" || !strings.Contains(attr(in, "aria-describedby"), "wrong-name") || !strings.Contains(w.Body.String(), `id="wrong-name" class="mt-1 text-sm text-error">Must be shorter, it is.<`) {
		t.Errorf("%v", in.Attr)
	}
	again := formOf(t, doc, where+"units/new")
	for _, name := range []string{"name", "description", "opening_hours.mon"} {
		if again.Get(name) != form.Get(name) {
			t.Errorf("%s is now %q", name, again.Get(name))
		}
	}
	if again.Get("once") == form.Get("once") {
		t.Error("the second try has the key of the first")
	}
}

// TestUnreadableForms checks that unreadable input is not sent to a service, and that the form shows the error.
func TestUnreadableForms(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for _, tc := range []struct{ page, field, value, says string }{
		{"packages", "base_price", "twelve", "Must be an amount in USD"},
		{"packages", "base_price", "1.234,50", "Must be an amount in USD"},
		{"packages", "base_price", "", "Is required."},
		{"holiday-rules", "multiplier_bps", "", "Is required."},
		{"holiday-rules", "multiplier_bps", "1.234", "Must be a percentage"},
		{"bookings", "metadata", "{", "Must be JSON"},
		{"bookings", "guest_count", "3.5", "Must be a whole number"},
		{"quotes", "expires_at", "tomorrow", "Must be a date with a time"},
		{"units", "opening_hours.mon", "9 to 5", "Must be times such as"},
		{"invoices", "line_items.0.unit_amount", "x", "Must be an amount"},
	} {
		path := address("alpha", "test", "/"+tc.page+"/:id/edit")
		form := p.fill("owner", path, url.Values{tc.field: {tc.value}})
		form.Del("opening_hours.always")
		w := p.post("owner", path, form)
		doc := parse(t, w.Body.String())
		if w.Code != http.StatusUnprocessableEntity || len(p.written()) != 0 || !strings.Contains(textOf(doc), tc.says) || formOf(t, doc, path).Get(tc.field) != tc.value {
			t.Errorf("%s of %s: %d, %d writes, %q: %s", tc.field, tc.page, w.Code, len(p.written()), formOf(t, doc, path).Get(tc.field), alerts(doc))
		}
	}
}

// TestSlotTaken checks that if a booking does not get its slot, the page shows which booking has the slot.
func TestSlotTaken(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("createBooking", refusal(http.StatusConflict, "slot_unavailable", nil))
	p.setResponse("updateBooking", refusal(http.StatusConflict, "slot_unavailable", nil))
	form := p.fill("owner", where+"bookings/new", url.Values{"customer_id": {"cu_01k00000000000000000000001"}, "unit_id": {"un_01k00000000000000000000001"}, "event_date": {"2027-03-01"}, "event_start_time": {"10:00"}, "event_end_time": {"11:00"}})
	moved := where + "bookings/bk_01k00000000000000000000001/move"
	for _, w := range []*struct {
		path string
		form url.Values
	}{{where + "bookings/new", form}, {moved, url.Values{"version": {"1"}, "unit_id": {"un_01k00000000000000000000002"}, "event_date": {"2027-03-01"}, "to": {where + "calendar"}}}} {
		p.forget()
		got := p.post("owner", w.path, w.form)
		says := alerts(parse(t, got.Body.String()))
		if got.Code != http.StatusConflict || !strings.Contains(says, "B-000009 09:00–11:00 (Grace Hopper)") {
			t.Errorf("%s: %d: %s", w.path, got.Code, says)
		}
		i := slices.IndexFunc(p.recordedCalls(), func(c call) bool { return c.ID == "listCalendar" })
		if i < 0 || p.recordedCalls()[i].Query.Get("unit_ids") != w.form.Get("unit_id") || p.recordedCalls()[i].Query.Get("from") != "2027-03-01" {
			t.Errorf("%s requests no calendar of the unit", w.path)
		}
	}
}

// TestSlotClosed checks that if a booking is refused because of a closure, the page names the closures of the unit on that day.
func TestSlotClosed(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("createBooking", refusal(http.StatusConflict, "slot_unavailable", nil))
	closure := func(name string, units ...string) map[string]any {
		out := map[string]any{"id": "cl_1", "name": name, "unit_ids": nil, "starts_at": "2027-03-01T05:00:00Z", "ends_at": "2027-03-02T05:00:00Z"}
		if units != nil {
			out["unit_ids"] = units
		}
		return out
	}
	p.setResponse("listCalendar", object(map[string]any{"data": []any{}, "timezone": "America/New_York", "truncated": false, "closures": []any{
		closure("Winter break"), closure("Engine check", "un"+oneID), closure("Paint", "un_other"),
	}}))
	form := p.fill("owner", where+"bookings/new", url.Values{"customer_id": {"cu" + oneID}, "unit_id": {"un" + oneID}, "event_date": {"2027-03-01"}})
	got := p.post("owner", where+"bookings/new", form)
	if says := alerts(parse(t, got.Body.String())); got.Code != http.StatusConflict || !strings.Contains(says, "Closed by: Winter break, Engine check.") {
		t.Errorf("%d: %s", got.Code, says)
	}
}

// TestChangedMeanwhile checks that a concurrent change by another operator is not overwritten: the form reports it and retains the
// version that it showed.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("getBooking", object(exampleObject(t, "getBooking", map[string]any{"version": 7})))
	p.setResponse("updateBooking", refusal(http.StatusPreconditionFailed, "version_mismatch", nil))
	path := address("alpha", "test", "/bookings/:id/edit")
	form := p.fill("owner", path, url.Values{"notes": {"Mine"}, "version": {"1"}})
	w := p.post("owner", path, form)
	doc := parse(t, w.Body.String())
	says := alerts(doc)
	if w.Code != http.StatusPreconditionFailed || says == "" || strings.Contains(says, "It is refused") {
		t.Errorf("%d: %q", w.Code, says)
	}
	if again := formOf(t, doc, path); again.Get("version") != "1" || again.Get("notes") != "Mine" || p.only(t).Header.Get("If-Match") != `"1"` {
		t.Errorf("%v", again)
	}
}

// TestDangerousNeedsAFreshSignIn checks that dangerous actions require the password again if it was not entered recently. Until
// then, nothing is sent.
func TestDangerousNeedsAFreshSignIn(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"customers/cu_01k00000000000000000000001/erase", "invoices/inv_01k00000000000000000000001/credit", "endpoints/we_01k00000000000000000000001/rotate", "refunds/new",
		"owed-refunds/rfo_01k00000000000000000000001/retry", "owed-refunds/rfo_01k00000000000000000000001/close", "members/new", "members/op_01k00000000000000000000001/role", "members/op_01k00000000000000000000001/remove", "apps/app_01k00000000000000000000001/delete",
		"keys/key_01k00000000000000000000001/replace", "gateway", "gateway/disconnect", "policy", "business", "apps/new", "grants/gr_01k00000000000000000000001/withdraw",
		"feeds/new", "feeds/cf_01k00000000000000000000001/delete", "endpoints/new", "endpoints/we_01k00000000000000000000001/edit",
		"endpoints/we_01k00000000000000000000001/replay", "endpoints/we_01k00000000000000000000001/disable", "endpoints/we_01k00000000000000000000001/delete",
	} {
		p := newPlatform(t, options{})
		form := p.fill("owner", where+path, nil)
		if strings.HasSuffix(path, "/credit") {
			form.Set("amount", "1")
		}
		for name, value := range map[string]string{"email": "ben@example.com", "name": "Ben", "role": "viewer", "publishable_key": "pk_test_1", "secret_key": "sk_test_1"} {
			if form.Has(name) {
				form.Set(name, value)
			}
		}
		for name, value := range map[string]string{ // only some of the forms have these
			"url": "https://hooks.example/x", "description": "Another", "note": "In cash", "redirect_uris": "https://app.example/", "min_notice_minutes": "7",
			"from": "2027-01-01T00:00", "to": "2027-01-02T00:00",
		} {
			if form.Has(name) {
				form.Set(name, value)
			}
		}
		if path == "endpoints/new" {
			form.Set("event_types", "*")
		}
		if path == "apps/new" {
			form.Set("scopes", "read:bookings")
		}
		if path == "refunds/new" {
			form.Set("payment_intent_id", "pi_01k00000000000000000000001")
		}
		old := p.signIn("owner", tenant(alpha, "alpha", "owner"))
		old.SignedInAt = noon.Add(-15 * time.Minute)
		w := p.post("owner", where+path, form)
		to := where + path + "?" + url.Values{"draft": {"1"}, "once": {form.Get("once")}}.Encode()
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/oauth/sign-in?to="+url.QueryEscape(to) || len(p.written()) != 0 {
			t.Errorf("%s: %d to %s, %d writes", path, w.Code, w.Header().Get("Location"), len(p.written()))
		}
		fresh := p.signIn("owner", tenant(alpha, "alpha", "owner"))
		fresh.SignedInAt = noon.Add(-14 * time.Minute)
		if w := p.post("owner", where+path, form); w.Code >= http.StatusBadRequest || strings.HasPrefix(w.Header().Get("Location"), "/oauth") || len(p.written()) != 1 {
			t.Errorf("%s with a fresh sign-in: %d to %s, %d writes", path, w.Code, w.Header().Get("Location"), len(p.written()))
		}
	}
}

// TestCustomerByName checks that a customer can be identified by an e-mail address or by a unique customer name.
func TestCustomerByName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"cu_01k00000000000000000000007 Ada Lovelace": "", "Ada Lovelace, ada@example.com cu_01k00000000000000000000007": "", "Ada Lovelace, ada@example.com": "email", "ada@example.com": "email", "Ada": "q"} {
		p := newPlatform(t, options{})
		one := exampleObject(t, "getCustomer", map[string]any{"id": "cu_01k00000000000000000000007"})
		p.setResponse("listCustomers", object(map[string]any{"data": []any{one}, "has_more": false}))
		form := p.fill("owner", where+"bookings/new", url.Values{"customer_id": {text}, "event_date": {"2027-05-01"}})
		if w := p.post("owner", where+"bookings/new", form); w.Code != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", text, w.Code, alerts(parse(t, w.Body.String())))
		}
		if id := p.only(t).body(t)["customer_id"]; id != "cu_01k00000000000000000000007" {
			t.Errorf("%s is %v", text, id)
		}
		for _, c := range p.recordedCalls() {
			if c.ID == "listCustomers" && c.Query.Get(want) != strings.TrimPrefix(text, "Ada Lovelace, ") {
				t.Errorf("%s is looked up by %v", text, c.Query)
			}
		}
		p.setResponse("listCustomers", object(map[string]any{"data": []any{one, one}, "has_more": true}))
		p.forget()
		if w := p.post("owner", where+"bookings/new", form); want != "" && (w.Code != http.StatusUnprocessableEntity || len(p.written()) != 0) {
			t.Errorf("%s of two: %d", text, w.Code)
		}
	}
}

// TestFormsPreserveUnlistedChoices checks that a form retains its selected values when the choices no longer contain them: an
// inactive unit or a deleted package.
func TestFormsPreserveUnlistedChoices(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for _, op := range []string{"listServices", "listUnits", "listPackages"} {
		p.setResponse(op, object(map[string]any{"data": []any{}, "has_more": false}))
	}
	selected := map[string]map[string]any{
		"bookings": nil, "packages": {"unit_ids": []string{"un_01k00000000000000000000001", "un_01k00000000000000000000002"}}, "services": {"unit_ids": []string{"un_01k00000000000000000000001"}},
		"units": {"service_ids": []string{"srv_01k00000000000000000000001"}}, "holiday-rules": {"applies_to": map[string]any{"package_ids": []string{"pkg_01k00000000000000000000001"}}},
	}
	for name, changed := range selected {
		r := domain.ResourceNamed(name)
		p.setResponse(r.Get, object(exampleObject(t, r.Get, changed)))
		path := address("alpha", "test", "/"+name+"/:id/edit")
		w := p.post("owner", path, p.fill("owner", path, nil))
		if list := p.written(); w.Code != http.StatusSeeOther || len(list) != 0 {
			t.Errorf("%s: %d, %d writes", name, w.Code, len(list))
			for _, c := range list {
				t.Errorf("an unchanged form sends %s", c.Body)
			}
		}
	}
}

// TestKeysRequireThePassword checks that an operator who entered their password long ago must enter it again before they create or
// revoke an API key, and that the secret is shown only once.
func TestKeysRequireThePassword(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form := url.Values{"name": {"Till"}, "scopes": {"read:bookings"}}
	w := p.post("owner", "/admin/alpha/test/keys/new", form)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "svc_test_secret") || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", w.Code, w.Header())
	}
	if written := p.written(); len(written) != 1 || string(written[0].Body) != `{"name":"Till","scopes":["read:bookings"]}` {
		t.Errorf("%+v", written)
	}
	if w := p.get("owner", "/admin/alpha/test/keys"); strings.Contains(w.Body.String(), "svc_test_secret") {
		t.Error("the secret is shown again")
	}
	p.forget()
	s := p.signIn("owner", tenant(alpha, "alpha", "owner"))
	s.SignedInAt = noon.Add(-time.Hour)
	for _, path := range []string{"/admin/alpha/test/keys/new", "/admin/alpha/test/keys/key_01k00000000000000000000001/revoke"} {
		for _, w := range []*httptest.ResponseRecorder{p.get("owner", path), p.post("owner", path, form)} {
			if to, _, _ := strings.Cut(w.Header().Get("Location"), url.QueryEscape("?once=")); w.Code != http.StatusSeeOther || to != "/oauth/sign-in?to="+url.QueryEscape(path) {
				t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Location"))
			}
		}
	}
	if written := p.written(); len(written) != 0 {
		t.Errorf("%+v", written)
	}
}
