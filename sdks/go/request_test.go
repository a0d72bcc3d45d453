package holdfast

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHeaders checks the headers of reads and writes.
func TestHeaders(t *testing.T) {
	t.Parallel()
	c, s := newClient(t, respond(200, booking))
	if _, err := c.Bookings.Update(t.Context(), "bk_1", BookingUpdate{}, WithIfMatch(3), WithHeader("X-Trace", "1")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bookings.Update(t.Context(), "bk_1", BookingUpdate{}, WithLenientHandling()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bookings.Get(t.Context(), "a/b?", BookingsGetParams{}); err != nil {
		t.Fatal(err)
	}
	all := s.requests()
	for name, want := range map[string]string{
		"Authorization": "Bearer svc_test_x", "User-Agent": "holdfast-go/" + Version, "Accept": "application/json", "X-Trace": "1",
		"Content-Type": "application/json", "Prefer": "handling=strict", "If-Match": `"3"`,
	} {
		if got := all[0].Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if all[1].Header.Get("Prefer")+all[1].Header.Get("If-Match") != "" || all[1].Header.Get("Idempotency-Key") == "" {
		t.Errorf("%v", all[1].Header)
	}
	for _, name := range []string{"Idempotency-Key", "Prefer", "Content-Type"} {
		if all[2].Header.Get(name) != "" {
			t.Errorf("a GET has %s", name)
		}
	}
	if got := all[2].URL.EscapedPath(); got != "/api/v1/bookings/a%2Fb%3F" {
		t.Errorf("the path is %s", got)
	}
	if _, err := c.Bookings.Get(t.Context(), "", BookingsGetParams{}); err == nil || !strings.Contains(err.Error(), "id is empty") || len(s.requests()) != 3 {
		t.Errorf("an empty ID: %v", err)
	}
}

// TestQuery checks how parameters are sent.
func TestQuery(t *testing.T) {
	t.Parallel()
	c, s := newClient(t, respond(200, `{"data":[],"has_more":false,"next_cursor":null}`))
	at := time.Date(2030, 6, 1, 12, 0, 0, 500_000_000, time.FixedZone("", 3600))
	for _, p := range []BookingsListParams{{}, {
		Limit: 50, Status: []BookingFilterStatus{BookingFilterStatusPending, BookingFilterStatusConfirmed}, CreatedAfter: at,
		Metadata: map[string]string{"order": "17"}, EventDateFrom: "2030-06-01", Expand: []ExpandableResource{ExpandableResourceCustomer},
	}} {
		if _, err := c.Bookings.ListPage(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Units.ListPage(t.Context(), UnitsListParams{Active: Ptr(false)}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"", "created_after=2030-06-01T11%3A00%3A00.5Z&event_date_from=2030-06-01&expand=customer&limit=50&metadata%5Border%5D=17&status=pending%2Cconfirmed",
		"active=false",
	} {
		if got := s.requests()[i].URL.RawQuery; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestBodies checks that an update distinguishes a field that is left out, null, and a value, and that an empty list is sent.
func TestBodies(t *testing.T) {
	t.Parallel()
	for want, body := range map[string]any{
		`{}`:                                   BookingUpdate{},
		`{"notes":null}`:                       BookingUpdate{Notes: Null[string]()},
		`{"notes":"x","metadata":{"a":"b"}}`:   BookingUpdate{Notes: Set("x"), Metadata: Metadata{"a": "b"}},
		`{"metadata":{}}`:                      BookingUpdate{Metadata: Metadata{}},
		`{"service_ids":[]}`:                   UnitUpdate{ServiceIDs: []string{}},
		`{"opening_hours":null}`:               UnitUpdate{OpeningHours: Null[OpeningHoursWrite]()},
		`{"applies_to":"all"}`:                 HolidayRuleUpdate{AppliesTo: &AppliesTo{All: true}},
		`{"applies_to":{"service_ids":["s"]}}`: HolidayRuleUpdate{AppliesTo: &AppliesTo{ServiceIDs: []string{"s"}}},
	} {
		if got, err := json.Marshal(body); err != nil || string(got) != want {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
	}
	for document, all := range map[string]bool{`"all"`: true, `{"package_ids":["pkg_1"]}`: false} {
		var a AppliesTo
		if err := json.Unmarshal([]byte(document), &a); err != nil || a.All != all || len(a.PackageIDs) == 1 == all {
			t.Errorf("%s: %+v %v", document, a, err)
		}
		if back, err := json.Marshal(a); err != nil || string(back) != document {
			t.Errorf("%s became %s (%v)", document, back, err)
		}
	}
	if json.Unmarshal([]byte(`"some"`), &AppliesTo{}) == nil {
		t.Error("an unknown selection is accepted")
	}
}

// TestErrors checks the fields of an error, and how it is compared.
func TestErrors(t *testing.T) {
	t.Parallel()
	const invalid = `{"message":"first_name is required.","errors":{"first_name":["Is required."]},"error":{"type":"validation_error","code":"invalid_request","message":"first_name is required.","param":"first_name","doc_url":"https://x.test/docs/errors#invalid_request","request_id":"req_7"},"new":1}`
	c, _ := newClient(t, respond(422, invalid, "X-Request-Id", "req_7"), respond(409, failure("slot_unavailable")), respond(418, failure("a_new_code")), respond(403, "<html>", "X-Request-Id", "req_8"))
	_, err := c.Customers.Create(t.Context(), CustomerCreate{})
	var e *Error
	if !errors.As(err, &e) || e.Status != 422 || e.Code != ErrInvalidRequest || e.Param != "first_name" || e.Errors["first_name"][0] != "Is required." ||
		e.RequestID != "req_7" || e.Type != "validation_error" || !strings.HasSuffix(e.DocURL, "#invalid_request") || !strings.Contains(string(e.Body), `"new"`) {
		t.Errorf("%+v", e)
	}
	if got := err.Error(); got != "holdfast: 422 invalid_request: first_name is required. (request req_7)" {
		t.Error(got)
	}
	_, err = c.Bookings.Create(t.Context(), BookingCreate{})
	if !errors.Is(err, ErrSlotUnavailable) || errors.Is(err, ErrRateLimited) {
		t.Errorf("%v", err)
	}
	_, err = c.Bookings.Create(t.Context(), BookingCreate{})
	if !errors.As(err, &e) || e.Status != 418 || e.Code != "a_new_code" {
		t.Errorf("%v", err)
	}
	_, err = c.Bookings.Create(t.Context(), BookingCreate{})
	if !errors.As(err, &e) || e.Status != 403 || e.Code != "" || e.Message != "Forbidden" || e.RequestID != "req_8" {
		t.Errorf("%v", err)
	}
}

// TestNew checks the settings of a client.
func TestNew(t *testing.T) {
	t.Setenv(envKey, "")
	t.Setenv(envURL, "")
	for text, options := range map[string][]ClientOption{
		"no API key: set HOLDFAST_API_KEY":       {WithBaseURL("https://x.test")},
		"no API key: set HOLDFAST_API_KEY, ":     {WithBaseURL("https://x.test"), WithAPIKey("")},
		"no base URL: set HOLDFAST_BASE_URL":     {WithAPIKey("k")},
		`absolute URL such as https://api.examp`: {WithAPIKey("k"), WithBaseURL("x.test/api")},
		`not "ftp://x.test"`:                     {WithAPIKey("k"), WithBaseURL("ftp://x.test")},
	} {
		if _, err := New(options...); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	t.Setenv(envKey, "from-environment")
	t.Setenv(envURL, "https://env.test/api/v1")
	s := &script{steps: []step{respond(200, `{}`)}}
	for _, want := range []string{"from-environment https://env.test/api/v1/me", "given https://given.test/v1/me"} {
		options := []ClientOption{WithHTTPClient(&http.Client{Transport: s})}
		if strings.HasPrefix(want, "given") {
			options = append(options, WithAPIKey("given"), WithBaseURL("https://given.test/v1"))
		}
		c, err := New(options...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Me.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := s.requests()
		last := all[len(all)-1]
		if got := strings.TrimPrefix(last.Header.Get("Authorization"), "Bearer ") + " " + last.URL.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestDefaults checks that options of the client apply to each request, and that those of a request precede.
func TestDefaults(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{cut}}
	c, err := New(WithAPIKey("k"), WithBaseURL("https://x.test"), WithHTTPClient(&http.Client{Transport: s}), WithDefaults(WithMaxRetries(0), WithHeader("X-App", "1")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Me.Get(t.Context(), WithHeader("X-Other", "2")); err == nil || len(s.requests()) != 1 {
		t.Errorf("%d attempts (%v)", len(s.requests()), err)
	}
	if _, err := c.Me.Get(t.Context(), WithHeader("X-App", "3")); err == nil {
		t.Error("no error")
	}
	for i, want := range []string{"1 2", "3 "} {
		h := s.requests()[i].Header
		if got := h.Get("X-App") + " " + h.Get("X-Other"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
