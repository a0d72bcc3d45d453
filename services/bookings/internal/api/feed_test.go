package api_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	publicapi "holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// feed is a calendar feed as a client reads it.
type feed struct {
	ID             string
	URL            *string
	Name           string
	UnitID         *string `json:"unit_id"`
	IncludeDetails bool    `json:"include_details"`
	Version        int
}

const feedBase = "https://api.test/api/v1"

func (w *world) feed(ctx context.Context, format string, args ...any) feed {
	w.T.Helper()
	f := decode[feed](w.do(ctx, "POST", "/calendar-feeds", fmt.Sprintf(format, args...)).is(201))
	if f.URL == nil || !strings.HasPrefix(*f.URL, feedBase+"/calendar/") || !strings.HasSuffix(*f.URL, ".ics") {
		w.T.Fatalf("the address is %v", f.URL)
	}
	return f
}

// details returns ctx with the scopes that a feed with details requires.
func details(ctx context.Context) context.Context {
	return in(ctx, func(c *caller.Caller) { c.Scopes = append(slices.Clone(c.Scopes), "read:customers") })
}

// read reads a calendar as the gateway forwards the request: signed for no tenant.
func (w *world) read(f feed, headers ...header) response {
	w.T.Helper()
	return w.readPath(strings.TrimPrefix(*f.URL, feedBase), headers...)
}

func (w *world) readPath(path string, headers ...header) response {
	w.T.Helper()
	from := caller.Service("gateway", ids.Tenant{}, "")
	from.RequestID = ids.New[ids.RequestPrefix]().String()
	ctx := caller.With(w.T.Context(), from)
	return w.do(ctx, "GET", path, "", headers...)
}

// events returns the events of a calendar by their UID.
func (w *world) events(f feed) map[string]*ics.VEvent {
	w.T.Helper()
	a := w.read(f).is(200)
	if got := a.Header.Get("Content-Type"); got != "text/calendar; charset=utf-8" {
		w.T.Errorf("Content-Type %q", got)
	}
	c, err := ics.ParseCalendar(bytes.NewReader(a.Body))
	if err != nil {
		w.T.Fatal(err)
	}
	out := map[string]*ics.VEvent{}
	for _, e := range c.Events() {
		out[e.Id()] = e
	}
	return out
}

func prop(e *ics.VEvent, name string) string {
	if p := e.GetProperty(ics.ComponentProperty(name)); p != nil {
		return p.Value
	}
	return ""
}

func TestEachFieldOfAFeedIsWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	body := fmt.Sprintf(`{"name":"Ada's","unit_id":%q,"include_details":true}`, s.ada)
	created := w.do(details(ctx), "POST", "/calendar-feeds", body).is(201)
	apitest.Written[publicapi.CalendarFeedCreate](t, body, created.Body)
	at := "/calendar-feeds/" + decode[feed](created).ID
	if got := created.Header.Get("Location"); got != "/api/v1"+at {
		t.Errorf("Location %q", got)
	}
	shown := w.do(ctx, "GET", at, "").is(200)
	apitest.Written[publicapi.CalendarFeedCreate](t, body, shown.Body)
	if f := decode[feed](shown); f.URL != nil || f.Version != 1 {
		t.Errorf("read back %s", shown.Body)
	}
	plain := w.feed(ctx, `{"name":"All"}`)
	if plain.UnitID != nil || plain.IncludeDetails {
		t.Errorf("defaults: %+v", plain)
	}
	list := decode[struct{ Data []feed }](w.do(ctx, "GET", "/calendar-feeds", "").is(200)).Data
	if len(list) != 2 || list[0].ID != plain.ID || list[0].URL != nil {
		t.Errorf("list %+v", list)
	}
	ofUnit := decode[struct{ Data []feed }](w.do(ctx, "GET", "/calendar-feeds?unit_id="+s.ada.String(), "").is(200)).Data
	none := decode[struct{ Data []feed }](w.do(ctx, "GET", "/calendar-feeds?unit_id=un_x", "").is(200)).Data
	if len(ofUnit) != 1 || len(none) != 0 {
		t.Errorf("of a unit %+v, of none %+v", ofUnit, none)
	}
	long := strings.Repeat("\U0001F6A4", 200)
	w.do(ctx, "POST", "/calendar-feeds", `{"name":"`+long+`"}`).is(201)
	for body, field := range map[string]string{
		`{}`: "name", `{"name":""}`: "name", `{"name":"` + long + `x"}`: "name", `{"name":"x","unit_id":"x"}`: "unit_id",
		`{"name":"x","unit_id":"un_x"}`: "unit_id", `{"name":"x","include_details":1}`: "include_details",
		`{"name":"x","unit_id":"` + ids.New[domain.UnitPrefix]().String() + `"}`: "unit_id",
	} {
		w.do(ctx, "POST", "/calendar-feeds", body).is(422, "invalid_request", field)
	}
}

