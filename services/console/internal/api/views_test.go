package api_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"holdfast.dev/services/console/internal/domain"
)

// firstCall returns the first call of an operation since the last forget.
func (p *platform) firstCall(t *testing.T, operation string) call {
	t.Helper()
	all := p.recordedCalls()
	i := slices.IndexFunc(all, func(c call) bool { return c.ID == operation })
	if i < 0 {
		t.Fatalf("%s is not called", operation)
	}
	return all[i]
}

// TestNavigation checks that the navigation contains only the pages that the role can see: all pages for an owner, no settings and
// no keys for a viewer.
func TestNavigation(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	links := func(role, mode string) (out []string) {
		for _, n := range all(parse(t, p.get(role, "/admin/alpha/"+mode+"/search").Body.String()), "aside") {
			for _, a := range all(n, "a") {
				out = append(out, strings.TrimPrefix(attr(a, "href"), "/admin/alpha/"+mode+"/"))
			}
		}
		return out
	}
	for role, want := range map[string]string{
		"owner": "today calendar bookings customers leads quotes invoices credit-notes payments refunds services units packages holiday-rules closures availability prices " +
			"endpoints events requests feeds keys apps grants quickstart clock members audit /oauth/account business policy gateway",
		"staff":  "today calendar bookings customers leads quotes invoices credit-notes payments refunds services units packages holiday-rules closures availability prices feeds quickstart clock /oauth/account",
		"viewer": "today calendar bookings customers leads quotes invoices credit-notes payments refunds services units packages holiday-rules closures availability prices feeds quickstart /oauth/account",
	} {
		if got := strings.Join(links(role, "test"), " "); got != want {
			t.Errorf("%s:\n%s, want\n%s", role, got, want)
		}
	}
	if got := links("owner", "live"); slices.Contains(got, "clock") {
		t.Error("live mode has no test clock")
	}
}

// TestCustomerOfALead checks that a quote for a lead without a customer creates the customer of the lead, once per form. A quote
// for another e-mail address does not.
func TestCustomerOfALead(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	lead := exampleObject(t, "getLead", map[string]any{"id": "ld" + oneID, "customer_id": nil, "email": "grace@example.com", "first_name": "Grace", "last_name": "Hopper", "phone": nil, "company": nil})
	p.setResponse("getLead", object(lead))
	p.setResponse("listCustomers", object(map[string]any{"data": []any{}, "has_more": false}))
	path := where + "quotes/new?lead_id=ld" + oneID
	form := p.fill("staff", path, url.Values{"package_id": {"pkg" + oneID}, "event_date": {"2027-05-01"}})
	if form.Get("customer_id") != "grace@example.com" {
		t.Errorf("the form begins with %q", form.Get("customer_id"))
	}
	w := p.post("staff", path, form)
	written := p.written()
	if w.Code != http.StatusSeeOther || len(written) != 2 || written[0].ID != "createCustomer" || written[1].ID != "createQuote" {
		t.Fatalf("%d: %+v", w.Code, written)
	}
	if got := string(written[0].Body); got != `{"email":"grace@example.com","first_name":"Grace","last_name":"Hopper"}` || written[0].Header.Get("Idempotency-Key") != form.Get("once")+"-customer" {
		t.Errorf("%s %s", got, written[0].Header.Get("Idempotency-Key"))
	}
	if id := written[1].body(t)["customer_id"]; !strings.HasPrefix(fmt.Sprint(id), "cu_") {
		t.Errorf("the quote is for %v", id)
	}
	p.forget()
	form.Set("customer_id", "other@example.com")
	if w := p.post("staff", path, form); w.Code != http.StatusUnprocessableEntity || len(p.written()) != 0 {
		t.Errorf("%d, %d writes", w.Code, len(p.written()))
	}
	p.forget()
	lead["email"], lead["phone"] = nil, "+49 30 901820"
	if form = p.fill("staff", path, url.Values{"package_id": {"pkg" + oneID}, "event_date": {"2027-05-01"}}); form.Get("customer_id") != "+49 30 901820" {
		t.Errorf("the form begins with %q", form.Get("customer_id"))
	}
	p.post("staff", path, form)
	if written := p.written(); len(written) != 2 || string(written[0].Body) != `{"first_name":"Grace","last_name":"Hopper","phone":"+49 30 901820"}` {
		t.Errorf("%+v", written)
	}
	if searched := p.recordedCalls(); !slices.ContainsFunc(searched, func(c call) bool { return c.ID == "listCustomers" && c.Query.Get("phone") == "+49 30 901820" }) {
		t.Errorf("no search by phone: %+v", searched)
	}
	lead["customer_id"] = "cu_01k00000000000000000000005"
	if form := p.fill("staff", path, nil); form.Get("customer_id") != "Ada Lovelace" || form.Get("id_customer_id") != "cu_01k00000000000000000000005" {
		t.Errorf("the form begins with %q, %q", form.Get("customer_id"), form.Get("id_customer_id"))
	}
}

