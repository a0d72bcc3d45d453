package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01","event_start_time":"10:00","package_id":"%s","unit_id":"%s"`, s.flat, s.ada)
	a := w.patch(ctx, b.ID, `{"notes":"n","event_type":"t","metadata":["a","b"]}`).is(200)
	if got := a.booking(); got.Version != 2 || *got.Notes != "n" || string(got.Metadata) != `["a","b"]` || a.Header.Get("ETag") != `"2"` || a.Header.Get("Location") != "" {
		t.Errorf("got %s", a.Body)
	}
	e := w.Events()[1]
	if e.GetType() != "booking.updated" || string(e.GetPreviousAttributes()) != `{"event_type":null,"notes":null,"metadata":{}}` ||
		string(e.GetObject()) != string(a.Body) || e.GetResourceVersion() != 2 {
		t.Errorf("event %s %s", e.GetType(), e.GetPreviousAttributes())
	}
	if got := w.patch(ctx, b.ID, `{"notes":"n","event_start_time":"10:00","unknown":1,"status":"pending"}`).is(200); string(got.Body) != string(a.Body) {
		t.Errorf("a change that changes nothing: %s", got.Body)
	}
	moved := w.patch(ctx, b.ID, `{"event_start_time":"13:00","notes":null,"metadata":[]}`).is(200).booking()
	if *moved.EventEndTime != "15:00" || moved.Notes != nil || string(moved.Metadata) != `{}` {
		t.Errorf("an end that follows from the duration moves along: %+v", moved)
	}
	july := w.patch(ctx, b.ID, `{"event_date":"2030-07-04"}`).is(200).booking()
	if july.TotalAmount.Amount != 19999 || !july.StartsAt.Equal(time.Date(2030, 7, 4, 17, 0, 0, 0, time.UTC)) {
		t.Errorf("a changed day is not priced again: %+v", july)
	}
	other := w.patch(ctx, b.ID, fmt.Sprintf(`{"package_id":"%s"}`, s.share)).is(200).booking()
	if other.TotalAmount.Amount != 1151 || other.DepositAmount.Amount != 576 || *other.EventEndTime != "15:00" {
		t.Errorf("a changed package is priced again, at the day's price: %+v", other)
	}
	fixed := w.patch(ctx, b.ID, `{"event_end_time":"18:00"}`).is(200).booking()
	fixed = w.patch(ctx, fixed.ID, `{"event_start_time":"14:00"}`).is(200).booking()
	if *fixed.EventEndTime != "19:00" {
		t.Errorf("a new start keeps the length: %+v", fixed)
	}
	derived := w.patch(ctx, b.ID, `{"event_end_time":null}`).is(200).booking()
	if *derived.EventEndTime != "15:00" {
		t.Errorf("a cleared end follows from the package's duration: %+v", derived)
	}
	whole := w.patch(ctx, b.ID, `{"event_start_time":null}`).is(200).booking()
	if whole.EventStartTime != nil || whole.EndsAt.Sub(*whole.StartsAt) != 24*time.Hour {
		t.Errorf("without a start it is the whole day: %+v", whole)
	}
	none := w.patch(ctx, b.ID, `{"unit_id":null}`).is(200).booking()
	if none.StartsAt != nil || w.Count(`select count(*) from unit_claims`) != 0 {
		t.Errorf("no unit, no claim: %+v", none)
	}
	yen := w.patch(ctx, b.ID, fmt.Sprintf(`{"package_id":"%s","event_date":"2031-01-01"}`, s.yen)).is(200).booking()
	if yen.TotalAmount != (amount{253, "JPY"}) || yen.AmountDue != yen.TotalAmount || *yen.ServiceID != s.rental.String() {
		t.Errorf("the package's currency and service: %+v", yen)
	}
	if got, want := w.Types(), "created"+strings.Repeat(" updated", int(yen.Version)-1); got != want {
		t.Errorf("%d versions, events %s", yen.Version, got)
	}
}

