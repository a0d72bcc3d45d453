package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestBookingsWithoutAUnit checks that a booking that would reserve nothing is created only after a warning was confirmed, and that
// the same applies when an edit removes the unit.
func TestBookingsWithoutAUnit(t *testing.T) {
	t.Parallel()
	edit := address("alpha", "test", "/bookings/:id/edit")
	for name, tc := range map[string]struct {
		path  string
		form  url.Values
		warns bool
	}{
		"a package":            {where + "bookings/new", url.Values{"package_id": {"pkg" + oneID}, "event_date": {"2027-05-01"}}, true},
		"a service":            {where + "bookings/new", url.Values{"service_id": {"srv" + oneID}, "event_date": {"2027-05-01"}}, true},
		"a package and a unit": {where + "bookings/new", url.Values{"package_id": {"pkg" + oneID}, "unit_id": {"un" + oneID}, "event_date": {"2027-05-01"}}, false},
		"a note for a day":     {where + "bookings/new", url.Values{"event_date": {"2027-05-01"}}, false},
		"a removed unit":       {edit, url.Values{"unit_id": {""}}, true},
		"other changes":        {edit, url.Values{"notes": {"x"}}, false},
	} {
		p := newPlatform(t, options{})
		form := p.fill("staff", tc.path, tc.form)
		w := p.post("staff", tc.path, form)
		if !tc.warns {
			if w.Code != http.StatusSeeOther {
				t.Errorf("%s: %d %s", name, w.Code, alerts(parse(t, w.Body.String())))
			}
			continue
		}
		doc := parse(t, w.Body.String())
		if w.Code != http.StatusUnprocessableEntity || len(p.written()) != 0 || !strings.Contains(alerts(doc), "reserves nothing") || attr(named(doc, "without_unit"), "type") != "checkbox" {
			t.Fatalf("%s: %d, %d writes: %s", name, w.Code, len(p.written()), alerts(doc))
		}
		form.Set("without_unit", "true")
		if w := p.post("staff", tc.path, form); w.Code != http.StatusSeeOther {
			t.Errorf("%s: then %d %s", name, w.Code, alerts(parse(t, w.Body.String())))
		}
		if _, sent := p.only(t).body(t)["without_unit"]; sent {
			t.Errorf("%s: the box is sent", name)
		}
	}
}

// TestCreditNeedsAnAmount checks that a credit note without an amount is not created.
func TestCreditNeedsAnAmount(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := where + "invoices/inv" + oneID + "/credit"
	form := p.fill("owner", path, nil)
	w := p.post("owner", path, form)
	if doc := parse(t, w.Body.String()); w.Code != http.StatusUnprocessableEntity || len(p.written()) != 0 || messageAt(doc, "amount") != "Is required." {
		t.Errorf("%d, %d writes: %s", w.Code, len(p.written()), alerts(doc))
	}
	form.Set("amount", "5")
	if p.post("owner", path, form); string(p.only(t).Body) == "" {
		t.Error("no credit note")
	}
}

// TestSeatsLeft checks that a refused booking of a departure states how many seats are left.
func TestSeatsLeft(t *testing.T) {
	t.Parallel()
	for left, want := range map[int]string{0: "No seats are left at that time.", 1: "Only 1 seat is left at that time.", 3: "Only 3 seats are left at that time."} {
		p := newPlatform(t, options{})
		body := map[string]any{"error": map[string]any{"code": "slot_unavailable", "message": "Taken.", "seats_available": left}}
		p.setResponse("createBooking", func(call) response { return response{http.StatusConflict, body} })
		form := p.fill("staff", where+"bookings/new", url.Values{"unit_id": {"un" + oneID}, "event_date": {"2027-05-01"}, "event_start_time": {"09:00"}, "guest_count": {"9"}})
		if doc := parse(t, p.post("staff", where+"bookings/new", form).Body.String()); !strings.Contains(alerts(doc), want) {
			t.Errorf("%d: %s", left, alerts(doc))
		}
	}
}

