package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// saved sends the form of a page with some values. It returns the one write that the form caused and the response.
func (p *platform) saved(t *testing.T, path string, values url.Values) (c call, page string) {
	t.Helper()
	w := p.post("owner", where+path, p.fill("owner", where+path, values))
	if w.Code >= http.StatusBadRequest {
		t.Fatalf("%s: %d: %s", path, w.Code, alerts(parse(t, w.Body.String())))
	}
	return p.only(t), w.Body.String()
}

// TestSecretsAreShownOnce checks that a secret is shown only on the page after its creation, and that this page is not cached.
func TestSecretsAreShownOnce(t *testing.T) {
	t.Parallel()
	for path, values := range map[string]url.Values{
		"keys/new":                      {"name": {"Till"}, "scopes": {"read:bookings"}},
		"keys/key" + oneID + "/replace": {"overlap_seconds": {"3600"}},
		"members/new":                   {"email": {"ben@example.com"}, "name": {"Ben"}, "role": {"staff"}},
	} {
		p := newPlatform(t, options{})
		w := p.post("owner", where+path, p.fill("owner", where+path, values))
		shown := ""
		for _, n := range all(parse(t, w.Body.String()), "input") {
			if attr(n, "id") == "secret" {
				shown = attr(n, "value")
			}
		}
		want := "svc_test_secret"
		if strings.HasPrefix(path, "members") {
			want = "http://console.test/oauth/link/linksecret"
		}
		if w.Code != http.StatusOK || shown != want || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, %q, %q", path, w.Code, shown, w.Header().Get("Cache-Control"))
		}
		if strings.HasPrefix(path, "keys") && !strings.Contains(w.Body.String(), "export HOLDFAST_KEY=svc_test_secret") {
			t.Errorf("%s does not show how to try the key", path)
		}
		for _, again := range []string{"keys", "keys/key" + oneID, "members", "quickstart"} {
			if strings.Contains(p.get("owner", where+again).Body.String(), "secret_") || strings.Contains(p.get("owner", where+again).Body.String(), "linksecret") {
				t.Errorf("%s is on %s again", path, again)
			}
		}
	}
}

// TestQuickStartWithAKey checks that the quick start shows its calls with a suitable key, which a click creates, and does not show
// the key again.
func TestQuickStartWithAKey(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form := formOf(t, parse(t, p.get("owner", where+"quickstart").Body.String()), where+"quickstart")
	w := p.post("owner", where+"quickstart", form)
	sent := p.only(t)
	if want := []any{"payments:read", "read:bookings", "read:customers", "read:invoices", "read:leads", "read:quotes", "read:webhooks", "write:customers"}; sent.ID != "createApiKey" ||
		!slices.Equal(sent.body(t)["scopes"].([]any), want) || sent.Header.Get("Idempotency-Key") != form.Get("once") || form.Get("once") == "" {
		t.Errorf("%s %s, key %q", sent.ID, sent.Body, sent.Header.Get("Idempotency-Key"))
	}
	if page := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(page, "export HOLDFAST_KEY=svc_test_secret\n") && !strings.Contains(page, "export HOLDFAST_KEY=svc_test_secret<") || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", w.Code, textOf(parse(t, page)))
	}
	if page := p.get("owner", where+"quickstart").Body.String(); strings.Contains(page, "svc_test_secret") || !strings.Contains(page, "export HOLDFAST_KEY=svc_test_…") {
		t.Error("the key is shown again")
	}
	if page := p.get("staff", where+"quickstart").Body.String(); strings.Contains(page, `action="`+where+`quickstart"`) {
		t.Error("staff is offered a key")
	}
	p.signIn("owner", tenant(alpha, "alpha", "owner")).SignedInAt = noon.Add(-16 * time.Minute)
	p.forget()
	if w := p.post("owner", where+"quickstart", form); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/oauth/sign-in") || len(p.written()) > 0 {
		t.Errorf("without the password: %d %s", w.Code, w.Header().Get("Location"))
	}
}

