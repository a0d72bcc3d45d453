package api_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

// link requests the booking of a quote or a lead, as customers does.
func (w *world) link(ctx context.Context, origin, fields string) response {
	w.T.Helper()
	return w.from(ctx, "customers", "POST", "/bookings", linkBody(origin, fields, time.Now().Add(time.Minute)))
}

func linkBody(origin, fields string, until time.Time) string {
	return fmt.Sprintf(`{%s,"booking":{%s},"valid_until":%q}`, origin, fields, until.UTC().Format(time.RFC3339Nano))
}

func ofQuote(total, deposit int64) string {
	return fmt.Sprintf(`"quote_id":%q,"total_amount":%d,"deposit_amount":%d`, id[ids.QuotePrefix](), total, deposit)
}

func ofLead() string { return fmt.Sprintf(`"lead_id":%q`, id[ids.LeadPrefix]()) }

// TestALinkedBookingNamesItsCaller checks that the event of a booking requested by customers names the caller on whose behalf
// customers sends the request.
func TestALinkedBookingNamesItsCaller(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	ann := w.customer(ctx)
	n := len(w.Events())
	acting := caller.FromContext(in(ctx, func(c *caller.Caller) { c.Credential = "key_accepts" })).ActingAs("customers")
	w.link(caller.With(ctx, acting), ofLead(), fmt.Sprintf(`"event_date":"2030-05-01","customer_id":%q`, ann)).is(200)
	events := w.Events()[n:]
	if len(events) != 1 || events[0].GetType() != "booking.created" || events[0].GetActor() != "key_accepts" {
		t.Errorf("events %v", events)
	}
}

// TestBookingOfAQuote checks that the booking of a quote is confirmed with auto_confirm. Without it, the booking is pending and has
// no hold, regardless of the holds in the policy and in the body. Its amounts are those of the quote, and the package stays
// unchanged.
func TestBookingOfAQuote(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s, ann, lead := w.shop(ctx), w.customer(ctx), id[ids.LeadPrefix]().String()
	for _, auto := range []bool{false, true} {
		w.tenants.Set(domain.Policy{AutoConfirm: auto, HoldTTLMinutes: new(30), ConfirmOnDeposit: true})
		quote := id[ids.QuotePrefix]().String()
		origin := fmt.Sprintf(`"quote_id":%q,"lead_id":%q,"total_amount":7777,"deposit_amount":777`, quote, lead)
		day := map[bool]string{true: "2030-07-04", false: "2030-07-05"}[auto]
		a := w.link(ctx, origin, fmt.Sprintf(`"event_date":%q,"event_start_time":"10:00","package_id":%q,"unit_id":%q,"customer_id":%q,
			"status":"confirmed","hold_minutes":5`, day, s.flat, s.ada, ann)).is(200)
		b := a.booking()
		if want := map[bool]string{true: "confirmed", false: "pending"}[auto]; b.Status != want || (b.ConfirmedAt != nil) != auto || b.HoldExpiresAt != nil {
			t.Errorf("auto_confirm %v: %s", auto, a.Body)
		}
		if b.TotalAmount != (amount{7777, "USD"}) || b.DepositAmount != (amount{777, "USD"}) || b.AmountPaid != (amount{0, "USD"}) ||
			*b.QuoteID != quote || *b.LeadID != lead || *b.CustomerID != ann || *b.PackageID != s.flat.String() ||
			b.PackageSnapshot.Name != "Flat" || b.PackageSnapshot.Holiday.Name != "July" || len(b.InvoiceIDs) != 0 {
			t.Errorf("got %s", a.Body)
		}
		if public := w.do(ctx, "GET", "/bookings/"+b.ID, "").is(200); string(public.Body) != string(a.Body) {
			t.Errorf("not the public body: %s", a.Body)
		}
		if again := w.from(ctx, "customers", "GET", "/bookings/"+b.ID, "").is(200); string(again.Body) != string(a.Body) || again.Header.Get("ETag") != `"1"` {
			t.Errorf("looked up: %s", again.Body)
		}
		e := w.Events()
		if last := e[len(e)-1]; last.GetType() != "booking.created" || string(last.GetObject()) != string(a.Body) {
			t.Errorf("event %v", last)
		}
		w.move(ctx, 24*time.Hour)
		if got := w.get(ctx, b.ID); got.Status != b.Status {
			t.Errorf("a day later: %s", got.Status)
		}
	}
	yen := w.link(ctx, ofQuote(10, 0), fmt.Sprintf(`"event_date":"2030-07-04","package_id":%q`, s.yen)).is(200).booking()
	if yen.TotalAmount != (amount{10, "USD"}) || yen.AmountPaid.Currency != "USD" {
		t.Errorf("not the operator's currency: %+v", yen.TotalAmount)
	}
	euros := w.link(ctx, ofQuote(10, 5)+`,"currency":"EUR"`, fmt.Sprintf(`"event_date":"2030-07-04","package_id":%q`, s.yen)).is(200).booking()
	if euros.TotalAmount != (amount{10, "EUR"}) || euros.DepositAmount != (amount{5, "EUR"}) || euros.AmountPaid.Currency != "EUR" {
		t.Errorf("not the quote's currency: %+v", euros)
	}
}

