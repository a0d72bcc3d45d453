package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// BenchmarkMonth measures the console's work for a month of 50 units with four bookings each day. The response of bookings is
// prepared.
func BenchmarkMonth(b *testing.B) {
	p := newPlatform(&testing.T{}, options{})
	units, bookings := []any{}, []any{}
	day := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	for u := range 50 {
		unit := fmt.Sprintf("un_01k%023d", u)
		units = append(units, map[string]any{"id": unit, "name": fmt.Sprint("Unit ", u), "status": "active", "opening_hours": nil})
		for i := range 31 * 4 {
			one := calendarBooking()
			at := day.AddDate(0, 0, i/4).Add(time.Duration(14+2*(i%4)) * time.Hour)
			one["id"], one["number"], one["unit_id"], one["event_local_date"] = fmt.Sprintf("bk_01k%023d", u*1000+i), fmt.Sprintf("B-%06d", u*1000+i), unit, at.Format(time.DateOnly)
			one["starts_at"], one["ends_at"] = at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339)
			bookings = append(bookings, one)
		}
	}
	fixed := func(o any) func(call) response {
		raw, err := json.Marshal(o)
		if err != nil {
			b.Fatal(err)
		}
		return func(call) response { return response{http.StatusOK, json.RawMessage(raw)} }
	}
	p.setResponse("listUnits", fixed(map[string]any{"data": units, "has_more": false}))
	p.setResponse("listCalendar", fixed(map[string]any{"data": bookings, "timezone": "America/New_York", "truncated": false}))
	size := 0
	for b.Loop() {
		w := p.send(request{Method: http.MethodGet, Path: "/admin/alpha/test/calendar?view=month&date=2027-03-01", Token: "owner", Header: map[string]string{"Accept-Encoding": "gzip"}})
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
		size = w.Body.Len()
		p.forget()
	}
	b.ReportMetric(float64(size), "B/page")
}
