package api

import (
	"net/url"
	"strconv"
	"time"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
)

// chartDays are the ranges of the charts; the first is the default.
var chartDays = []int{30, 90}

// figures holds the charts of the first page.
type figures struct {
	list     []pages.ChartView
	days     int
	bookings int
	away     bool // the service does not respond
}

// charts returns the revenue and occupancy of the days up to now.
func (s *session) charts(now time.Time) (out figures, err error) {
	if !s.can("listBookings") {
		return out, nil
	}
	out.days = chartDays[0]
	if n, err := strconv.Atoi(s.r.URL.Query().Get("days")); err == nil && n == chartDays[1] {
		out.days = n
	}
	query := url.Values{"from": {now.AddDate(0, 0, 1-out.days).Format(time.DateOnly)}, "to": {now.Format(time.DateOnly)}}
	got, err := s.app.Services.Statistics(s.r.Context(), query)
	if out.away = app.Unanswered(err); out.away {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	revenue, occupancy := pages.ChartView{Name: "revenue"}, pages.ChartView{Name: "occupancy"}
	var sum, booked, open int64
	places, err := money.Decimals(got.Currency)
	if err != nil {
		places = 2
	}
	for _, d := range got.Data {
		day, err := time.Parse(time.DateOnly, d.Date)
		if err != nil {
			return out, err
		}
		out.bookings += d.Bookings
		sum, booked, open = sum+d.Revenue, booked+d.BookedMinutes, open+d.OpenMinutes
		label := s.ShortDate(day)
		value, err := strconv.ParseFloat(money.Amount{Minor: d.Revenue}.Decimal(places), 64)
		if err != nil {
			return out, err
		}
		revenue.Points = append(revenue.Points, pages.PointView{Label: label, At: day.Unix(), Value: value, Text: s.Money(domain.Money{Minor: d.Revenue, Currency: got.Currency})})
		share := shareOf(d.BookedMinutes, d.OpenMinutes)
		occupancy.Points = append(occupancy.Points, pages.PointView{Label: label, At: day.Unix(), Value: float64(share) / 100, Text: s.Percent(share)})
	}
	revenue.Total, occupancy.Total = s.Money(domain.Money{Minor: sum, Currency: got.Currency}), s.Percent(shareOf(booked, open))
	out.list = []pages.ChartView{revenue, occupancy}
	return out, nil
}

// shareOf returns a part of a whole in basis points; 0 if the whole is 0.
func shareOf(part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	return part * money.Whole / whole
}