// TestInvitationWithoutALink checks that the list explains how a person gets access if there is no link to hand over.
func TestInvitationWithoutALink(t *testing.T) {
	t.Parallel()
	for delivery, want := range map[string]string{
		"none": "sign in with their existing password", "mailed": "We sent them an email", "failed": "could not be sent",
	} {
		p := newPlatform(t, options{})
		p.setResponse("inviteMember", func(call) response {
			return response{http.StatusCreated, map[string]any{"member": member(), "delivery": delivery, "link_token": nil}}
		})
		w := p.post("owner", where+"members/new", p.fill("owner", where+"members/new", url.Values{"email": {"ben@example.com"}, "name": {"Ben"}, "role": {"admin"}}))
		to := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || to != where+"members?done=invited_"+delivery {
			t.Errorf("%d to %s", w.Code, to)
		}
		if got := string(p.only(t).Body); got != `{"email":"ben@example.com","name":"Ben","role":"admin"}` {
			t.Error(got)
		}
		page := p.get("owner", to).Body.String()
		if failed := strings.Contains(page, `role="alert"`); !strings.Contains(page, want) || failed != (delivery == "failed") {
			t.Errorf("%s: said %t, as a problem %t", delivery, strings.Contains(page, want), failed)
		}
	}
}

// TestInternalForms checks that the forms of settings send the changes in the format of the internal contract.
func TestInternalForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path   string
		values url.Values
		id     string
		want   string
	}{
		{"keys/new", url.Values{"name": {"Till"}, "scopes": {"", "read:bookings", "write:bookings"}}, "createApiKey", `{"name":"Till","scopes":["read:bookings","write:bookings"]}`},
		{"keys/key" + oneID + "/replace", nil, "rotateApiKey", `{"overlap_seconds":86400}`},
		{"members/op" + oneID + "/role", url.Values{"role": {"viewer"}}, "changeMember", `{"role":"viewer"}`},
		{
			"apps/new",
			url.Values{"name": {"Till"}, "redirect_uris": {"https://a.example/\r\n\r\nhttps://b.example/ "}, "scopes": {"read:units"}},
			"createApp",
			`{"browser_origins":[],"name":"Till","published":false,"redirect_uris":["https://a.example/","https://b.example/"],"scopes":["read:units"]}`,
		},
		{"apps/app" + oneID + "/edit", url.Values{"browser_origins": {"https://a.example"}}, "updateApp", `{"browser_origins":["https://a.example"]}`},
		{
			"business",
			url.Values{"bank_account_number": {"DE89 3704 0044 0532 0130 00"}, "bank_code": {"COBADEFFXXX"}, "locale": {"de"}},
			"updateTenant",
			`{"bank_account_number":"DE89 3704 0044 0532 0130 00","bank_code":"COBADEFFXXX","locale":"de"}`,
		},
		{"business", url.Values{"legal_name": {"Alpha GmbH"}, "country": {""}}, "updateTenant", `{"country":null,"legal_name":"Alpha GmbH"}`},
		{
			"policy",
			url.Values{"hold_ttl_minutes": {""}, "refund_rules.1.hours_before": {"24"}, "refund_rules.1.percent": {"20"}},
			"updateTenant",
			`{"hold_ttl_minutes":null,"refund_rules":[{"hours_before":48,"percent":50},{"hours_before":24,"percent":20}]}`,
		},
		{"policy", url.Values{"refund_rules.0.hours_before": {""}, "refund_rules.0.percent": {""}}, "updateTenant", `{"refund_rules":null}`},
		{"gateway", url.Values{"publishable_key": {"pk_test_2"}, "secret_key": {"sk_test_2"}}, "connectGatewayAccount", `{"publishable_key":"pk_test_2","secret_key":"sk_test_2"}`},
		{"clock", url.Values{"to": {"day"}}, "setTestClock", `{"now":"2027-03-03T11:15:00-05:00"}`},
		{"clock", url.Values{"to": {"hour"}}, "setTestClock", `{"now":"2027-03-02T12:15:00-05:00"}`},
		{"clock", url.Values{"now": {"2027-04-01T09:00"}}, "setTestClock", `{"now":"2027-04-01T09:00:00-04:00"}`},
		{"clock", url.Values{"to": {"real"}}, "deleteTestClock", ""},
		{"gateway/disconnect", nil, "disconnectGatewayAccount", ""},
		{"grants/gr" + oneID + "/withdraw", nil, "revokeGrant", ""},
	} {
		p := newPlatform(t, options{})
		p.setResponse("getTestClock", object(map[string]any{"object": "test_clock", "now": "2027-03-02T16:15:00Z", "frozen": true}))
		got, _ := p.saved(t, c.path, c.values)
		if got.ID != c.id || strings.TrimSpace(string(got.Body)) != c.want {
			t.Errorf("%s: %s %s, want %s %s", c.path, got.ID, got.Body, c.id, c.want)
		}
	}
}