// move advances real time and expires what is due.
func (w *world) move(ctx context.Context, d time.Duration) {
	w.T.Helper()
	w.clock.move(d)
	if err := w.expiry.Run(ctx); err != nil {
		w.T.Fatal(err)
	}
	w.clock.move(-d)
}

// TestBookingOfALead checks that the booking of a lead is an ordinary booking with its own price and hold. Quotes of one lead
// have their own bookings.
func TestBookingOfALead(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.tenants.Set(domain.Policy{HoldTTLMinutes: new(30)})
	s, lead := w.shop(ctx), ofLead()
	fields := fmt.Sprintf(`"event_date":"2030-05-04","package_id":%q`, s.flat)
	b := w.link(ctx, lead, fields).is(200).booking()
	if b.Status != "pending" || b.HoldExpiresAt == nil || b.TotalAmount.Amount != 19999 || !strings.Contains(lead, *b.LeadID) || b.QuoteID != nil {
		t.Errorf("got %+v", b)
	}
	first, second := w.link(ctx, lead+","+ofQuote(1, 0), fields).is(200).booking(), w.link(ctx, lead+","+ofQuote(1, 1), fields).is(200).booking()
	if first.ID == second.ID || first.ID == b.ID || w.link(ctx, lead, fields).is(200).booking().ID != b.ID {
		t.Error("bookings of the lead and of its quotes are mixed up")
	}
}

// TestLinkedOnce checks that a quote stays linked to its booking permanently, regardless of the state of the booking and of current
// reasons for a refusal.
func TestLinkedOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s, ann := w.shop(ctx), w.customer(ctx)
	w.tenants.Set(domain.Policy{HoldTTLMinutes: new(30)})
	for name, origin := range map[string]string{"quote": ofQuote(100, 50), "lead": ofLead()} {
		fields := fmt.Sprintf(`"event_date":"2030-05-01","unit_id":%q,"customer_id":%q`, s.ada, ann)
		b := w.link(ctx, origin, fields).is(200).booking()
		check := func(status string, version int64) {
			t.Helper()
			got := w.link(ctx, origin, fields).is(200).booking()
			if got.ID != b.ID || got.Status != status || got.Version != version {
				t.Errorf("%s: %s, %s, version %d; want %s, %d", name, got.ID, got.Status, got.Version, status, version)
			}
		}
		check("pending", 1)
		if name == "lead" {
			w.clock.move(time.Hour) // the hold has lapsed, and the worker has not run yet
			a := w.from(ctx, "customers", "POST", "/bookings", linkBody(origin, fields, time.Now().Add(2*time.Hour))).is(200)
			if a.booking().Status != "expired" {
				t.Errorf("lapsed: %s", a.Body)
			}
			w.clock.move(-time.Hour)
		}
		w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(200)
		check("cancelled", 2)
		w.tenants.Fail(apperr.ErrUnavailable)
		w.Exec(`update units set status = 'retired' where id = $1`, s.ada)
		check("cancelled", 2)
		w.link(ctx, ofQuote(1, 0), fields).is(503, "unavailable")
		w.tenants.Fail(nil)
		w.link(ctx, ofQuote(1, 0), fields).is(422, "invalid_request", "unit_id")
		w.Exec(`update units set status = 'active' where id = $1`, s.ada)
		if n := w.Count(`select count(*) from bookings where quote_id is not null or lead_id is not null`); n != map[string]int{"quote": 1, "lead": 1}[name] && n != 2 {
			t.Errorf("%d bookings", n)
		}
	}
	if got := w.Types(); strings.Count(got, "created") != 2 {
		t.Errorf("events %s", got)
	}
}