// TestPastSlotsAreHidden checks that slots whose start has passed are shown only on request.
func TestPastSlotsAreHidden(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{}) // it is 12:00 in New York
	slot := func(at string) any {
		return map[string]any{"starts_at": at, "ends_at": at, "status": "available"}
	}
	unit := map[string]any{"unit_id": "un" + oneID, "name": "Kayak 1", "status": "available", "slots": []any{slot("2027-03-01T16:59:00Z"), slot("2027-03-01T17:00:00Z")}}
	p.setResponse("listAvailability", object(map[string]any{"data": []any{map[string]any{"date": "2027-03-01", "units": []any{unit}}}, "has_more": false}))
	link := "event_start_time=11%3A59"
	page := p.get("staff", where+"availability?date=2027-03-01").Body.String()
	if strings.Contains(page, link) || !strings.Contains(page, "event_start_time=12%3A00") || !strings.Contains(page, "1 slot that has already started is hidden.") {
		t.Errorf("%s", textOf(parse(t, page)))
	}
	shown := where + "availability?date=2027-03-01&past=true"
	if !slices.ContainsFunc(all(parse(t, page), "a"), func(n *html.Node) bool { return attr(n, "href") == shown }) {
		t.Error("no link to past slots")
	}
	if page := p.get("staff", shown).Body.String(); !strings.Contains(page, link) || strings.Contains(page, "is hidden") {
		t.Error("past slots are not shown on request")
	}
}

// TestNoRawValues checks that pages show no ids of customers, enumerations or documents of the API where people expect words.
func TestNoRawValues(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	policy := map[string]any{"auto_confirm": false, "hold_ttl_minutes": 30, "refund_rules": []any{map[string]any{"hours_before": 48, "percent": 50}}}
	p.setResponse("getBooking", object(exampleObject(t, "getBooking", map[string]any{"status": "cancelled", "cancellation": map[string]any{
		"reason": "Bad weather", "cancelled_at": "2027-03-01T15:35:00Z", "refund_amount_due": map[string]any{"amount": 1500, "currency": "USD"}, "policy": policy,
	}})))
	p.setResponse("getPackage", object(exampleObject(t, "getPackage", map[string]any{"pricing": "per_guest"})))
	for page, want := range map[string][]string{
		"bookings/bk" + oneID:  {"Bad weather", "$15.00", "Hours before the start48", "Hold duration (minutes)30"},
		"packages/pkg" + oneID: {"each guest"},
		"quotes/qt" + oneID:    {"Added to prices"},
		"units/un" + oneID:     {"one booking at a time"},
		"closures/new":         {"Leave empty to close all units."},
	} {
		text := textOf(parse(t, p.get("owner", where+page).Body.String()))
		compact := strings.ReplaceAll(text, " ", "")
		for _, w := range want {
			if !strings.Contains(compact, strings.ReplaceAll(w, " ", "")) {
				t.Errorf("%s has no %q", page, w)
			}
		}
		for _, raw := range []string{"per_guest", "per_booking", "hold_ttl_minutes", "\"reason\"", "of the service"} {
			if strings.Contains(text, raw) {
				t.Errorf("%s has %q", page, raw)
			}
		}
	}
	doc := parse(t, p.get("owner", where+"bookings/bk"+oneID+"/edit").Body.String())
	if got := attr(named(doc, "customer_id"), "value"); got != "Ada Lovelace" {
		t.Errorf("the customer is %q", got)
	}
	for _, page := range []string{"packages/new", "units/new", "quotes/new", "holiday-rules/new", "bookings/new", "invoices/inv" + oneID + "/credit"} {
		for _, n := range all(parse(t, p.get("owner", where+page).Body.String()), "select") {
			texts := map[string]bool{}
			for _, o := range all(n, "option") {
				if text := strings.ToLower(textOf(o)); texts[text] || text == "none" && !strings.HasSuffix(attr(n, "name"), "_id") && attr(o, "value") == "" {
					t.Errorf("%s: %s offers %q", page, attr(n, "name"), textOf(o))
				} else {
					texts[text] = true
				}
			}
		}
	}
	page := p.get("owner", where+"customers/suggest?customer_id=Ada").Body.String()
	if strings.Contains(page, "cu_") || !strings.Contains(page, "Ada Lovelace, ada@example.com") {
		t.Errorf("suggestions: %s", page)
	}
}

// TestDraggingRetainsTheLength checks that a dragged booking sends only its new day and start, so that the service keeps its length.
func TestDraggingRetainsTheLength(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("getBooking", object(exampleObject(t, "getBooking", map[string]any{"ends_at": "2027-07-07T15:00:00Z", "event_local_end_date": "2027-07-07"})))
	form := url.Values{"version": {"1"}, "event_date": {"2027-07-04"}, "start": {"10:00"}, "to": {where + "calendar"}}
	p.post("staff", where+"bookings/bk"+oneID+"/move", form)
	if got := string(p.only(t).Body); got != `{"event_date":"2027-07-04","event_start_time":"10:00"}` {
		t.Errorf("%s", got)
	}
	if text := textOf(parse(t, p.get("staff", where+"bookings/bk"+oneID).Body.String())); !strings.Contains(text, "Last day") || !strings.Contains(text, "7 July 2027") {
		t.Error("the page of a booking of several days does not show its last day")
	}
}