// TestCalendarPages checks that the calendar shows its units in pages of 50, and requests only the units of the selected service.
func TestCalendarPages(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	units := []any{}
	for i := range 101 {
		units = append(units, map[string]any{"id": fmt.Sprintf("un_01k%023d", i), "name": fmt.Sprintf("Unit %03d", i), "status": "active", "opening_hours": nil})
	}
	p.setResponse("listUnits", object(map[string]any{"data": units, "has_more": false}))
	doc := parse(t, p.get("viewer", where+"calendar?view=day&date=2027-03-01&page=2&service_id=srv"+oneID).Body.String())
	text := textOf(doc)
	if !strings.Contains(text, "Unit 100") || strings.Contains(text, "Unit 099") {
		t.Errorf("the third page: %s", text)
	}
	last := slices.ContainsFunc(all(doc, "a"), func(n *html.Node) bool {
		return strings.Contains(attr(n, "href"), "page=2") && attr(n, "aria-current") == "true"
	})
	if !last || strings.Contains(text, "page=3") {
		t.Error("the calendar has three pages")
	}
	if q := p.firstCall(t, "listCalendar").Query; q.Get("service_id") != "srv"+oneID || q.Get("from") != "2027-03-01" || q.Get("to") != "2027-03-01" {
		t.Errorf("%v", q)
	}
	p.forget()
	p.get("viewer", where+"calendar?view=fortnight&date=2027-03-03")
	if q := p.firstCall(t, "listCalendar").Query; q.Get("from") != "2027-03-01" || q.Get("to") != "2027-03-07" {
		t.Errorf("an unknown view is a week: %v", q)
	}
}

// TestCalendarClosures checks that the calendar links to the closures of each day, and that a day leads to the form that closes it,
// for a role that can.
func TestCalendarClosures(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("listUnits", object(map[string]any{"data": []any{map[string]any{"id": "un" + oneID, "name": "Ada", "status": "active"}}, "has_more": false}))
	p.setResponse("listCalendar", object(map[string]any{"data": []any{}, "timezone": "America/New_York", "truncated": false, "closures": []any{
		map[string]any{"id": "cl" + oneID, "name": "Winter break", "unit_ids": nil, "starts_at": "2027-03-02T05:00:00Z", "ends_at": "2027-03-03T05:00:00Z"},
		map[string]any{"id": "cl_of_ada", "name": "Engine check", "unit_ids": []string{"un" + oneID}, "starts_at": "2027-03-04T15:00:00Z", "ends_at": "2027-03-04T16:00:00Z"},
	}}))
	for _, span := range []string{"week", "month", "day"} {
		day := map[string]string{"day": "2027-03-02"}[span]
		doc := parse(t, p.get("admin", where+"calendar?view="+span+"&date="+cmp.Or(day, "2027-03-01")).Body.String())
		var links, closes []string
		for _, a := range all(doc, "a") {
			switch href := attr(a, "href"); {
			case strings.HasPrefix(href, where+"closures/cl"):
				links = append(links, href)
			case strings.HasPrefix(href, where+"closures/new"):
				closes = append(closes, href)
			}
		}
		if !slices.Contains(links, where+"closures/cl"+oneID) || span != "day" && (len(links) != 2 || links[1] != where+"closures/cl_of_ada") {
			t.Errorf("%s: links to closures %v", span, links)
		}
		if !slices.Contains(closes, where+"closures/new?date_from=2027-03-02&date_to=2027-03-02") || len(closes) != map[string]int{"day": 1, "week": 7, "month": 31}[span] {
			t.Errorf("%s: links that close a day %v", span, closes)
		}
	}
	if text := p.get("staff", where+"calendar?date=2027-03-01").Body.String(); strings.Contains(text, "closures/new") || !strings.Contains(text, "Winter break") {
		t.Error("a role that cannot close days sees the link, or does not see the closure")
	}
	if form := p.fill("admin", where+"closures/new?date_from=2027-03-02&date_to=2027-03-03", nil); form.Get("date_from") != "2027-03-02" || form.Get("date_to") != "2027-03-03" {
		t.Errorf("the form begins with %v", form)
	}
	p.setResponse("listCalendar", object(map[string]any{"data": []any{}, "timezone": "America/New_York", "truncated": false}))
	if text := p.get("viewer", where+"calendar?date=2027-03-01").Body.String(); !strings.Contains(text, "Ada") || strings.Contains(text, "Winter break") {
		t.Error("without closures, the calendar does not show its units")
	}
}