// TestTestClockAcrossDaylightSaving checks that the days of the test clock are those of the tenant's calendar: the day on which
// clocks go forward has 23 hours.
func TestTestClockAcrossDaylightSaving(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("getTestClock", object(map[string]any{"object": "test_clock", "now": "2027-03-13T15:00:00Z", "frozen": true}))
	got, _ := p.saved(t, "clock", url.Values{"to": {"day"}})
	if string(got.Body) != `{"now":"2027-03-14T10:00:00-04:00"}` {
		t.Errorf("%s", got.Body)
	}
	p.forget()
	p.setResponse("getTestClock", object(map[string]any{"object": "test_clock", "now": "2027-11-07T05:30:00Z", "frozen": true}))
	if got, _ := p.saved(t, "clock", url.Values{"to": {"hour"}}); string(got.Body) != `{"now":"2027-11-07T01:30:00-05:00"}` {
		t.Errorf("an hour in the hour that comes twice: %s", got.Body)
	}
	if w := p.get("owner", "/admin/alpha/live/clock"); w.Code != http.StatusNotFound {
		t.Errorf("live: %d", w.Code)
	}
	p.forget()
	if w := p.post("owner", "/admin/alpha/live/clock", url.Values{"to": {"day"}}); w.Code != http.StatusNotFound || len(p.recordedCalls()) != 0 {
		t.Errorf("live: %d, %d calls", w.Code, len(p.recordedCalls()))
	}
}

// TestPolicyPreview checks that the preview describes a policy in words without saving it, and that the input stays.
func TestPolicyPreview(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form := p.fill("owner", where+"policy", url.Values{
		"try": {"true"}, "auto_confirm": {"true"}, "min_notice_minutes": {"60"}, "max_advance_days": {"30"}, "refund_rules.0.percent": {"70"},
	})
	w := p.post("owner", where+"policy", form)
	doc := parse(t, w.Body.String())
	text := textOf(doc)
	for _, want := range []string{
		"New bookings are confirmed immediately.", "The earliest start of a booking created now is 1 March 2027, 13:00.", "The latest day that can be booked now is 31 March 2027.",
		"If a booking is cancelled at least 48 hours before the start, 70% of the amount paid is refunded.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if w.Code != http.StatusOK || len(p.written()) != 0 || formOf(t, doc, where+"policy").Get("max_advance_days") != "30" {
		t.Errorf("%d, %d writes", w.Code, len(p.written()))
	}
	form.Set("min_notice_minutes", "soon")
	if w := p.post("owner", where+"policy", form); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "Must be a whole number.") {
		t.Errorf("%d", w.Code)
	}
}

// TestGatewayKeysAreNotEchoed checks that no page contains the secret key of a payment gateway, not even the form that was
// rejected with it.
func TestGatewayKeysAreNotEchoed(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("connectGatewayAccount", refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{"secret_key": {"The payment gateway does not accept the key."}}))
	w := p.post("owner", where+"gateway", p.fill("owner", where+"gateway", url.Values{"publishable_key": {"pk_test_2"}, "secret_key": {"sk_test_neverseen"}, "webhook_secret": {"whsec_neverseen"}}))
	if w.Code != http.StatusUnprocessableEntity || strings.Contains(w.Body.String(), "neverseen") || !strings.Contains(w.Body.String(), "does not accept the key") {
		t.Errorf("%d", w.Code)
	}
	p.setResponse("getGatewayAccount", refusal(http.StatusNotFound, "gateway_account_not_found", nil))
	if w := p.get("owner", where+"gateway"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "No payment gateway is connected") || strings.Contains(w.Body.String(), "gateway/disconnect") {
		t.Errorf("%d", w.Code)
	}
}

