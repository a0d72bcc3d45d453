package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

// offered contains the common fields of services, units, packages, and holiday rules, and some fields that only some of them have.
type offered struct {
	ID           string
	Name         string
	Version      int64
	Active       bool
	Visible      bool
	Status       string
	UnitIDs      []string `json:"unit_ids"`
	ServiceIDs   []string `json:"service_ids"`
	BasePrice    amount   `json:"base_price"`
	DepositType  string   `json:"deposit_type"`
	OpeningHours map[string][][]string
	Recurrence   string
}

// offer creates one row of the catalogue.
func (w *world) offer(ctx context.Context, path, body string) offered {
	w.T.Helper()
	return decode[offered](w.do(ctx, "POST", path, body).is(201))
}

func (w *world) offered(ctx context.Context, path string) offered {
	w.T.Helper()
	return decode[offered](w.do(ctx, "GET", path, "").is(200))
}

// offers returns a body for each collection.
func offers(s shop) map[string]string {
	return map[string]string{
		"/services":      `{"name":"Walk"}`,
		"/units":         `{"name":"Dinghy"}`,
		"/packages":      fmt.Sprintf(`{"name":"Half day","service_id":%q,"base_price":{"amount":100,"currency":"USD"}}`, s.tour),
		"/holiday-rules": `{"name":"R","date_from":"2030-07-01","date_to":"2030-07-02","multiplier_bps":11000}`,
	}
}

// TestOffersAreWritten checks that a read returns what was created. A change increments the version; a change without an effect
// does not.
func TestOffersAreWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	for path, body := range offers(s) {
		created := w.do(ctx, "POST", path, body, "Idempotency-Key: k"+header(path)).is(201)
		o := decode[offered](created)
		if created.Header.Get("Location") != "/api/v1"+path+"/"+o.ID || created.Header.Get("ETag") != `"1"` || o.Version != 1 {
			t.Errorf("%s: %v %+v", path, created.Header, o)
		}
		again := w.do(ctx, "POST", path, body, "Idempotency-Key: k"+header(path)).is(201)
		read := w.do(ctx, "GET", path+"/"+o.ID, "").is(200)
		if string(again.Body) != string(created.Body) || string(read.Body) != string(created.Body) {
			t.Errorf("%s: created %s, replayed %s, read %s", path, created.Body, again.Body, read.Body)
		}
		w.do(ctx, "POST", path, `{"name":"Other"}`, "Idempotency-Key: k"+header(path)).is(422, "idempotency_mismatch")
		same := w.do(ctx, "PATCH", path+"/"+o.ID, fmt.Sprintf(`{"name":%q}`, o.Name)).is(200)
		if string(same.Body) != string(created.Body) {
			t.Errorf("%s: a change of nothing returns %s", path, same.Body)
		}
		w.do(ctx, "PATCH", path+"/"+o.ID, `{"name":"New"}`, `If-Match: "2"`).is(412, "version_mismatch")
		changed := w.do(ctx, "PATCH", path+"/"+o.ID, `{"name":"New"}`, `If-Match: "1"`).is(200)
		if got := decode[offered](changed); got.Name != "New" || got.Version != 2 || changed.Header.Get("ETag") != `"2"` {
			t.Errorf("%s: %+v", path, got)
		}
		if got := w.offered(ctx, path+"/"+o.ID); got.Name != "New" || got.Version != 2 {
			t.Errorf("%s: read %+v", path, got)
		}
		if rows := w.list(ctx, path+"?active=true&limit=100").Data; !slices.ContainsFunc(rows, func(r booking) bool { return r.ID == o.ID }) {
			t.Errorf("%s: not in its list", path)
		}
	}
}