// TestTheAddressOfAFeedIsASecret checks that the address is only in the response of create and in its replays, and neither in the
// database nor in other responses.
func TestTheAddressOfAFeedIsASecret(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	first := w.do(ctx, "POST", "/calendar-feeds", `{"name":"x"}`, "Idempotency-Key: k").is(201)
	again := w.do(ctx, "POST", "/calendar-feeds", `{"name":"x"}`, "Idempotency-Key: k").is(201)
	if !bytes.Equal(first.Body, again.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replayed %s\nnot %s", again.Body, first.Body)
	}
	for _, a := range []response{first, again} {
		if a.Header.Get("X-Internal-Idem-Cache") != "no" {
			t.Error("the gateway may cache the response")
		}
	}
	w.do(ctx, "POST", "/calendar-feeds", `{"name":"y"}`, "Idempotency-Key: k").is(422, "idempotency_mismatch")
	f := decode[feed](first)
	token := strings.TrimSuffix((*f.URL)[strings.LastIndex(*f.URL, "/")+1:], ".ics")
	if len(token) != 32 {
		t.Errorf("the token has %d characters", len(token))
	}
	for _, table := range w.tables() {
		if n := w.Count(`select count(*) from `+pgx.Identifier{table}.Sanitize()+` r where strpos(encode(convert_to(r::text, 'utf8'), 'escape'), $1) > 0
			or strpos(r::text, encode(convert_to($1, 'utf8'), 'hex')) > 0`, token); n != 0 {
			t.Errorf("%s holds the token in clear", table)
		}
	}
	w.read(f).is(200)
}