func TestIfMatch(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	b := w.book(ctx, `"event_date":"2030-05-01"`)
	w.patch(ctx, b.ID, `{"notes":"1"}`, `If-Match: "2"`).is(412, "version_mismatch")
	w.patch(ctx, b.ID, `{"notes":"1"}`, `If-Match: "1"`).is(200)
	w.patch(ctx, b.ID, `{"notes":"2"}`, `If-Match: "1"`).is(412, "version_mismatch")
	w.patch(ctx, b.ID, `{"notes":"2"}`, `If-Match: *`).is(200)
	w.patch(ctx, b.ID, `{"notes":"2"}`, `If-Match: 3`).is(422, "invalid_request", "If-Match")
	w.patch(ctx, b.ID, `{"unit_id":"un_x"}`, `If-Match: "1"`).is(422, "invalid_request", "unit_id") // fields first
	w.patch(ctx, b.ID, `{"status":"completed"}`, `If-Match: "1"`).is(412)                           // state last
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "", `If-Match: "1"`).is(412, "version_mismatch")
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "", `If-Match: "3"`).is(200)
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	to := func(b booking, status string) response { return w.patch(ctx, b.ID, `{"status":"`+status+`"}`) }
	refused := func(b booking, list ...string) {
		t.Helper()
		before := w.get(ctx, b.ID)
		for _, status := range list {
			to(b, status).is(422, "invalid_status_transition", "status")
		}
		if after := w.get(ctx, b.ID); after.Version != before.Version {
			t.Error("a refused change left a trace")
		}
	}
	slot := 0
	fresh := func(extra string) booking {
		slot++
		return w.book(ctx, `"event_date":"2030-05-%02d","event_start_time":"10:00","service_id":"%s","unit_id":"%s"%s`, slot, s.tour, s.ada, extra)
	}
	b := fresh("")
	refused(b, "expired", "completed", "no_show")
	if c := to(b, "confirmed").is(200).booking(); c.ConfirmedAt == nil || c.Version != 2 {
		t.Errorf("confirmed: %+v", c)
	}
	if c := to(b, "confirmed").is(200).booking(); c.Version != 2 {
		t.Error("the same status again is no change")
	}
	refused(b, "pending", "expired")
	if w.Count(`select count(*) from unit_claims`) != 1 {
		t.Error("a confirmed booking holds its unit")
	}
	refused(b, "completed", "no_show") // before its start
	w.clock.moveTo(b.StartsAt.Add(time.Second))
	if c := to(b, "completed").is(200).booking(); c.CompletedAt == nil {
		t.Errorf("completed: %+v", c)
	}
	refused(b, "pending", "confirmed", "cancelled", "expired")
	w.clock.moveTo(b.EndsAt.Add(7*24*time.Hour - time.Minute))
	if c := to(b, "no_show").is(200).booking(); c.CompletedAt != nil {
		t.Errorf("no_show: %+v", c)
	}
	to(b, "completed").is(200)
	w.clock.moveTo(b.EndsAt.Add(7*24*time.Hour + time.Minute))
	refused(b, "no_show")
	to(b, "completed").is(200)

	c := fresh(`,"status":"confirmed"`)
	gone := to(c, "canceled").is(200).booking()
	if gone.Status != "cancelled" || gone.CancelledAt == nil || gone.Cancellation == nil || gone.Cancellation.Reason != nil {
		t.Errorf("cancelled: %+v", gone)
	}
	refused(c, "pending", "confirmed", "completed", "no_show", "expired")
	to(c, "cancelled").is(200)
	if w.Count(`select count(*) from unit_claims`) != 0 {
		t.Error("neither a completed nor a cancelled booking holds its unit")
	}
	for field, value := range map[string]string{
		"event_date": `"2030-01-01"`, "event_start_time": `"10:00"`, "event_end_time": `null`, "starts_at": `"2030-01-01T10:00:00Z"`, "ends_at": `null`, "event_type": `"x"`, "customer_id": `null`,
		"service_id": `null`, "unit_id": `null`, "package_id": `null`, "guest_count": `1`,
	} {
		w.patch(ctx, c.ID, fmt.Sprintf(`{"notes":"no",%q:%s}`, field, value)).is(422, "invalid_request", field)
	}
	if got := w.patch(ctx, c.ID, `{"notes":"yes","metadata":{"a":"b"},"status":"cancelled"}`).is(200).booking(); *got.Notes != "yes" {
		t.Errorf("notes of a final booking: %+v", got)
	}
	if got := w.Types(); got != "created updated updated updated updated created cancelled updated" {
		t.Errorf("events: %s", got)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	body := fmt.Sprintf(`{"event_date":"2030-05-01","unit_id":"%s"}`, s.ada)
	b := w.post(ctx, body).is(201).booking()
	w.post(ctx, body).is(409, "slot_unavailable")
	a := w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", `{"reason":"rain"}`).is(200)
	if got := a.booking(); got.Status != "cancelled" || *got.Cancellation.Reason != "rain" || got.Version != 2 {
		t.Errorf("got %s", a.Body)
	}
	if again := w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", `{"reason":"snow"}`).is(200); string(again.Body) != string(a.Body) {
		t.Errorf("cancelled twice: %s", again.Body)
	}
	w.post(ctx, body).is(201)
	if got := w.Types(); got != "created cancelled created" {
		t.Errorf("events: %s", got)
	}
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", `{"reason":`+str(strings.Repeat("é", 5001))+`}`).is(422, "invalid_request", "reason")
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", `{`).is(400, "malformed_json")
}