func TestOffersHaveDefaults(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	bodies := offers(w.shop(ctx))
	if o := w.offer(ctx, "/services", bodies["/services"]); !o.Active || len(o.UnitIDs) != 0 {
		t.Errorf("service %+v", o)
	}
	if o := w.offer(ctx, "/units", bodies["/units"]); o.Status != "active" || o.OpeningHours != nil {
		t.Errorf("unit %+v", o)
	}
	if o := w.offer(ctx, "/packages", bodies["/packages"]); !o.Active || !o.Visible || o.DepositType != "none" {
		t.Errorf("package %+v", o)
	}
	if o := w.offer(ctx, "/holiday-rules", bodies["/holiday-rules"]); !o.Active || o.Recurrence != "none" {
		t.Errorf("rule %+v", o)
	}
}

// TestLinksOfServicesAndUnits checks that a link is visible from both ends, and that a new link changes both.
func TestLinksOfServicesAndUnits(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	a, b := w.offer(ctx, "/units", `{"name":"A"}`), w.offer(ctx, "/units", `{"name":"B"}`)
	s := w.offer(ctx, "/services", fmt.Sprintf(`{"name":"S","unit_ids":[%q,%q,%q]}`, b.ID, a.ID, b.ID))
	if !slices.Equal(s.UnitIDs, []string{a.ID, b.ID}) {
		t.Errorf("units %v", s.UnitIDs)
	}
	want := func(path string, version int64, links ...string) {
		t.Helper()
		if o := w.offered(ctx, path); o.Version != version || !slices.Equal(append(o.UnitIDs, o.ServiceIDs...), links) {
			t.Errorf("%s: version %d with %v and %v; want %d with %v", path, o.Version, o.UnitIDs, o.ServiceIDs, version, links)
		}
	}
	want("/units/"+a.ID, 2, s.ID)
	w.do(ctx, "PATCH", "/services/"+s.ID, fmt.Sprintf(`{"unit_ids":[%q]}`, a.ID)).is(200)
	want("/services/"+s.ID, 2, a.ID)
	want("/units/"+a.ID, 2, s.ID)
	want("/units/"+b.ID, 3)
	w.do(ctx, "PATCH", "/units/"+b.ID, fmt.Sprintf(`{"service_ids":[%q]}`, s.ID)).is(200)
	want("/services/"+s.ID, 3, a.ID, b.ID)
	w.do(ctx, "PATCH", "/units/"+a.ID, `{"service_ids":[]}`).is(200)
	want("/services/"+s.ID, 4, b.ID)
	want("/units/"+a.ID, 3)
}

// TestLinksAtOnce checks that many parallel changes of the same links all succeed, and that no version is assigned twice.
func TestLinksAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	var units, services []string
	for range 3 {
		units = append(units, w.offer(ctx, "/units", `{"name":"U"}`).ID)
		services = append(services, w.offer(ctx, "/services", `{"name":"S"}`).ID)
	}
	var wg sync.WaitGroup
	for n := range 60 {
		wg.Go(func() {
			body := fmt.Sprintf(`{"%s":[%q,%q]}`, []string{"unit_ids", "service_ids"}[n%2], [][]string{units, services}[n%2][n%3], [][]string{units, services}[n%2][(n+1)%3])
			w.do(ctx, "PATCH", []string{"/services/" + services[n%3], "/units/" + units[n%3]}[n%2], body).is(200)
		})
	}
	wg.Wait()
	for _, u := range units {
		for _, s := range w.offered(ctx, "/units/"+u).ServiceIDs {
			if !slices.Contains(w.offered(ctx, "/services/"+s).UnitIDs, u) {
				t.Errorf("unit %s has service %s, and not the other way round", u, s)
			}
		}
	}
}