// TestSavedViews checks that the filters of a list are saved under a name and can be opened again. The form accepts only the name
// of a list.
func TestSavedViews(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	doc := parse(t, p.get("viewer", where+"bookings?status=pending&cursor=x").Body.String())
	form := formOf(t, doc, where+"views")
	form.Set("name", "Open ones")
	p.forget()
	w := p.post("viewer", where+"views", form)
	if got := string(p.only(t).Body); w.Header().Get("Location") != where+"bookings?done=view_saved&status=pending" || got != `{"list":"bookings","name":"Open ones","query":"status=pending"}` {
		t.Errorf("%s to %s", got, w.Header().Get("Location"))
	}
	links := all(doc, "a")
	if !slices.ContainsFunc(links, func(n *html.Node) bool {
		return attr(n, "href") == where+"bookings?status=pending" && textOf(n) == "Open"
	}) {
		t.Error("the saved view is not offered")
	}
	for _, bad := range []url.Values{{"list": {"//evil.example"}, "name": {"x"}}, {"list": {"none"}}, {"list": {"bookings"}, "query": {"%zz"}}} {
		p.forget()
		if w := p.post("viewer", where+"views", bad); w.Code < http.StatusBadRequest || len(p.written()) != 0 {
			t.Errorf("%v: %d", bad, w.Code)
		}
	}
	if w := p.post("viewer", where+"views/view"+oneID+"/delete", url.Values{"list": {"bookings"}}); w.Header().Get("Location") != where+"bookings?done=view_deleted" {
		t.Errorf("%d to %s", w.Code, w.Header().Get("Location"))
	}
	p.setResponse("listViews", refusal(http.StatusServiceUnavailable, "service_unavailable", nil))
	if w := p.get("viewer", where+"bookings"); w.Code != http.StatusOK {
		t.Errorf("without views: %d", w.Code)
	}
}

// TestAuditVerdict checks that the verification of the audit log reports whether its chain is valid, and where it breaks.
func TestAuditVerdict(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	w := p.post("admin", where+"audit/verify", nil)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "The chain is intact: 12 records") || !strings.Contains(w.Body.String(), "ab12") {
		t.Errorf("%d %s", w.Code, textOf(parse(t, w.Body.String())))
	}
	p.setResponse("verifyAudit", object(map[string]any{"records": 3, "head": map[string]any{"sequence": 3, "hash": "cd"}, "broken": "record 4 was changed"}))
	if w := p.post("admin", where+"audit/verify", nil); !strings.Contains(w.Body.String(), "The chain is broken: record 4 was changed") {
		t.Errorf("%s", textOf(parse(t, w.Body.String())))
	}
}