func TestHolds(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	slot := fmt.Sprintf(`"starts_at":"2030-05-01T12:00:00Z","service_id":"%s","unit_id":"%s"`, s.tour, s.ada)
	b := w.book(ctx, slot+`,"hold_minutes":10`)
	other := w.book(ctx, `"event_date":"2030-06-01","unit_id":"%s","hold_minutes":10`, s.ada)
	w.clock.move(9 * time.Minute)
	w.post(ctx, "{"+slot+"}").is(409, "slot_unavailable")
	w.clock.move(2 * time.Minute)
	if got := w.get(ctx, b.ID); got.Status != "expired" || got.Version != 2 || got.HoldExpiresAt == nil {
		t.Errorf("a lapsed hold is expired to readers: %+v", got)
	}
	for query, n := range map[string]int{"status=pending": 0, "status=expired": 2, "status=expired,pending": 2, "": 2, "status=confirmed": 0} {
		if got := decode[list](w.do(ctx, "GET", "/bookings?"+query, "").is(200)); len(got.Data) != n {
			t.Errorf("%s: %d rows", query, len(got.Data))
		}
	}
	w.patch(ctx, b.ID, `{"status":"confirmed"}`).is(422, "invalid_status_transition", "status")
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(422, "invalid_status_transition", "status")
	w.patch(ctx, b.ID, `{"unit_id":null}`).is(422, "invalid_request", "unit_id")
	if got := w.Types(); got != "created created" {
		t.Errorf("what is refused writes nothing: %s", got)
	}
	taken := w.book(ctx, slot)
	e := w.Events()
	if got := w.Types(); got != "created created updated created" || e[2].GetObjectId() != b.ID || e[2].GetResourceVersion() != 2 ||
		string(e[2].GetPreviousAttributes()) != `{"status":"pending"}` {
		t.Errorf("the create expires the hold first: %s %s", got, e[2].GetPreviousAttributes())
	}
	if n := w.Count(`select count(*) from bookings where status = 'pending' and hold_expires_at is not null`); n != 1 {
		t.Errorf("holds elsewhere are left to others: %d", n)
	}
	if got := w.get(ctx, b.ID); got.Status != "expired" || got.Version != 2 {
		t.Errorf("%+v", got)
	}
	// A note on a lapsed hold writes the expiry first, then the note. If-Match compares with the version that readers saw.
	w.patch(ctx, other.ID, `{"notes":"late"}`, `If-Match: "1"`).is(412)
	if got := w.patch(ctx, other.ID, `{"notes":"late"}`, `If-Match: "2"`).is(200).booking(); got.Version != 3 || got.Status != "expired" {
		t.Errorf("%+v", got)
	}
	if got := w.Types(); got != "created created updated created updated updated" {
		t.Errorf("events: %s", got)
	}
	if n := w.Count(`select count(*) from unit_claims`); n != 1 {
		t.Errorf("%d claims", n)
	}
	// A move onto a lapsed hold also expires it. A confirmed hold no longer lapses.
	hold := w.book(ctx, `"starts_at":"2030-07-01T12:00:00Z","service_id":"%s","unit_id":"%s","hold_minutes":1`, s.tour, s.bee)
	confirmed := w.book(ctx, `"starts_at":"2030-08-01T12:00:00Z","service_id":"%s","unit_id":"%s","hold_minutes":1`, s.tour, s.bee)
	if got := w.patch(ctx, confirmed.ID, `{"status":"confirmed"}`).is(200).booking(); got.HoldExpiresAt != nil {
		t.Errorf("%+v", got)
	}
	w.clock.move(2 * time.Minute)
	w.patch(ctx, taken.ID, fmt.Sprintf(`{"event_date":"2030-07-01","unit_id":"%s"}`, s.bee)).is(200)
	w.patch(ctx, taken.ID, `{"event_date":"2030-08-01"}`).is(409, "slot_unavailable")
	if got := w.get(ctx, hold.ID); got.Status != "expired" || w.get(ctx, confirmed.ID).Status != "confirmed" {
		t.Errorf("%+v", got)
	}
}