// TestDepartures checks that the calendar shows the bookings of a slot of a unit in seats mode as one departure with its seats, and that
// the page of the departure lists them and leads to the form for one more.
func TestDepartures(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	unit := exampleObject(t, "getUnit", map[string]any{"id": "un" + oneID, "name": "Walk", "booking_mode": "seats", "capacity": 10, "opening_hours": nil, "status": "active"})
	p.setResponse("listUnits", object(map[string]any{"data": []any{unit}, "has_more": false}))
	p.setResponse("getUnit", object(unit))
	var shown, listed []any
	statuses := []any{"confirmed", "pending", "cancelled", "completed", "no_show"}
	for i, guests := range []any{4, nil, 2, 2, 1} {
		b := calendarBooking()
		b["id"], b["number"], b["unit_id"], b["guest_count"], b["exclusive"] = fmt.Sprintf("bk_01k%023d", i), fmt.Sprintf("B-00000%d", i), "un"+oneID, guests, false
		if b["status"] = statuses[i]; b["status"] != "cancelled" { // the calendar has none
			shown = append(shown, b)
		}
		listed = append(listed, exampleObject(t, "getBooking", map[string]any{
			"id": b["id"], "number": b["number"], "status": statuses[i], "unit_id": "un" + oneID, "guest_count": guests, "exclusive": false,
			"starts_at": "2027-03-01T14:00:00Z",
		}))
	}
	later := exampleObject(t, "getBooking", map[string]any{"id": "bk_01k00000000000000000000007", "number": "B-000007", "unit_id": "un" + oneID, "starts_at": "2027-03-01T16:00:00Z"})
	p.setResponse("listCalendar", object(map[string]any{"data": shown, "timezone": "America/New_York", "truncated": false}))
	p.setResponse("listBookings", object(map[string]any{"data": append(listed, later), "has_more": false}))
	for _, span := range []string{"day", "week"} {
		doc := parse(t, p.get("viewer", where+"calendar?view="+span+"&date=2027-03-01").Body.String())
		var found []*html.Node
		for _, n := range all(doc, "a") {
			if strings.HasPrefix(attr(n, "class"), "slot") {
				found = append(found, n)
			}
		}
		if len(found) != 1 || attr(found[0], "href") != where+"departure?starts_at=2027-03-01T14%3A00%3A00Z&unit_id=un"+oneID || attr(found[0], "draggable") != "" ||
			!strings.Contains(textOf(found[0]), "7/10") || attr(found[0], "title") != "7 of 10 seats taken, 3 bookings" {
			t.Errorf("the %s shows %d slots: %s", span, len(found), textOf(doc))
		}
	}
	doc := parse(t, p.get("staff", where+"departure?unit_id=un"+oneID+"&starts_at=2027-03-01T14:00:00Z").Body.String())
	text := textOf(doc)
	for _, want := range []string{"Walk", "7 of 10 seats taken", "B-000000", "B-000001", "B-000003", "2 cancelled, expired or no-show bookings are not listed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	for _, number := range []string{"B-000002", "B-000004", "B-000007"} {
		if strings.Contains(text, number) {
			t.Errorf("%s is not at this departure, but listed", number)
		}
	}
	again := slices.ContainsFunc(all(doc, "a"), func(n *html.Node) bool {
		return attr(n, "href") == where+"bookings/new?event_date=2027-03-01&event_start_time=09%3A00&unit_id=un"+oneID
	})
	if !again {
		t.Error("no link to book one more")
	}
	p.setResponse("getUnit", refusal(http.StatusNotFound, "unit_not_found", nil))
	if w := p.get("staff", where+"departure?unit_id=un_x&starts_at=2027-03-01T14:00:00Z"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown unit: %d", w.Code)
	}
}