// TestTwentyForOneQuote checks that twenty parallel requests for one quote create one booking and one event, and that each request
// gets the booking. It uses a unit, and then no unit, where only the index prevents a second booking.
func TestTwentyForOneQuote(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	for i, fields := range []string{
		`"event_date":"2030-05-01"`, fmt.Sprintf(`"event_date":"2030-05-01","unit_id":%q`, s.ada), fmt.Sprintf(`"event_date":"2030-05-02","unit_id":%q`, s.ada),
	} {
		origin := ofQuote(100, 50)
		if i == 2 {
			origin = ofLead()
		}
		responses := make([]response, 20)
		var all sync.WaitGroup
		for n := range responses {
			all.Go(func() { responses[n] = w.link(ctx, origin, fields) })
		}
		all.Wait()
		for _, a := range responses {
			if got, first := a.is(200).booking(), responses[0].booking(); got.ID != first.ID || string(a.Body) != string(responses[0].Body) {
				t.Errorf("two bookings: %s and %s", got.ID, first.ID)
			}
		}
		if n := w.Count(`select count(*) from bookings`); n != i+1 || strings.Count(w.Types(), "created") != i+1 || w.Types() != strings.Repeat("created ", i)+"created" {
			t.Errorf("%d bookings, events %s", n, w.Types())
		}
	}
}

// TestTwoQuotesForOneUnit checks that, of two quotes for one unit at one time, one gets the unit and the other one the error that
// it is taken.
func TestTwoQuotesForOneUnit(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	origins := []string{ofQuote(100, 50), ofQuote(200, 0)}
	fields := fmt.Sprintf(`"event_date":"2030-05-01","unit_id":%q`, s.ada)
	got := atOnce(20, func(i int) response { return w.link(ctx, origins[i%2], fields) })
	if got[200] != 10 || got[409] != 10 || w.Types() != "created" || w.Count(`select count(*) from unit_claims`) != 1 {
		t.Errorf("responses %v, events %q", got, w.Types())
	}
}

// TestLinkedInTime checks that a request that arrives too late does nothing, and neither does a request that waits until it is
// too late.
func TestLinkedInTime(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	origin, fields := ofQuote(100, 50), fmt.Sprintf(`"event_date":"2030-05-01","unit_id":%q`, s.ada)
	late := func(until time.Time) {
		t.Helper()
		w.from(ctx, "customers", "POST", "/bookings", linkBody(origin, fields, until)).is(503, "unavailable")
	}
	late(time.Now().Add(-time.Second))
	late(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC))
	release := w.Hold(`select from units where id = $1 for no key update`, s.ada)
	done := make(chan response)
	until := time.Now().Add(300 * time.Millisecond)
	go func() { done <- w.from(ctx, "customers", "POST", "/bookings", linkBody(origin, fields, until)) }()
	for time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
	release() // a moment too late
	(<-done).is(503, "unavailable")
	if n := w.Count(`select count(*) from bookings`); n != 0 || w.Types() != "" {
		t.Errorf("%d bookings, events %q", n, w.Types())
	}
	b := w.link(ctx, origin, fields).is(200).booking()
	late(time.Now().Add(-time.Second)) // even though a booking exists by now
	if n := w.Count(`select count(*) from bookings`); n != 1 || b.Version != 1 {
		t.Errorf("%d bookings", n)
	}
}

