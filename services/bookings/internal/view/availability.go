package view

import (
	"bytes"
	"strconv"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

// Availability returns the body of a response. It contains all days, each with the same units, and there is no next page. The slots
// are appended without reflection, because a response can contain very many of them.
func Availability(days []availability.Day, timezone string) ([]byte, error) {
	out := append(make([]byte, 0, availabilityBytes(days)), `{"data":[`...)
	var units [][]byte // the beginning of each unit, which is the same on each day
	var times slotTimes
	for i, d := range days {
		head, err := contract.Encode(availabilityDay(d, timezone))
		if err != nil {
			return nil, err
		}
		out = append(comma(out, i), bytes.TrimSuffix(head, []byte(`]}`))...)
		for j, u := range d.Units {
			if j == len(units) {
				head, err := contract.Encode(api.AvailabilityUnit{UnitId: u.Unit.ID.String(), Name: u.Unit.Name})
				if err != nil {
					return nil, err
				}
				units = append(units, bytes.TrimSuffix(head, []byte(`"","slots":null}`)))
			}
			out = append(comma(out, j), units[j]...)
			out = append(quote(out, string(u.Status)), `,"slots":[`...)
			for k, s := range u.Slots {
				out = times.append(comma(out, k), k, s.Span)
				out = append(seats(quote(out, string(s.Status)), s), '}')
			}
			out = append(out, `]}`...)
		}
		out = append(out, `]}`...)
	}
	return append(out, `],"has_more":false,"next_cursor":null}`...), nil
}

// slotTimes keeps the text of the last slot at each position of a unit's day. Units with the same opening hours have the same slots
// on a day, so most texts are formatted once per day.
type slotTimes []struct {
	domain.Span
	text []byte
}

// append appends the beginning of the k-th slot of a unit's day: its start, its end, and the name of its status.
func (t *slotTimes) append(out []byte, k int, s domain.Span) []byte {
	if k == len(*t) {
		*t = append(*t, slotTimes{{}}...)
	}
	last := &(*t)[k]
	if last.text == nil || last.Span != s {
		text := append(last.text[:0], `{"starts_at":"`...)
		text = append(s.From.UTC().AppendFormat(text, time.RFC3339Nano), `","ends_at":"`...)
		last.Span, last.text = s, append(s.To.UTC().AppendFormat(text, time.RFC3339Nano), `","status":`...)
	}
	return append(out, last.text...)
}

// seats appends the seats of a slot, or null.
func seats(out []byte, s availability.Slot) []byte {
	if s.Seats.Capacity == 0 {
		return append(out, `,"seats":null`...)
	}
	free := 0
	if s.Status == availability.SlotAvailable {
		free = s.Seats.Capacity - s.Seats.Taken
	}
	out = strconv.AppendInt(append(out, `,"seats":{"capacity":`...), int64(s.Seats.Capacity), 10)
	out = strconv.AppendInt(append(out, `,"taken":`...), int64(s.Seats.Taken), 10)
	return append(strconv.AppendInt(append(out, `,"available":`...), int64(free), 10), '}')
}

// availabilityDay returns a day without its units.
func availabilityDay(d availability.Day, timezone string) api.AvailabilityDay {
	day := api.AvailabilityDay{
		Object: api.AvailabilityDayObjectAvailabilityDay, Date: d.Date.String(), Timezone: timezone, Status: api.AvailabilityStatus(d.Status),
		PriceFrom: api.Null[api.Money](), Holiday: nullable.NewNullNullable[api.HolidaySnapshot](), Units: []api.AvailabilityUnit{},
	}
	if d.Price != nil {
		day.PriceFrom = nullable.NewNullableWithValue(amount(d.Price.Total))
		day.Holiday = holiday(d.Price.Snapshot.Holiday)
	}
	return day
}

// availabilityBytes returns about the size of a response.
func availabilityBytes(days []availability.Day) int {
	const day, unit, slot, shared = 300, 100, 103, 50
	n := day
	for _, d := range days {
		n += day
		for _, u := range d.Units {
			n += unit + len(u.Unit.Name) + slot*len(u.Slots)
			if u.Unit.Shared() {
				n += shared * len(u.Slots)
			}
		}
	}
	return n
}

// comma appends a comma before each element of an array but the first.
func comma(out []byte, i int) []byte {
	if i > 0 {
		out = append(out, ',')
	}
	return out
}

// quote appends a string without characters that JSON escapes.
func quote(out []byte, plain string) []byte {
	return append(append(append(out, '"'), plain...), '"')
}

// Explanation returns the public form of a reason and of the seats of the slot. availability.Free means no reason.
func Explanation(r availability.Reason, s availability.Seats) api.AvailabilityExplanation {
	out := api.AvailabilityExplanation{Available: r == availability.Free, Reason: api.Null[api.AvailabilityExplanationReason](), Seats: api.Null[api.Seats]()}
	if !out.Available {
		out.Reason = nullable.NewNullableWithValue(api.AvailabilityExplanationReason(r))
	}
	if s.Capacity > 0 {
		shown := api.Seats{Capacity: s.Capacity, Taken: s.Taken}
		if out.Available {
			shown.Available = s.Capacity - s.Taken
		}
		out.Seats = nullable.NewNullableWithValue(shown)
	}
	return out
}
