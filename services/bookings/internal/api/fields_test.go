package api_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
	publicapi "holdfast.dev/proto/api"
)

// TestEachFieldOfTheCatalogueIsWritten checks that a writable field is returned as it was written, in the response and in the
// next read.
func TestEachFieldOfTheCatalogueIsWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	bodies := offers(s)
	service, unit := w.offer(ctx, "/services", `{"name":"S"}`).ID, w.offer(ctx, "/units", `{"name":"U"}`).ID
	written := func(path, body string, same func(t *testing.T, sent string, response []byte, except ...string)) {
		t.Helper()
		at := path + "/" + w.offer(ctx, path, bodies[path]).ID
		same(t, body, w.do(ctx, "PATCH", at, body).is(200).Body)
		same(t, body, w.do(ctx, "GET", at, "").is(200).Body)
		same(t, body, w.do(ctx, "POST", path, body).is(201).Body)
	}
	written("/services", fmt.Sprintf(`{"name":"New","description":"D","duration_minutes":90,"slot_step_minutes":30,"buffer_before_minutes":5,
		"buffer_after_minutes":10,"active":false,"unit_ids":[%q],"default_taxes":[{"name":"GST","rate":"5"},{"name":"QST","rate":"9.975"}]}`, unit), apitest.Written[publicapi.ServiceUpdate])
	written("/units", fmt.Sprintf(`{"name":"New","description":"D","service_ids":[%q],"status":"maintenance","capacity":7,"booking_mode":"seats",
		"opening_hours":{"mon":[["09:00","17:00"]]}}`, service), apitest.Written[publicapi.UnitUpdate])
	written("/packages", fmt.Sprintf(`{"service_id":%q,"name":"New","description":"D","base_price":{"amount":5,"currency":"USD"},
		"pricing":"per_guest","deposit_type":"percentage","deposit_value":1000,"duration_minutes":45,"unit_ids":[%q],"visible":false,"active":false}`,
		service, unit), apitest.Written[publicapi.PackageUpdate])
	written("/holiday-rules", fmt.Sprintf(`{"name":"New","date_from":"2030-08-01","date_to":"2030-08-02","recurrence":"yearly",
		"multiplier_bps":12000,"applies_to":{"service_ids":[%q]},"priority":3,"stackable":true,"active":false}`,
		service), apitest.Written[publicapi.HolidayRuleUpdate])
	bodies["/closures"] = `{"name":"C","date_from":"2030-07-01","date_to":"2030-07-02"}`
	written("/closures", fmt.Sprintf(`{"name":"New","date_from":"2030-08-01","date_to":"2030-08-02","unit_ids":[%q]}`, unit), closureWritten("starts_at", "ends_at"))
	written("/closures", `{"name":"New","unit_ids":null,"starts_at":"2030-08-01T10:00:00Z","ends_at":"2030-08-01T11:00:00Z"}`, closureWritten("date_from", "date_to"))
}

// closureWritten compares a closure with what was sent in one of the two forms of its time.
func closureWritten(others ...string) func(t *testing.T, sent string, response []byte, except ...string) {
	return func(t *testing.T, sent string, response []byte, except ...string) {
		t.Helper()
		apitest.Written[publicapi.ClosureUpdate](t, sent, response, append(except, others...)...)
	}
}

// TestACreateHasTheFieldsOfAnUpdate checks that creates and updates have the same fields, because one function converts both
// bodies.
func TestACreateHasTheFieldsOfAnUpdate(t *testing.T) {
	t.Parallel()
	apitest.SameFields[publicapi.ServiceCreate, publicapi.ServiceUpdate](t)
	apitest.SameFields[publicapi.UnitCreate, publicapi.UnitUpdate](t)
	apitest.SameFields[publicapi.PackageCreate, publicapi.PackageUpdate](t)
	apitest.SameFields[publicapi.HolidayRuleCreate, publicapi.HolidayRuleUpdate](t)
	apitest.SameFields[publicapi.ClosureCreate, publicapi.ClosureUpdate](t)
}

func TestEachFieldOfABookingIsWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	all := func(day string) string {
		return fmt.Sprintf(`{"event_date":%q,"event_start_time":"10:00","event_end_time":"11:00","event_type":"t","guest_count":2,
			"notes":"n","metadata":{"k":"v"},"status":"confirmed","customer_id":%q,"service_id":%q,"unit_id":%q,"package_id":%q}`,
			day, w.customer(ctx), s.tour, s.ada, s.flat)
	}
	body, at := all("2031-01-07"), "/bookings/"+w.book(ctx, `"event_date":"2031-01-09"`).ID
	written := func(body string, except ...string) {
		t.Helper()
		apitest.Written[publicapi.BookingUpdate](t, body, w.do(ctx, "PATCH", at, body).is(200).Body, except...)
		apitest.Written[publicapi.BookingUpdate](t, body, w.do(ctx, "GET", at, "").is(200).Body, except...)
	}
	written(body, "event_date", "starts_at", "ends_at")
	instants := `"starts_at":"2031-01-10T15:00:00Z","ends_at":"2031-01-12T15:00:00Z"`
	written(strings.Replace(body, `"event_date":"2031-01-07","event_start_time":"10:00","event_end_time":"11:00"`, instants, 1), "event_date", "event_start_time", "event_end_time")
	body = strings.Replace(all("2031-01-08"), "{", `{"exclusive":true,`, 1)
	created := w.post(ctx, body).is(201)
	other := []string{"event_date", "starts_at", "ends_at", "hold_minutes"}
	apitest.Written[publicapi.BookingCreate](t, body, created.Body, other...)
	apitest.Written[publicapi.BookingCreate](t, body, w.do(ctx, "GET", "/bookings/"+created.booking().ID, "").is(200).Body, other...)
}