// tables returns all tables of the database.
func (w *world) tables() []string {
	w.T.Helper()
	conn, err := pgx.Connect(w.T.Context(), w.DB.OwnerURL)
	if err != nil {
		w.T.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(w.T.Context(), `select relname::text from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace`)
	if err != nil {
		w.T.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 10 {
		w.T.Fatal(names, err)
	}
	return names
}

// TestTheCapOfFeeds checks that as many of 20 parallel requests for the last places succeed as there are places. Every mode and
// tenant has its own places.
func TestTheCapOfFeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, live := both(ids.New[ids.TenantPrefix](), t)
	for range domain.FeedCap.Most - 3 {
		w.feed(ctx, `{"name":"x"}`)
	}
	responses := make([]response, 20)
	var field sync.WaitGroup
	for i := range responses {
		field.Go(func() { responses[i] = w.do(ctx, "POST", "/calendar-feeds", `{"name":"x"}`) })
	}
	field.Wait()
	var created []feed
	for _, a := range responses {
		if a.Status == 201 {
			created = append(created, decode[feed](a))
		} else {
			a.is(422, "limit_reached", "name")
		}
	}
	if len(created) != 3 {
		t.Errorf("%d of 3 places were given", len(created))
	}
	w.feed(live, `{"name":"x"}`)
	w.do(ctx, "DELETE", "/calendar-feeds/"+created[0].ID, "").is(204)
	w.feed(ctx, `{"name":"x"}`)
	w.do(ctx, "POST", "/calendar-feeds", `{"name":"x"}`).is(422, "limit_reached", "name")
}

// TestFeedsAreIsolated checks that, with two tenants in two modes, ids, lists, and calendars show nothing of each other.
func TestFeedsAreIsolated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []context.Context
	for range 2 {
		test, live := both(ids.New[ids.TenantPrefix](), t)
		all = append(all, test, live)
	}
	day := time.Now().AddDate(0, 0, 3).Format(time.DateOnly)
	var feeds []feed
	var booked []string
	for _, ctx := range all {
		booked = append(booked, w.book(ctx, `"event_date":%q`, day).ID)
		feeds = append(feeds, w.feed(ctx, `{"name":"x"}`))
	}
	for i, ctx := range all {
		for j, f := range feeds {
			status, code := 200, ""
			if i != j {
				status, code = 404, "calendar_feed_not_found"
			}
			if i/2 == j/2 && i != j {
				status, code = 403, "mode_mismatch"
			}
			w.do(ctx, "GET", "/calendar-feeds/"+f.ID, "").is(status, code)
			if i != j {
				w.do(ctx, "DELETE", "/calendar-feeds/"+f.ID, "").is(status, code)
			}
		}
		list := decode[struct{ Data []feed }](w.do(ctx, "GET", "/calendar-feeds", "").is(200)).Data
		if len(list) != 1 || list[0].ID != feeds[i].ID {
			t.Errorf("caller %d lists %+v", i, list)
		}
		if events := w.events(feeds[i]); len(events) != 1 || events[booked[i]] == nil {
			t.Errorf("calendar %d has %v", i, events)
		}
	}
	w.do(all[0], "GET", "/calendar-feeds/cf_x", "").is(404, "calendar_feed_not_found")
}

// TestUnknownCalendars checks that a wrong token, a malformed token, and a deleted feed return the same 404, regardless of the
// rest of the request.
func TestUnknownCalendars(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	f := w.feed(ctx, `{"name":"x"}`)
	path := strings.TrimPrefix(*f.URL, feedBase)
	w.read(f).is(200)
	w.readPath(path+"?x=1").is(422, "invalid_request", "x")
	for _, wrong := range []string{
		"/calendar/" + domain.NewFeedToken() + ".ics", "/calendar/x.ics", "/calendar/.ics", strings.TrimSuffix(path, ".ics"),
		strings.ToUpper(path[:12]) + path[12:] + ".ics", path + ".ics", "/calendar/" + strings.Repeat("a", 31) + "%00.ics",
		"/calendar/" + domain.NewFeedToken() + ".ics?x=1",
	} {
		if strings.HasPrefix(wrong, "/calendar/") {
			w.readPath(wrong).is(404, "calendar_feed_not_found")
		}
	}
	at := "/calendar-feeds/" + f.ID
	w.do(ctx, "DELETE", at, "", `If-Match: "2"`).is(412, "version_mismatch")
	w.do(ctx, "DELETE", at, "", `If-Match: x`).is(422, "invalid_request", "If-Match")
	w.do(ctx, "DELETE", at, "", `If-Match: "1"`).is(204)
	w.read(f).is(404, "calendar_feed_not_found")
	w.do(ctx, "GET", at, "").is(404, "calendar_feed_not_found")
	w.do(ctx, "DELETE", at, "").is(404, "calendar_feed_not_found")
}

