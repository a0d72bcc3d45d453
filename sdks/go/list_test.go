package holdfast

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

func page(ids, next string) step {
	rows, cursor := `{"id":"`+strings.ReplaceAll(ids, " ", `"},{"id":"`)+`"}`, "null"
	if next != "" {
		cursor = `"` + next + `"`
	}
	if ids == "" {
		rows = ""
	}
	return respond(200, `{"data":[`+rows+`],"has_more":`+map[bool]string{true: "true", false: "false"}[next != ""]+`,"next_cursor":`+cursor+`}`)
}

// TestList checks that the iteration gets a page only when it needs it, and stops after the last one.
func TestList(t *testing.T) {
	t.Parallel()
	c, s := newClient(t, page("bk_1 bk_2", "two"), page("bk_3", "three"), page("", ""), page("bk_9", ""))
	rows := c.Bookings.List(t.Context(), BookingsListParams{Limit: 2, Number: "x"})
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests before the iteration", n)
	}
	var ids []string
	var counts []int
	for b, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		ids, counts = append(ids, b.ID), append(counts, len(s.requests()))
	}
	if strings.Join(ids, " ") != "bk_1 bk_2 bk_3" || len(s.requests()) != 3 || counts[1] != 1 || counts[2] != 2 {
		t.Errorf("%v after %v of %d requests", ids, counts, len(s.requests()))
	}
	var queries []string
	for _, r := range s.requests() {
		queries = append(queries, r.URL.RawQuery)
	}
	if got := strings.Join(queries, " "); got != "limit=2&number=x cursor=two&limit=2&number=x cursor=three&limit=2&number=x" {
		t.Error(got)
	}
}

// TestARepeatedCursor checks that an iteration ends with an error if a page has the cursor with which it was requested, or none.
func TestARepeatedCursor(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]step{
		"the same": page("bk_2", "two"), "none": respond(200, `{"data":[{"id":"bk_2"}],"has_more":true,"next_cursor":null}`),
	} {
		c, s := newClient(t, page("bk_1", "two"), last, page("bk_3", ""))
		var ids []string
		var failed error
		for b, err := range c.Bookings.List(t.Context(), BookingsListParams{}) {
			if failed = err; err == nil {
				ids = append(ids, b.ID)
			}
		}
		if strings.Join(ids, " ") != "bk_1 bk_2" || len(s.requests()) != 2 || failed == nil || !strings.Contains(failed.Error(), "no new cursor") {
			t.Errorf("%s: %v, %d requests, %v", name, ids, len(s.requests()), failed)
		}
	}
}

// TestListEnds checks that a break ends the iteration, and that an error is its last row.
func TestListEnds(t *testing.T) {
	t.Parallel()
	c, s := newClient(t, page("bk_1 bk_2", "two"), respond(400, failure("invalid_cursor")))
	for _, err := range c.Bookings.List(t.Context(), BookingsListParams{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	c, _ = newClient(t, page("bk_1 bk_2", "two"), respond(400, failure("invalid_cursor")))
	n := 0
	var last error
	for _, err := range c.Bookings.List(t.Context(), BookingsListParams{}) {
		n, last = n+1, err
	}
	if n != 3 || !errors.Is(last, ErrInvalidCursor) {
		t.Errorf("%d rows, the last is %v", n, last)
	}
}

// TestListPage checks a single page, a list without a cursor, and a list of events.
func TestListPage(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, page("bk_1", "two"), respond(200, `{"data":[{"date":"2030-06-01","price_from":null}],"has_more":false,"next_cursor":null}`),
		respond(200, `{"data":[{"id":"evt_1","type":"booking.created"},{"id":"evt_2","type":"new.type"}],"has_more":false,"next_cursor":null}`), respond(200, "no JSON"))
	p, err := c.Bookings.ListPage(t.Context(), BookingsListParams{})
	if err != nil || !p.HasMore || p.NextCursor != "two" || len(p.Data) != 1 {
		t.Errorf("%+v %v", p, err)
	}
	days, err := c.Availability.List(t.Context(), AvailabilityListParams{From: "2030-06-01", To: "2030-06-02"})
	if err != nil || len(days.Data) != 1 || days.Data[0].Date != "2030-06-01" || days.Data[0].PriceFrom != nil || days.HasMore {
		t.Errorf("%+v %v", days, err)
	}
	events, err := c.Events.ListPage(t.Context(), EventsListParams{})
	if err != nil || len(events.Data) != 2 {
		t.Fatalf("%+v %v", events, err)
	}
	if _, ok := events.Data[0].(*BookingCreatedEvent); !ok || events.Data[1].EventType() != "new.type" {
		t.Errorf("%+v", events.Data)
	}
	if _, err := c.Bookings.ListPage(t.Context(), BookingsListParams{}); err == nil || !strings.Contains(err.Error(), "GET /bookings: the response is not the expected JSON") {
		t.Error(err)
	}
}

// TestDocuments checks responses that are not JSON.
func TestDocuments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, respond(503, failure("unavailable")), respond(200, "%PDF", "Content-Type", "application/pdf", "Content-Disposition", `attachment; filename="INV-000001.pdf"`, "ETag", `"1"`),
			respond(404, failure("invoice_not_found")), respond(304, ""), respond(200, "id,number\n"), respond(200, "x"))
		d, err := c.Invoices.GetPDF(t.Context(), "inv_1")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(d)
		if err != nil || string(text) != "%PDF" || d.ContentType != "application/pdf" || d.FileName != "INV-000001.pdf" || d.ETag != `"1"` || d.NotModified {
			t.Errorf("%q %+v %v", text, d, err)
		}
		if err := d.Close(); err != nil || s.requests()[0].Header.Get("Accept") != "application/pdf" || len(s.requests()) != 2 {
			t.Error(err, s.requests()[0].Header)
		}
		if _, err := c.Invoices.GetPDF(t.Context(), "inv_1"); !errors.Is(err, ErrInvoiceNotFound) {
			t.Error(err)
		}
		d, err = c.CalendarFeeds.GetCalendar(t.Context(), "token", CalendarFeedsGetCalendarParams{IfNoneMatch: `"1"`})
		if err != nil || !d.NotModified || d.Close() != nil {
			t.Errorf("%+v %v", d, err)
		}
		if last := s.requests()[3]; last.URL.Path != "/api/v1/calendar/token.ics" || last.Header.Get("If-None-Match") != `"1"` {
			t.Errorf("%s %v", last.URL, last.Header)
		}
		d, err = c.Bookings.ListCSV(t.Context(), BookingsListCSVParams{Status: []BookingFilterStatus{BookingFilterStatusPending}})
		if err != nil || d.Close() != nil {
			t.Fatal(err)
		}
		if last := s.requests()[4]; last.URL.String() != "https://holdfast.test/api/v1/bookings?status=pending" || last.Header.Get("Accept") != "text/csv" {
			t.Errorf("%s %v", last.URL, last.Header)
		}
	})
}
