package api_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

func TestCreateWithPackage(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s, customer := w.shop(ctx), w.customer(ctx)
	a := w.post(ctx, `{"event_date":"2030-07-04","event_start_time":"10:00","package_id":"`+s.flat.String()+`","unit_id":"`+s.ada.String()+`",
		"customer_id":"`+customer+`","guest_count":10,"event_type":"birthday","notes":"<b>&","metadata":{"b":"1","a":"2"}}`).is(201)
	b := a.booking()
	if a.Header.Get("Location") != "/api/v1/bookings/"+b.ID || a.Header.Get("ETag") != `"1"` {
		t.Errorf("headers: %v", a.Header)
	}
	if b.TotalAmount != (amount{22999, "USD"}) || b.DepositAmount != (amount{5000, "USD"}) || b.AmountDue != b.TotalAmount {
		t.Errorf("total %v, deposit %v, due %v", b.TotalAmount, b.DepositAmount, b.AmountDue)
	}
	if h := b.PackageSnapshot.Holiday; h == nil || h.Name != "July" || h.MultiplierBps != 11500 {
		t.Errorf("holiday %+v", h)
	}
	if *b.ServiceID != s.tour.String() || *b.EventStartTime != "10:00" || *b.EventEndTime != "12:00" ||
		!b.StartsAt.Equal(time.Date(2030, 7, 4, 14, 0, 0, 0, time.UTC)) || !b.EndsAt.Equal(time.Date(2030, 7, 4, 16, 0, 0, 0, time.UTC)) ||
		!b.EventDate.Equal(time.Date(2030, 7, 4, 4, 0, 0, 0, time.UTC)) {
		t.Errorf("times: %s", a.Body)
	}
	if b.Status != "pending" || b.PaymentStatus != "unpaid" || b.HoldExpiresAt != nil || b.Number != "B-000001" || b.Version != 1 ||
		string(b.Metadata) != `{"b":"1","a":"2"}` || *b.CustomerID != customer || *b.Notes != "<b>&" {
		t.Errorf("got %s", a.Body)
	}
	if got := w.do(ctx, "GET", "/bookings/"+b.ID, "").is(200); string(got.Body) != string(a.Body) || got.Header.Get("ETag") != `"1"` {
		t.Errorf("GET differs:\n%s\n%s", got.Body, a.Body)
	}
	e := w.Events()
	if len(e) != 1 || e[0].GetType() != "booking.created" || string(e[0].GetObject()) != string(a.Body) || string(e[0].GetPreviousAttributes()) != "{}" ||
		e[0].GetObjectId() != b.ID || e[0].GetResourceVersion() != 1 {
		t.Errorf("events: %v", e)
	}
	w.post(ctx, `{"event_date":"2030-07-04","event_start_time":"11:00","package_id":"`+s.flat.String()+`","unit_id":"`+s.ada.String()+`"}`).is(409, "slot_unavailable")
	if got := w.Types(); got != "created" {
		t.Errorf("events after the clash: %s", got)
	}
	if n := w.customers.Calls(); n != 1 {
		t.Errorf("%d look-ups of the customer", n)
	}
	w.post(ctx, `{"event_date":"2030-07-05","customer_id":"`+customer+`"}`).is(201)
	if n := w.customers.Calls(); n != 1 {
		t.Errorf("%d look-ups of a known customer", n)
	}
}
