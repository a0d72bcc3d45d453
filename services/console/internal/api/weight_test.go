package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// heaviest is the maximum size of a page, compressed.
const heaviest = 150_000

// noise returns a text of n characters that cannot be compressed, each with four bytes in UTF-8.
func noise(n int) string {
	var b strings.Builder
	for range n {
		b.WriteRune(rune(0x10000 + rand.IntN(0x50000)))
	}
	return b.String()
}

// heavy makes every service respond with the longest texts, and with as many rows in lists as requested.
func (p *platform) heavy() {
	p.lax = true
	grow := func(v any) any { return poisonEach(v, "") }
	for _, op := range p.contract.Operations() {
		if op.Method != http.MethodGet || op.Stream {
			continue
		}
		p.setResponse(op.ID, func(c call) response {
			out := p.example(op, c)
			o, ok := out.Body.(map[string]any)
			if !ok {
				return out
			}
			if list, ok := o["data"].([]any); ok && len(list) > 0 && o["has_more"] != nil {
				n := 25
				if text := c.Query.Get("limit"); text != "" {
					_, _ = fmt.Sscan(text, &n)
				}
				rows := make([]any, n)
				for i := range rows {
					row := maps.Clone(list[0].(map[string]any))
					if id, ok := row["id"].(string); ok {
						row["id"] = fmt.Sprintf("%s_01k%023d", strings.Split(id, "_")[0], i)
					}
					rows[i] = grow(row)
				}
				o["data"] = rows
				return response{out.Status, o}
			}
			if _, ok := o["metadata"]; ok {
				bag := map[string]any{}
				for i := range 50 {
					bag[fmt.Sprint(i, noise(36))] = noise(500)
				}
				o["metadata"] = bag
			}
			if strings.HasPrefix(op.ID, "getEvent") {
				o["data"] = map[string]any{"object": map[string]any{"notes": noise(200_000)}, "previous_attributes": map[string]any{"notes": noise(200_000)}}
				return response{out.Status, o}
			}
			return response{out.Status, grow(o)}
		})
	}
	p.setResponse("getSentDelivery", func(c call) response {
		d := failedDelivery(c.Params[0], c.Params[1])
		attempts, requests := []any{}, []any{}
		for n := range 20 {
			attempts = append(attempts, map[string]any{"number": n + 1, "at": "2027-03-01T16:00:00Z", "status_code": 503, "duration_ms": 9, "error": noise(300), "response_body": noise(1024)})
			requests = append(requests, map[string]any{"number": n + 1, "headers": []any{map[string]any{"name": "Service-Signature", "value": noise(16)}}})
		}
		d["attempts"] = attempts
		body, err := json.Marshal(map[string]any{"notes": noise(200_000)})
		if err != nil {
			p.t.Error(err)
		}
		return response{http.StatusOK, map[string]any{"delivery": d, "requests": requests, "body": string(body)}}
	})
	p.setResponse("listCalendar", func(c call) response {
		day, _ := time.Parse(time.DateOnly, c.Query.Get("from"))
		var list []any
		for i := range 10_000 {
			one := calendarBooking()
			at := day.AddDate(0, 0, i%31).Add(time.Duration(14+i%8) * time.Hour)
			if c.Query.Get("from") == c.Query.Get("to") {
				at = day.Add(14 * time.Hour)
			}
			one["id"], one["number"], one["unit_id"] = "bk_01m7"+letters(22), fmt.Sprintf("B-%06d", rand.IntN(1e6)), fmt.Sprintf("un_01k%023d", i%50)
			one["event_local_date"], one["starts_at"], one["ends_at"] = at.Format(time.DateOnly), at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339)
			one["customer_name"] = noise(100)
			list = append(list, one)
		}
		return response{http.StatusOK, map[string]any{"data": list, "timezone": "America/New_York", "truncated": true}}
	})
}

func letters(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdefghjkmnpqrstvwxyz"[rand.IntN(32)]
	}
	return string(b)
}

// poisonEach replaces each text that a person can enter with a different one of the maximum length of most fields.
func poisonEach(v any, field string) any {
	switch value := v.(type) {
	case map[string]any:
		for name, inner := range value {
			value[name] = poisonEach(inner, name)
		}
	case []any:
		for i, inner := range value {
			value[i] = poisonEach(inner, field)
		}
	case string:
		if long := map[string]int{"notes": 5000, "description": 5000, "message": 5000, "terms": 5000, "url": 500}[field]; long > 0 {
			return noise(long)
		}
		if free(field) && len(value) < 500 {
			return noise(100)
		}
	}
	return v
}