// TestWhatIsDue checks that the first page shows the totals of its days and the due items of bookings and webhooks: the customer,
// the amount, and why a delivery failed, each with a link.
func TestWhatIsDue(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("listWebhookEndpoints", object(map[string]any{"has_more": false, "data": []any{
		map[string]any{"id": "we" + oneID, "url": "https://a.example/hook", "status": "enabled", "consecutive_failures": 3, "disabled_reason": nil},
		map[string]any{"id": "we_2", "url": "https://fine.example/hook", "status": "enabled", "consecutive_failures": 0, "disabled_reason": nil},
		map[string]any{"id": "we_3", "url": "https://off.example/hook", "status": "disabled", "consecutive_failures": 7, "disabled_reason": "requested"},
		map[string]any{"id": "we_4", "url": "https://gone.example/hook", "status": "disabled", "consecutive_failures": 0, "disabled_reason": "gone"},
	}}))
	doc := parse(t, p.get("owner", where+"today").Body.String())
	text := textOf(all(doc, "main")[0])
	for _, want := range []string{
		"Hold expires B-000009 Grace Hopper 1 March 2027 1 March 2027, 13:00", "B-000009 Grace Hopper 1 March 2027 $20.00", "booking.created", "HTTP 503", "https://a.example/hook", "https://gone.example/hook",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	for _, no := range []string{"fine.example", "off.example"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is there", no)
		}
	}
	ways := map[string]bool{}
	for _, a := range all(doc, "a") {
		ways[attr(a, "href")] = true
	}
	for _, way := range []string{where + "endpoints/we" + oneID + "/deliveries/whd" + oneID, where + "endpoints/we" + oneID, where + "bookings/bk_01k00000000000000000000009"} {
		if !ways[way] {
			t.Errorf("nothing leads to %s", way)
		}
	}
	for _, n := range all(doc, "time") {
		if attr(n, "data-until") != noon.Add(time.Hour).Format(time.RFC3339) {
			t.Errorf("a hold is counted down to %s", attr(n, "data-until"))
		}
	}
}

// TestOwedRefunds checks that the first page shows the refunds that a policy requires, for the mode of the page. Their actions
// send the version and the note.
func TestOwedRefunds(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	list := where + "owed-refunds"
	page := p.get("owner", where+"today").Body.String()
	for _, want := range []string{"Refunds owed", "$125.00", "The payment has an open dispute. (charge_disputed)", `href="` + list + `"`} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the first page", want)
		}
	}
	for _, c := range p.recordedCalls() {
		if c.ID == "listOwedRefunds" && (c.Service != "payments" || string(c.Who.Mode) != "test" || c.Query.Get("limit") != "10") {
			t.Errorf("%+v", c)
		}
	}
	text := textOf(parse(t, p.get("owner", list).Body.String()))
	for _, want := range []string{"Refunds owed", "$125.00", "cancelled", "The payment has an open dispute. (charge_disputed)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the list: %s", want, text)
		}
	}
	for action, body := range map[string]string{"retry": "", "close": `{"note":"Returned in cash"}`} {
		path := address("alpha", "test", "/owed-refunds/:id/"+action)
		if text := textOf(parse(t, p.get("owner", path).Body.String())); !strings.Contains(text, "$125.00") || !strings.Contains(text, "charge_disputed") {
			t.Errorf("the page of %s does not show what is owed and why: %s", action, text)
		}
		p.forget()
		form := p.fill("owner", path, nil)
		if form.Has("note") {
			form.Set("note", "Returned in cash")
		}
		w := p.post("owner", path, form)
		c := p.only(t)
		if w.Code != http.StatusSeeOther || c.Header.Get("If-Match") != `"3"` || c.Header.Get("Idempotency-Key") != form.Get("once") || strings.TrimSpace(string(c.Body)) != body {
			t.Errorf("%s: %d, %v %s", action, w.Code, c.Header, c.Body)
		}
	}
	p.setResponse("getOwedRefund", object(map[string]any{"id": "rfo" + oneID, "booking_id": "bk" + oneID, "status": "done", "currency": "USD", "amount": 1, "remaining_amount": 0, "version": 4}))
	if page := p.get("owner", address("alpha", "test", "/owed-refunds/:id/close")).Body.String(); !strings.Contains(page, "alert") {
		t.Error("one that is done can be closed")
	}
	p.setResponse("listOwedRefunds", object(map[string]any{"data": []any{}, "count": 0, "has_more": false, "next_cursor": nil}))
	if strings.Contains(p.get("owner", where+"today").Body.String(), "Refunds owed") {
		t.Error("the first page shows that nothing is owed")
	}
}