// TestTimeline checks that an event and its record in the audit log appear as one line, with the actor. Records without an event
// are separate lines. The events of the chain are included.
func TestTimeline(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	quote := "qt" + oneID
	p.setResponse("getBooking", object(exampleObject(t, "getBooking", map[string]any{"id": "bk" + oneID, "quote_id": quote, "lead_id": nil, "invoice_ids": []any{}})))
	at := func(minute string) string { return "2027-02-01T14:" + minute + ":00.123456Z" }
	p.setResponse("listEvents", func(c call) response {
		event := map[string]any{"id": "evt_1", "type": "booking.updated", "created_at": at("30"), "data": map[string]any{"previous_attributes": map[string]any{"notes": "x"}}}
		if c.Query.Get("object_id") == quote {
			event = map[string]any{"id": "evt_2", "type": "quote.accepted", "created_at": at("20"), "data": map[string]any{}}
		}
		return response{http.StatusOK, map[string]any{"data": []any{event}, "has_more": false}}
	})
	p.setResponse("listAudit", func(c call) response {
		record := func(action, minute, actor string) any {
			return map[string]any{"sequence": 1, "at": "2027-02-01T14:" + minute + ":00Z", "action": action, "actor": actor, "object": c.Query.Get("object"), "before": nil, "after": map[string]any{"fields": []any{"notes"}}}
		}
		list := []any{}
		if c.Query.Get("object") != quote {
			list = []any{record("booking.updated", "30", "op"+oneID), record("booking.created", "10", "svc:customers")}
		}
		return response{http.StatusOK, map[string]any{"data": list, "next_cursor": nil}}
	})
	text := textOf(parse(t, p.get("owner", where+"bookings/bk"+oneID).Body.String()))
	updated, accepted, created := strings.Index(text, "booking.updated"), strings.Index(text, "quote.accepted"), strings.Index(text, "booking.created")
	if updated < 0 || accepted < updated || created < accepted || strings.Count(text, "booking.updated") != 1 || !strings.Contains(text[updated:accepted], "Olive") || !strings.Contains(text[created:], "System") {
		t.Errorf("%d %d %d: %s", updated, accepted, created, text[max(updated, 0):])
	}
	const requests = `href="` + where + `requests?object_id=bk` + oneID + `"`
	for role, shown := range map[string]bool{"owner": true, "staff": false} {
		if strings.Contains(p.get(role, where+"bookings/bk"+oneID).Body.String(), requests) != shown {
			t.Errorf("%s: the link to the API requests is not shown: %v", role, shown)
		}
	}
	if staff := textOf(parse(t, p.get("staff", where+"bookings/bk"+oneID).Body.String())); !strings.Contains(staff, "booking.created") || strings.Contains(staff, "quote.accepted") {
		t.Error("staff may read no events, and what happened to the booking by the audit log")
	}
}

// TestResize checks that dragging the end of a booking changes only the end: its start and its unit stay.
func TestResize(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form := url.Values{"version": {"3"}, "unit_id": {"un_01k00000000000000000000009"}, "event_date": {"2027-03-09"}, "start": {"12:45"}, "grip": {"end"}, "to": {where + "calendar?view=day"}}
	w := p.post("staff", where+"bookings/bk"+oneID+"/move", form)
	got := p.only(t)
	if string(got.Body) != `{"event_end_time":"12:45"}` || got.Header.Get("If-Match") != `"3"` || w.Header().Get("Location") != where+"calendar?view=day&done=moved" {
		t.Errorf("%s %s %s", got.Body, got.Header.Get("If-Match"), w.Header().Get("Location"))
	}
}

// TestAvailabilityExplains checks that a taken slot shows the reason, and that a free one links to the form that books it.
func TestAvailabilityExplains(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	w := p.get("viewer", where+"availability?date=2027-07-03&unit_id=un"+oneID+"&at=2027-07-03T09:00")
	if !strings.Contains(w.Body.String(), "A confirmed booking occupies this time.") {
		t.Errorf("%d %s", w.Code, textOf(parse(t, w.Body.String())))
	}
	i := slices.IndexFunc(p.recordedCalls(), func(c call) bool { return c.ID == "explainAvailability" })
	if i < 0 || p.recordedCalls()[i].Query.Get("starts_at") != "2027-07-03T09:00:00-04:00" {
		t.Errorf("%+v", p.recordedCalls())
	}
	if !strings.Contains(p.get("staff", where+"availability?date=2027-07-03").Body.String(), "event_start_time=09%3A00&amp;unit_id=un"+oneID) {
		t.Error("a free slot does not lead to its booking")
	}
	if w := p.get("viewer", where+"availability?at=x&unit_id=un"+oneID); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Enter a date and time.") {
		t.Errorf("%d", w.Code)
	}
}

// TestPrices checks that a year of prices shows each day with the deciding rule.
func TestPrices(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	text := textOf(parse(t, p.get("viewer", where+"prices?package_id=pkg"+oneID+"&year=2028").Body.String()))
	if !strings.Contains(text, "New Year, 125%") || !strings.Contains(text, "Prices in USD") || !strings.Contains(text, "125New Year") && !strings.Contains(text, "125 New Year") {
		t.Error(text)
	}
	i := slices.IndexFunc(p.recordedCalls(), func(c call) bool { return c.ID == "listPackagePrices" })
	if q := p.recordedCalls()[i].Query; q.Get("from") != "2028-01-01" || q.Get("to") != "2028-12-31" {
		t.Errorf("%v", q)
	}
}