// TestLinkedBodyIsThatOfBookings checks that a body that POST /bookings refuses is refused with the same error.
func TestLinkedBodyIsThatOfBookings(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	column := regexp.MustCompile(`column \d+`)
	for _, fields := range []string{
		``, `"event_date":1`, `"event_date":"x"`, `"event_date":"2030-02-30"`, `"event_date":"2030-05-01","guest_count":1e2`,
		`"event_date":"2030-05-01","metadata":{"k":1},"notes":[]`, `"event_date":"2030-05-01","event_date":"2030-05-02"`,
		fmt.Sprintf(`"event_date":"2030-05-01","package_id":%q`, s.gone), `"event_date":"2030-05-01","unit_id":"un_x"`,
		fmt.Sprintf(`"event_date":"2030-05-01","unit_id":%q,"guest_count":11`, s.ada),
		`"event_date":"2030-05-01","event_start_time":"10:00"`, `"event_date":"2030-05-01","notes":"\u0000"`,
	} {
		refused := w.post(ctx, "{"+fields+"}")
		got := w.link(ctx, ofQuote(1, 0), fields)
		normalized := func(a response) string { // invalid JSON is detected before the booking is read
			return column.ReplaceAllString(strings.NewReplacer(caller.FromContext(ctx).RequestID, "", "booking.", "").Replace(string(a.Body)), "column")
		}
		if refused.Status < 400 || got.Status != refused.Status || normalized(got) != normalized(refused) {
			t.Errorf("%s: %d %s\nwant %d %s", fields, got.Status, got.Body, refused.Status, refused.Body)
		}
	}
	until := `"booking":{"event_date":"2030-05-01"},"valid_until":"2099-01-01T00:00:00Z"`
	for origin, field := range map[string]string{
		`"quote_id":"qt_x"`: "quote_id", `"lead_id":"qt_x"`: "lead_id", `"note":1`: "quote_id", ofLead() + `,"total_amount":1`: "total_amount",
		ofLead() + `,"deposit_amount":1`: "deposit_amount", ofQuote(-1, 0): "total_amount", ofQuote(domain.MaxAmount+1, 0): "total_amount",
		ofQuote(5, 6): "deposit_amount", ofQuote(5, -1): "deposit_amount", fmt.Sprintf(`"quote_id":%q,"deposit_amount":0`, id[ids.QuotePrefix]()): "total_amount",
	} {
		w.from(ctx, "customers", "POST", "/bookings", "{"+origin+","+until+"}").is(422, "invalid_request", field)
	}
	w.from(ctx, "customers", "POST", "/bookings", "").is(400, "missing_content_type")
	w.from(ctx, "customers", "POST", "/bookings", "[]").is(400, "malformed_json")
	for body, field := range map[string]string{
		`{"quote_id":1,` + until + `}`: "quote_id", `{"booking":{},"valid_until":"x"}`: "valid_until", "{" + ofLead() + `,"valid_until":"2099-01-01T00:00:00Z"}`: "booking",
		"{" + ofLead() + `,"booking":{}}`: "valid_until", "{" + ofLead() + `,"booking":[],"valid_until":"2099-01-01T00:00:00Z"}`: "booking",
	} {
		w.from(ctx, "customers", "POST", "/bookings", body).is(422, "invalid_request", field)
	}
	w.from(ctx, "customers", "POST", "/bookings", `{"quote_id":"`+strings.Repeat("x", 1<<20)+`"}`).is(413, "request_too_large")
	if n := w.Count(`select count(*) from bookings`); n != 0 {
		t.Errorf("%d bookings", n)
	}
}

