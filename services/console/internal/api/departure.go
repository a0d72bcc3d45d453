package api

import (
	"net/http"
	"net/url"
	"time"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
)

// departureRows is the largest number of bookings of a unit and a day that the page of a departure reads.
const departureRows = 500

// departure shows the bookings of a slot of a unit in seats mode. Without a slot, it shows the calendar, which links to all of them.
func departure(p *page) error {
	q := p.r.URL.Query()
	if !p.can("listBookings") || !p.can("getUnit") {
		return domain.ErrForbidden
	}
	at, err := time.Parse(time.RFC3339Nano, q.Get("starts_at"))
	if err != nil || q.Get("unit_id") == "" {
		return calendar(p)
	}
	unit, err := p.app.Get(p.r.Context(), domain.ResourceNamed("units"), q.Get("unit_id"))
	if err != nil {
		return err
	}
	day := at.In(p.Zone).Format(time.DateOnly)
	query := url.Values{"unit_id": {unit.Text("id")}, "event_date_from": {day}, "event_date_to": {day}}
	list := domain.ResourceNamed("bookings")
	all := p.workspace.Path(list.Name) + "?" + query.Encode()
	if p.canExpand("customer") {
		query.Set("expand", "customer")
	}
	found, err := p.app.All(p.r.Context(), list.List, query, departureRows)
	if err != nil {
		return err
	}
	count := domain.Departure{Seats: unit.Count("capacity")}
	guests, absent := ofDeparture(found, at, &count)
	r := *list
	r.Columns = []string{"number", customerField, "guest_count", "exclusive", "status", "payment_status"}
	out := pages.DepartureView{
		Title: unit.Text("name") + ", " + p.DateTime(at), Seats: p.T("seats_taken", "Taken", count.Taken, "Seats", count.Seats), Resource: &r, Rows: p.rows(&r, guests),
	}
	if absent > 0 {
		out.Absent, out.All = p.T("departure_absent", "Count", absent), all
	}
	if len(found) == departureRows {
		out.More = all
	}
	if p.can("createBooking") {
		link := url.Values{"unit_id": {unit.Text("id")}, "event_date": {day}, "event_start_time": {at.In(p.Zone).Format("15:04")}}
		out.New = p.workspace.Path("bookings/new") + "?" + link.Encode()
	}
	p.live = true
	return p.show(http.StatusOK, pages.DeparturePage(p.frame(""), out))
}

// ofDeparture adds the bookings that start at a time to the count. It returns those that take seats, and the number of the others.
func ofDeparture(found []domain.Object, at time.Time, count *domain.Departure) (guests []domain.Object, absent int) {
	for _, o := range found {
		if from := o.Time("starts_at"); from == nil || !from.Equal(at) {
			continue
		}
		if !domain.TakesSeats(o.Text("status")) {
			absent++
			continue
		}
		count.Add(o.Text("status"), o.Count("guest_count"), o.Bool("exclusive"))
		guests = append(guests, o)
	}
	return guests, absent
}

const customerField = "customer_id"