// TestFirstSteps checks that the first steps are shown and requested only if there are no bookings.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		booked string // the response that contains a booking
		shown  bool
	}{"an empty workspace": {"", true}, "an arrival": {"listCalendar", false}, "something due": {"listDueBookings", false}, "bookings of last month": {"listStatistics", false}} {
		p := newPlatform(t, options{})
		for id, empty := range map[string]map[string]any{
			"listCalendar": {"data": []any{}}, "listDueBookings": {"holds": []any{}, "unpaid": []any{}}, "listBookings": {"data": []any{}, "has_more": false},
			"listStatistics": {"currency": "USD", "timezone": "America/New_York", "data": []any{map[string]any{"date": "2027-03-01", "revenue": 0, "bookings": 0, "booked_minutes": 0, "open_minutes": 0}}},
		} {
			if id != tc.booked {
				p.setResponse(id, object(empty))
			}
		}
		text := textOf(parse(t, p.get("owner", where+"today").Body.String()))
		requested := slices.ContainsFunc(p.recordedCalls(), func(c call) bool { return c.ID == "listServices" })
		if shown := strings.Contains(text, "Add your first booking"); shown != tc.shown || requested != tc.shown {
			t.Errorf("%s: shown %t, requested %t, want %t", name, shown, requested, tc.shown)
		}
	}
}

// TestManyArrivals checks that the first page shows the first arrivals, the number of further ones, and a link to all.
func TestManyArrivals(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	var list []any
	for i := range 53 {
		b := calendarBooking()
		b["number"], b["starts_at"] = fmt.Sprintf("B-%06d", i), noon.Add(time.Duration(-i)*time.Minute).Format(time.RFC3339)
		list = append(list, b)
	}
	p.setResponse("listCalendar", object(map[string]any{"data": list, "timezone": "America/New_York", "truncated": false}))
	doc := parse(t, p.get("owner", where+"today").Body.String())
	text := textOf(all(doc, "main")[0])
	if !strings.Contains(text, "Arrivals and 3 more 11:08 B-000052") || !strings.Contains(text, "B-000003") || strings.Contains(text, "12:00 B-000000") {
		t.Error(text[:3000])
	}
	if !slices.ContainsFunc(all(doc, "a"), func(a *html.Node) bool { return attr(a, "href") == where+"calendar?date=2027-03-01&view=day" }) {
		t.Error("nothing leads to all")
	}
}