// TestLinkedPrices checks that a price equals the price of a booking of the package on that day. A package or day that a booking
// refuses is refused here too.
func TestLinkedPrices(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	other := w.shop(pg.OtherMode(ctx))
	w.tenants.Set(domain.Policy{MaxAdvanceDays: new(0)}) // which does not affect a price
	type price struct {
		Name          string
		ServiceID     string `json:"service_id"`
		Currency      string
		TotalAmount   int64 `json:"total_amount"`
		DepositAmount int64 `json:"deposit_amount"`
	}
	request := func(pack fmt.Stringer, day string) response {
		t.Helper()
		return w.from(ctx, "customers", "POST", "/prices", fmt.Sprintf(`{"package_id":%q,"event_date":%q}`, pack, day))
	}
	for _, tc := range []struct {
		pack domain.PackageID
		day  string
		want price
	}{
		{s.flat, "2030-07-04", price{"Flat", s.tour.String(), "USD", 22999, 5000}},
		{s.flat, "2030-08-01T03:59:59Z", price{"Flat", s.tour.String(), "USD", 22999, 5000}}, // still July in New York
		{s.share, "2030-05-04", price{"Share", s.tour.String(), "USD", 1001, 501}},
		{s.yen, "2030-12-31", price{"Yen", s.rental.String(), "JPY", 253, 0}},
		{s.hidden, "2030-05-04", price{"Hidden", s.tour.String(), "USD", 1, 0}},
	} {
		if got := decode[price](request(tc.pack, tc.day).is(200)); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.day, got, tc.want)
		}
	}
	seat := w.do(ctx, "POST", "/packages", fmt.Sprintf(`{"service_id":%q,"name":"Seat","base_price":{"amount":1000,"currency":"USD"},"pricing":"per_guest"}`, s.tour)).is(201)
	seats := func(guests string) response {
		t.Helper()
		return w.from(ctx, "customers", "POST", "/prices", fmt.Sprintf(`{"package_id":%q,"event_date":"2030-07-04"%s}`, decode[offered](seat).ID, guests))
	}
	for guests, want := range map[string]string{"": `"total_amount":1150,"deposit_amount":0,"guest_count":1`, `,"guest_count":7`: `"total_amount":8050,"deposit_amount":0,"guest_count":7`} {
		if got := seats(guests).is(200); !strings.Contains(string(got.Body), want) {
			t.Errorf("guests %q: %s", guests, got.Body)
		}
	}
	seats(`,"guest_count":0`).is(422, "invalid_request", "guest_count")
	for _, pack := range []fmt.Stringer{s.gone, other.flat, id[domain.PackagePrefix](), s.tour, domain.PackageID{}} {
		request(pack, "2030-07-04").is(422, "invalid_request", "package_id")
	}
	for _, day := range []string{"", "x", "2030-02-30", "2030-07-04T10:00:00", "1899-01-01"} {
		request(s.flat, day).is(422, "invalid_request", "event_date")
	}
	w.from(ctx, "customers", "POST", "/prices", `[]`).is(400, "malformed_json")
	if n := w.Count(`select count(*) from bookings`); n != 0 || w.Types() != "updated" { // the event of the package
		t.Errorf("%d bookings, events %q", n, w.Types())
	}
}