// TestTheRangeOfACalendar checks that a calendar contains the bookings from 90 days before today to 400 days after it. The
// operator's clock or test clock determines today. If its feed names a unit, the calendar contains only bookings of that unit.
func TestTheRangeOfACalendar(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), zoned(pgtest.Ctx(t, caller.Test), "Pacific/Auckland")
	noon := time.Date(2031+shift, 5, 10, 13, 0, 0, 0, time.UTC) // the 11th in Auckland
	ctx = w.freeze(ctx, noon)
	s := w.shop(ctx)
	today := time.Date(2031+shift, 5, 11, 0, 0, 0, 0, time.UTC)
	book := func(days int, unit string) string {
		return w.book(ctx, `"event_date":%q%s`, today.AddDate(0, 0, days).Format(time.DateOnly), unit).ID
	}
	first, last := book(-90, ""), book(400, "")
	book(-91, "")
	book(401, "")
	ofAda := book(0, fmt.Sprintf(`,"unit_id":%q`, s.ada))
	events := w.events(w.feed(ctx, `{"name":"x"}`))
	if len(events) != 3 || events[first] == nil || events[last] == nil || events[ofAda] == nil {
		t.Errorf("the calendar has %v", events)
	}
	if events := w.events(w.feed(ctx, `{"name":"x","unit_id":%q}`, s.ada)); len(events) != 1 || events[ofAda] == nil {
		t.Errorf("the unit's calendar has %v", events)
	}
}

// TestEventsOfACalendar checks that an event follows its booking: status, sequence, times, and the customer data that it shows.
func TestEventsOfACalendar(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), zoned(pgtest.Ctx(t, caller.Test), "America/New_York")
	s := w.shop(ctx)
	customer := w.customer(ctx)
	const name = "Ann Smith"
	day := time.Now().AddDate(0, 0, 5).Format(time.DateOnly)
	b := w.book(ctx, `"event_date":%q,"event_start_time":"10:00","event_end_time":"11:30","unit_id":%q,"customer_id":%q,"notes":"Bring; a, hat\n2 dogs"`,
		day, s.ada, customer)
	plain, full := w.feed(ctx, `{"name":"x"}`), w.feed(details(ctx), `{"name":"x","include_details":true}`)
	e := w.events(plain)[b.ID]
	date := strings.ReplaceAll(day, "-", "")
	if prop(e, "STATUS") != "TENTATIVE" || prop(e, "SEQUENCE") != "1" || prop(e, "DTSTART") != date+"T100000" || prop(e, "DTEND") != date+"T113000" ||
		prop(e, "DESCRIPTION") != "" || !strings.HasSuffix(prop(e, "SUMMARY"), " "+b.Number) {
		t.Errorf("the event is %v", e)
	}
	if body := string(w.read(plain).Body); strings.Contains(body, name) || strings.Contains(body, "dogs") {
		t.Errorf("a calendar without details has personal data:\n%s", body)
	}
	if got := prop(w.events(full)[b.ID], "DESCRIPTION"); got != name+"\nBring; a, hat\n2 dogs" {
		t.Errorf("details are %q", got)
	}
	w.patch(ctx, b.ID, `{"status":"confirmed"}`).is(200)
	if e := w.events(plain)[b.ID]; prop(e, "STATUS") != "CONFIRMED" || prop(e, "SEQUENCE") != "2" {
		t.Errorf("confirmed: %v", e)
	}
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(200)
	if e := w.events(plain)[b.ID]; prop(e, "STATUS") != "CANCELLED" || prop(e, "SEQUENCE") != "3" {
		t.Errorf("cancelled: %v", e)
	}
	held := w.book(ctx, `"event_date":%q,"hold_minutes":5`, day)
	w.clock.move(6 * time.Minute)
	if e := w.events(plain)[held.ID]; prop(e, "STATUS") != "CANCELLED" || prop(e, "SEQUENCE") != "2" {
		t.Errorf("a lapsed hold: %v", e)
	}
	w.Exec(`update customers set erased = true, name = 'Erased', version = version + 1`)
	if body := string(w.read(full).Body); strings.Contains(body, name) || strings.Contains(body, "dogs") {
		t.Errorf("an erased customer is in the calendar:\n%s", body)
	}
}