// TestDeliveryPage checks that the page of a delivery shows the request and the response of each attempt, and finds the delivery
// by its id.
func TestDeliveryPage(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := where + "endpoints/we" + oneID + "/deliveries/whd" + oneID
	page := p.get("owner", path).Body.String()
	text := textOf(parse(t, page))
	for _, want := range []string{"HTTP 503", "Service-Delivery-Attempt: 1 Service-Signature: t=1,v1=…", "the till is closed", `{ "id": "evt_1", "type": "booking.created" }`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	calls := map[string]int{}
	for _, c := range p.recordedCalls() {
		calls[c.ID]++
	}
	if len(calls) != 2 || calls["getSentDelivery"] != 1 || calls["getWebhookEndpoint"] != 1 {
		t.Errorf("calls %v", calls)
	}
	event := `href="` + where + "events/evt" + oneID + `"`
	if !strings.Contains(page, event) {
		t.Error("nothing leads to the event")
	}
	for body, sample := range map[string]bool{"": false, "{}": true} { // no longer stored, or from a test delivery
		p.setResponse("getSentDelivery", object(map[string]any{"delivery": failedDelivery("we"+oneID, "whd"+oneID), "body": body, "sample": sample, "requests": []any{}}))
		page := p.get("owner", path).Body.String()
		if strings.Contains(page, event) || strings.Contains(textOf(parse(t, page)), "no longer stored") == sample {
			t.Errorf("body %q, sample %t: %s", body, sample, textOf(parse(t, page)))
		}
	}
	p.setResponse("getSentDelivery", refusal(http.StatusNotFound, "delivery_not_found", nil))
	if w := p.get("owner", path); w.Code != http.StatusNotFound {
		t.Errorf("an unknown one: %d", w.Code)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("listStatistics", object(map[string]any{"currency": "USD", "timezone": "America/New_York", "data": []any{
		map[string]any{"date": "2027-02-28", "revenue": 10000, "bookings": 1, "booked_minutes": 60, "open_minutes": 600},
		map[string]any{"date": "2027-03-01", "revenue": 2550, "bookings": 1, "booked_minutes": 90, "open_minutes": 600},
	}}))
	for days, from := range map[string]string{"": "2027-01-31", "30": "2027-01-31", "90": "2026-12-02", "91": "2027-01-31"} {
		p.forget()
		text := textOf(parse(t, p.get("viewer", where+"today?days="+days).Body.String()))
		if !strings.Contains(text, "$125.50") || !strings.Contains(text, "12.5%") && !strings.Contains(text, "13%") && !strings.Contains(text, "12%") {
			t.Errorf("%s: %s", days, text)
		}
		if q := p.firstCall(t, "listStatistics").Query; q.Get("from") != from || q.Get("to") != "2027-03-01" {
			t.Errorf("%s: %v", days, q)
		}
	}
}

// TestChoicesOfPlanning checks that slots are requested for the selected service and unit, and that a year of prices begins with
// the first package.
func TestChoicesOfPlanning(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.get("viewer", where+"availability?date=2027-07-03&service_id=srv"+oneID+"&unit_id=un"+oneID)
	if q := p.firstCall(t, "listAvailability").Query; q.Get("service_id") != "srv"+oneID || q.Get("unit_id") != "un"+oneID || q.Get("from") != "2027-07-03" || q.Get("to") != "2027-07-03" {
		t.Errorf("%v", q)
	}
	p.get("viewer", where+"prices")
	if q := p.firstCall(t, "listPackagePrices").Query; !strings.HasPrefix(q.Get("package_id"), "pkg_") || q.Get("from") != "2027-01-01" {
		t.Errorf("%v", q)
	}
	p.setResponse("listPackages", object(map[string]any{"data": []any{}, "has_more": false}))
	p.forget()
	if w := p.get("viewer", where+"prices"); w.Code != http.StatusOK || len(slices.DeleteFunc(p.recordedCalls(), func(c call) bool { return c.ID != "listPackagePrices" })) != 0 {
		t.Errorf("without packages: %d", w.Code)
	}
}

// TestBoundsOfNumbers checks that number inputs have the contract's bounds.
func TestBoundsOfNumbers(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	doc := parse(t, p.get("owner", where+"policy").Body.String())
	n := named(doc, "hold_ttl_minutes")
	if attr(n, "min") != "1" || attr(n, "max") != "43200" || attr(n, "type") != "number" {
		t.Errorf("%+v", n.Attr)
	}
}

// TestNotices checks that the next page confirms an action, and only with a text from the locale.
func TestNotices(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for done, want := range map[string]bool{"view_saved": true, "nothing_such": false} {
		text := textOf(parse(t, p.get("owner", where+"bookings?done="+done).Body.String()))
		if strings.Contains(text, "View saved.") != want {
			t.Errorf("%s: %s", done, text)
		}
	}
}

// TestActionsByStatus checks that an action is allowed only in its statuses, or in every status if it has none.
func TestActionsByStatus(t *testing.T) {
	t.Parallel()
	some, each := domain.Action{From: []string{"draft"}}, domain.Action{}
	if !some.AllowedIn("draft") || some.AllowedIn("sent") || some.AllowedIn("") || !each.AllowedIn("sent") || !each.AllowedIn("") {
		t.Error("an action is allowed where it is not")
	}
}

// TestLabelsOfAResource checks that the pages of a resource use its own names of fields.
func TestLabelsOfAResource(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for _, path := range []string{"requests", "requests/req" + oneID} {
		w := p.send(request{Method: http.MethodGet, Path: where + path, Token: "admin", Header: map[string]string{"Accept-Language": "de"}})
		if text := w.Body.String(); !strings.Contains(text, "Methode") || strings.Contains(text, "Zahlungsart") {
			t.Errorf("%s: %d, the method of a request is not named", path, w.Code)
		}
	}
}