// TestLookups checks that a lookup shows the caller's tenant and mode, and nothing of other tenants or modes.
func TestLookups(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01","hold_minutes":1`)
	for path, what := range map[string]string{
		"/bookings/" + b.ID: "booking", "/catalogue/" + s.tour.String(): "service", "/catalogue/" + s.docked.String(): "unit", "/catalogue/" + s.gone.String(): "package",
	} {
		a := w.from(ctx, "customers", "GET", path, "").is(200)
		if got := decode[offered](a); !strings.HasSuffix(path, got.ID) || got.Version != 1 || what != "booking" && strings.Contains(string(a.Body), "name") {
			t.Errorf("%s: %s", what, a.Body)
		}
		for _, who := range []context.Context{pg.OtherMode(ctx), pgtest.Ctx(t, caller.Test)} {
			w.from(who, "customers", "GET", path, "").is(404, what+"_not_found")
		}
	}
	w.do(ctx, "PATCH", "/services/"+s.tour.String(), `{"default_taxes":[{"name":"VAT","rate":"8.875"}]}`).is(200)
	for item, want := range map[string]string{
		s.tour.String():   `"version":2,"details":{"service_id":null,"default_taxes":[{"name":"VAT","rate":"8.875"}]}`,
		s.docked.String(): `"version":1,"details":{"service_id":null,"default_taxes":null}`,
		s.gone.String():   `"version":1,"details":{"service_id":"` + s.tour.String() + `","default_taxes":null}`,
	} {
		if a := w.from(ctx, "customers", "GET", "/catalogue/"+item, "").is(200); !strings.Contains(string(a.Body), want) {
			t.Errorf("%s: %s", item, a.Body)
		}
	}
	for _, path := range []string{
		"/bookings/x", "/bookings/" + s.ada.String(), "/catalogue/x", "/catalogue/srv_x", "/catalogue/un_x", "/catalogue/pkg_x",
		"/catalogue/" + b.ID, "/catalogue/" + id[domain.UnitPrefix]().String(), "/catalogue/" + id[domain.HolidayPrefix]().String(),
	} {
		w.from(ctx, "customers", "GET", path, "").is(404)
	}
	w.clock.move(2 * time.Minute)
	if got := w.from(ctx, "customers", "GET", "/bookings/"+b.ID, "").is(200).booking(); got.Status != "expired" || got.Version != 2 {
		t.Errorf("an expired hold is %s", got.Status)
	}
}

// TestLinksStayApart checks that the id of a quote belongs to its tenant and mode. The same id in another tenant or mode has its
// own booking.
func TestLinksStayApart(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	origin, seen := ofQuote(1, 0), map[string]bool{}
	for _, who := range []context.Context{ctx, pg.OtherMode(ctx), pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Live)} {
		seen[w.link(who, origin, `"event_date":"2030-05-01"`).is(200).booking().ID] = true
		w.link(who, origin, `"event_date":"2030-05-01"`).is(200)
	}
	if len(seen) != 4 {
		t.Errorf("%d bookings", len(seen))
	}
}

// TestUnitNames checks that the names are those of the caller's tenant and mode, and that ids without a unit are left out.
func TestUnitNames(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	body := fmt.Sprintf(`{"unit_ids":[%q,%q,%q,"un_x"]}`, s.docked, id[domain.UnitPrefix](), s.ada)
	name := func(id domain.UnitID) string {
		return decode[struct{ Name string }](w.do(ctx, "GET", "/units/"+id.String(), "").is(200)).Name
	}
	want := fmt.Sprintf(`{"data":[{"id":%q,"name":%q},{"id":%q,"name":%q}]}`, s.docked, name(s.docked), s.ada, name(s.ada))
	if got := string(w.from(ctx, "customers", "POST", "/units/names", body).is(200).Body); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, who := range []context.Context{pg.OtherMode(ctx), pgtest.Ctx(t, caller.Test)} {
		if got := string(w.from(who, "customers", "POST", "/units/names", body).is(200).Body); got != `{"data":[]}` {
			t.Errorf("another caller: %s", got)
		}
	}
	w.from(ctx, "customers", "POST", "/units/names", `{"unit_ids":["`+strings.Repeat(`un_x","`, 500)+`un_x"]}`).is(422, "invalid_request", "unit_ids")
}

func TestOnlyCustomersCallsWithin(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01"`)
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/bookings", linkBody(ofLead(), `"event_date":"2030-05-01"`, time.Now().Add(time.Minute))},
		{"GET", "/bookings/" + b.ID, ""},
		{"GET", "/catalogue/" + s.ada.String(), ""},
		{"POST", "/units/names", fmt.Sprintf(`{"unit_ids":[%q]}`, s.ada)},
		{"POST", "/prices", fmt.Sprintf(`{"package_id":%q,"event_date":"2030-05-01"}`, s.flat)},
	} {
		w.from(ctx, "customers", r.method, r.path, r.body).is(200)
		w.from(ctx, "gateway", r.method, r.path, r.body).is(401, "invalid_credential")
		w.from(ctx, "customers", r.method, r.path, r.body, "X-Caller: ").is(401, "invalid_credential")
	}
}