// TestOfferBounds checks each field at its limits and one beyond them, for creates and for updates.
func TestOfferBounds(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	bodies := offers(s)
	ids := map[string]string{}
	for path, body := range bodies {
		ids[path] = w.offer(ctx, path, body).ID
	}
	hours := func(v string) string { return `{"mon":` + v + `}` }
	for _, tc := range []struct{ path, field, value, wrong string }{
		{"", "name", str(strings.Repeat(emoji, 200)), ""},
		{"", "name", str(strings.Repeat("n", 201)), "name"},
		{"", "name", `""`, "name"},
		{"", "name", `null`, "name"},
		{"/services", "description", str(strings.Repeat(emoji, 5000)), ""},
		{"/services", "description", str(strings.Repeat("d", 5001)), "description"},
		{"/services", "duration_minutes", `1`, ""},
		{"/services", "duration_minutes", `2147483647`, ""},
		{"/services", "duration_minutes", `2147483648`, "duration_minutes"},
		{"/services", "duration_minutes", `0`, "duration_minutes"},
		{"/services", "duration_minutes", `null`, ""},
		{"/services", "slot_step_minutes", `5`, ""},
		{"/services", "slot_step_minutes", `2147483647`, ""},
		{"/services", "slot_step_minutes", `4`, "slot_step_minutes"},
		{"/services", "buffer_before_minutes", `1440`, ""},
		{"/services", "buffer_before_minutes", `1441`, "buffer_before_minutes"},
		{"/services", "buffer_after_minutes", `-1`, "buffer_after_minutes"},
		{"/services", "active", `"yes"`, "active"},
		{"/services", "unit_ids", `["un_x"]`, "unit_ids.0"},
		{"/services", "unit_ids", `["` + s.ada.String() + `","` + id0() + `"]`, "unit_ids.1"},
		{"/services", "unit_ids", `["` + s.ada.String() + `"]`, ""},
		{"/units", "status", `"retired"`, ""},
		{"/units", "status", `"sunk"`, "status"},
		{"/units", "capacity", `0`, ""},
		{"/units", "capacity", `-1`, "capacity"},
		{"/units", "capacity", `2147483648`, "capacity"},
		{"/units", "opening_hours", `null`, ""},
		{"/units", "opening_hours", `{}`, ""},
		{"/units", "opening_hours", hours(`[["22:00","02:00"]]`), ""},
		{"/units", "opening_hours", hours(`[["09:00","24:00"]]`), ""},
		{"/units", "opening_hours", hours(`[["24:00","02:00"]]`), "opening_hours.mon.0.0"},
		{"/units", "opening_hours", hours(`[["9:00","12:00"]]`), "opening_hours.mon.0.0"},
		{"/units", "opening_hours", hours(`[["09:00"]]`), "opening_hours.mon.0"},
		{"/units", "opening_hours", hours(`[["09:00","12:00"],["11:00","13:00"]]`), "opening_hours.mon.1"},
		{"/units", "opening_hours", `{"monday":[]}`, "opening_hours.monday"},
		{"/units", "opening_hours", `[]`, "opening_hours"},
		{"/units", "service_ids", `["srv_x"]`, "service_ids.0"},
		{"/packages", "service_id", `"srv_x"`, "service_id"},
		{"/packages", "service_id", `null`, "service_id"},
		{"/packages", "base_price", `{"amount":0,"currency":"USD"}`, ""},
		{"/packages", "base_price", `{"amount":99999999999,"currency":"USD"}`, ""},
		{"/packages", "base_price", `{"amount":100000000000,"currency":"USD"}`, "base_price.amount"},
		{"/packages", "base_price", `{"amount":-1,"currency":"USD"}`, "base_price.amount"},
		{"/packages", "base_price", `{"amount":1.5,"currency":"USD"}`, "base_price.amount"},
		{"/packages", "base_price", `{"amount":1,"currency":"EUR"}`, "base_price.currency"},
		{"/packages", "base_price", `{"amount":1}`, "base_price.currency"},
		{"/packages", "deposit_type", `"half"`, "deposit_type"},
		{"/packages", "deposit_value", `-1`, "deposit_value"},
		{"/packages", "duration_minutes", `2147483647`, ""},
		{"/packages", "unit_ids", `["` + id0() + `"]`, "unit_ids.0"},
		{"/packages", "visible", `false`, ""},
		{"/holiday-rules", "multiplier_bps", `0`, ""},
		{"/holiday-rules", "multiplier_bps", `2147483647`, ""},
		{"/holiday-rules", "multiplier_bps", `2147483648`, "multiplier_bps"},
		{"/holiday-rules", "multiplier_bps", `-1`, "multiplier_bps"},
		{"/holiday-rules", "date_from", `"2030-07-02"`, ""},
		{"/holiday-rules", "date_from", `"2030-07-03"`, "date_to"},
		{"/holiday-rules", "date_from", `"2030-02-30"`, "date_from"},
		{"/holiday-rules", "date_to", `"2200-01-01"`, "date_to"},
		{"/holiday-rules", "recurrence", `"weekly"`, "recurrence"},
		{"/holiday-rules", "applies_to", `"all"`, ""},
		{"/holiday-rules", "applies_to", `{"service_ids":["` + s.tour.String() + `"]}`, ""},
		{"/holiday-rules", "applies_to", `{"package_ids":["` + s.flat.String() + `"]}`, ""},
		{"/holiday-rules", "applies_to", `{"package_ids":["` + s.flat.String() + `","pkg_x"]}`, "applies_to.package_ids.1"},
		{"/holiday-rules", "applies_to", `{"service_ids":[]}`, "applies_to.service_ids"},
		{"/holiday-rules", "applies_to", `"some"`, "applies_to"},
		{"/holiday-rules", "priority", `-2147483648`, ""},
		{"/holiday-rules", "priority", `2147483648`, "priority"},
	} {
		for path := range bodies {
			if tc.path != "" && tc.path != path {
				continue
			}
			created := w.do(ctx, "POST", path, with(t, bodies[path], tc.field, tc.value))
			changed := w.do(ctx, "PATCH", path+"/"+ids[path], "{"+str(tc.field)+":"+tc.value+"}")
			for _, a := range []response{created, changed} {
				if tc.wrong != "" {
					a.is(422, "invalid_request", tc.wrong)
				} else if a.Status > 201 {
					t.Errorf("%s %s = %.60s: %d %s", path, tc.field, tc.value, a.Status, a.Body)
				}
			}
		}
	}
}