// TestPageSizesAreBounded checks that no page exceeds its maximum size, regardless of its fields and the number of its rows.
func TestPageSizesAreBounded(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.heavy()
	for _, path := range p.pagesOf() {
		w := p.send(request{Method: http.MethodGet, Path: path, Token: "owner", Header: map[string]string{"Accept-Encoding": "gzip"}})
		if n := w.Body.Len(); n > heaviest {
			t.Errorf("%s: %d bytes, status %d", path, n, w.Code)
		} else if n > heaviest/3 {
			t.Logf("%s: %d bytes, status %d", path, n, w.Code)
		}
	}
}

// TestMonthOfManyBookings checks that a month of 50 units shows all bookings if each unit has one or two a day. If there are more,
// it shows as many of each day as the maximum size allows, and the number of the others.
func TestMonthOfManyBookings(t *testing.T) {
	t.Parallel()
	for _, perDay := range []int{1, 2, 4} {
		p := newPlatform(t, options{})
		units, bookings := []any{}, []any{}
		for u := range 50 {
			unit := fmt.Sprintf("un_01k%023d", u)
			units = append(units, map[string]any{"id": unit, "name": fmt.Sprint("Unit ", u), "status": "active", "opening_hours": nil})
			for i := range 31 * perDay {
				one := calendarBooking()
				at := noon.AddDate(0, 0, i/perDay).Add(time.Duration(2*(i%perDay)) * time.Hour)
				one["id"], one["number"], one["unit_id"], one["event_local_date"] = "bk_01m7"+letters(22), fmt.Sprintf("B-%06d", rand.IntN(50_000)), unit, at.Format(time.DateOnly)
				one["starts_at"], one["ends_at"], one["customer_name"] = at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339), letters(6)+" "+letters(8)
				bookings = append(bookings, one)
			}
		}
		p.setResponse("listUnits", object(map[string]any{"data": units, "has_more": false}))
		p.setResponse("listCalendar", object(map[string]any{"data": bookings, "timezone": "America/New_York", "truncated": false}))
		in := request{Method: http.MethodGet, Path: where + "calendar?view=month&date=2027-03-01", Token: "owner"}
		shown, more := 0, 0
		for _, n := range all(parse(t, p.send(in).Body.String()), "a", "span") {
			if strings.HasPrefix(attr(n, "class"), "slot") {
				shown++
			}
			if text := attr(n, "data-more"); text != "" {
				left, err := strconv.Atoi(text)
				if err != nil {
					t.Error(err)
				}
				more += left
			}
		}
		if stored := 50 * 31 * perDay; shown+more != stored || perDay <= 2 && more > 0 || perDay == 4 && shown != stored/2 {
			t.Errorf("%d a day: %d bookings and %d more, of %d", perDay, shown, more, stored)
		}
		in.Header = map[string]string{"Accept-Encoding": "gzip"}
		if n := p.send(in).Body.Len(); n > heaviest {
			t.Errorf("%d a day: %d bytes", perDay, n)
		}
	}
}

// TestFormsOfferTheLargestCatalogue checks that a form offers as many services, units, and packages as a tenant can have, without
// exceeding the maximum size of a page.
func TestFormsOfferTheLargestCatalogue(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for operation, tc := range map[string]struct {
		prefix string
		most   int
	}{"listServices": {"srv", 200}, "listUnits": {"un", 2_000}, "listPackages": {"pkg", 500}} {
		p.setResponse(operation, func(c call) response {
			first := 0
			if cursor := c.Query.Get("cursor"); cursor != "" {
				first, _ = strconv.Atoi(cursor)
			}
			var rows []any
			for i := first; i < min(first+100, tc.most); i++ {
				rows = append(rows, map[string]any{"id": tc.prefix + "_01m7" + letters(22), "name": fmt.Sprintf("%s %04d", letters(20), i)})
			}
			return response{http.StatusOK, map[string]any{"data": rows, "has_more": first+100 < tc.most, "next_cursor": strconv.Itoa(first + 100)}}
		})
	}
	in := request{Method: http.MethodGet, Path: where + "bookings/new", Token: "owner"}
	offered := 0
	for _, o := range all(parse(t, p.send(in).Body.String()), "option") {
		if strings.Contains(attr(o, "value"), "_01m7") {
			offered++
		}
	}
	in.Header = map[string]string{"Accept-Encoding": "gzip"}
	if n := p.send(in).Body.Len(); offered != 2_700 || n > heaviest {
		t.Errorf("%d are offered, in %d bytes", offered, n)
	}
}