// TestUnchangedCalendars checks that an unchanged calendar returns 304 for any form of its entity tag.
func TestUnchangedCalendars(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	f := w.feed(ctx, `{"name":"x"}`)
	tag := w.read(f).is(200).Header.Get("ETag")
	if again := w.read(f).Header.Get("ETag"); again != tag || !strings.HasPrefix(tag, `W/"`) {
		t.Errorf("entity tags %q and %q", tag, again)
	}
	for _, given := range []string{tag, strings.TrimPrefix(tag, "W/"), `"other", ` + tag, "*"} {
		if a := w.read(f, header("If-None-Match: "+given)).is(304); a.Header.Get("ETag") != tag || len(a.Body) != 0 {
			t.Errorf("%s: %v %s", given, a.Header, a.Body)
		}
	}
	w.read(f, `If-None-Match: "other"`).is(200)
	w.book(ctx, `"event_date":%q`, time.Now().AddDate(0, 0, 1).Format(time.DateOnly))
	w.read(f, header("If-None-Match: "+tag)).is(200)
}

// TestTheBoundsOfACalendar checks that a calendar that exceeds its bounds omits the bookings furthest from today.
func TestTheBoundsOfACalendar(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	c := caller.FromContext(ctx)
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(`insert into bookings (tenant_id, livemode, id, number, status, event_day, timezone, currency, total, gross, deposit, paid, refunded, payment_status, notes)
		select $1, true, gen_random_uuid(), 'B-' || n, 'confirmed', (now() at time zone $2)::date + case when n <= 16000 then n / 42 else -1 - (n - 16000) / 70 end,
			'UTC', 'USD', 0, 0, 0, 0, 0, 'unpaid', repeat(',', 4000) from generate_series(1, 22000) n`, c.Tenant.UUID(), c.Timezone)
	count := func(f feed) (ahead, behind int, size int) {
		body := w.read(f).is(200).Body
		today := time.Now().In(zone).Format("20060102")
		for line := range strings.SplitSeq(string(body), "\r\n") {
			if day, ok := strings.CutPrefix(line, "DTSTART;VALUE=DATE:"); ok && day >= today {
				ahead++
			} else if ok {
				behind++
			}
		}
		return ahead, behind, len(body)
	}
	if ahead, behind, size := count(w.feed(ctx, `{"name":"x"}`)); ahead != domain.CalendarAhead || behind != domain.CalendarBehind || size > 8<<20 {
		t.Errorf("%d ahead, %d behind in %d bytes", ahead, behind, size)
	}
	if ahead, behind, size := count(w.feed(details(ctx), `{"name":"x","include_details":true}`)); ahead < 1000 || behind < 400 || size > 16<<20 {
		t.Errorf("with notes: %d ahead, %d behind in %d bytes", ahead, behind, size)
	}
	days := []string{}
	for line := range strings.SplitSeq(string(w.read(w.feed(ctx, `{"name":"x"}`)).Body), "\r\n") {
		if day, ok := strings.CutPrefix(line, "DTSTART;VALUE=DATE:"); ok {
			days = append(days, day)
		}
	}
	if !slices.IsSorted(days) {
		t.Error("the events are not by day")
	}
}

// The feeds of a suspended tenant, of both modes, return 403, also to a client with a copy, and work again after the resumption.
func TestFeedOfASuspendedTenant(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	f := w.feed(ctx, `{"name":"all"}`)
	etag := w.read(f).is(200).Header.Get("ETag")
	tenant := caller.FromContext(ctx).Tenant
	set := func(status string) {
		t.Helper()
		for _, mode := range []caller.Mode{caller.Live, caller.Test} {
			ctx := pgtest.CtxOf(t, tenant, mode)
			err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
				_, err := tx.Exec(ctx, `insert into tenant_states (tenant_id, livemode, status, version) values (@tenant, @live, @status, 1)
					on conflict (tenant_id, livemode) do update set status = excluded.status`, pg.Args{"status": status})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	set("suspended")
	w.read(f).is(403, "tenant_suspended")
	w.read(f, header("If-None-Match: "+etag)).is(403, "tenant_suspended")
	set("active")
	w.read(f).is(200)
}