// TestTheLongestDuration checks that a duration that leads beyond the last date is refused when it is used, and results in no
// slots.
func TestTheLongestDuration(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	u := w.offer(ctx, "/units", `{"name":"U"}`)
	s := w.offer(ctx, "/services", fmt.Sprintf(`{"name":"S","duration_minutes":2147483647,"slot_step_minutes":2147483647,"unit_ids":[%q]}`, u.ID))
	w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-01","event_start_time":"10:00","service_id":%q}`, s.ID)).is(422, "invalid_request", "event_end_time")
	w.post(ctx, fmt.Sprintf(`{"starts_at":"2030-05-01T10:00:00Z","service_id":%q}`, s.ID)).is(422, "invalid_request", "ends_at")
	w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"11:00","service_id":%q}`, s.ID)).is(201)
	if d := w.days(ctx, "from=2030-05-01&to=2030-05-01")[0]; d.Status != "closed" || d.statuses(u.ID) != "" {
		t.Errorf("%+v", d)
	}
}

// TestUnitsComeAndGo checks that a retired unit and a unit in maintenance accept no bookings, and that both can be reactivated.
func TestUnitsComeAndGo(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	u := w.offer(ctx, "/units", `{"name":"U"}`)
	for n, status := range []string{"retired", "maintenance", "active"} {
		w.do(ctx, "PATCH", "/units/"+u.ID, `{"status":`+str(status)+`}`).is(200)
		a := w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-0%d","unit_id":%q}`, n+1, u.ID))
		if status == "active" {
			a.is(201)
		} else {
			a.is(422, "invalid_request", "unit_id")
		}
	}
}

// with returns the JSON object with the field set to a new value.
func with(t *testing.T, object, field, value string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatal(err)
	}
	fields[field] = json.RawMessage(value)
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func id0() string { return id[domain.UnitPrefix]().String() }
