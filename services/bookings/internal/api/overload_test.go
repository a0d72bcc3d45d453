package api_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

func TestOverload(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := "/bookings/" + w.book(ctx, `"event_date":"2030-05-01","unit_id":"%s","package_id":"%s"`, s.ada, s.flat).ID
	rule := decode[struct{ Data []struct{ ID string } }](w.do(ctx, "GET", "/holiday-rules", "").is(200)).Data[0].ID
	requests := []apitest.Request{
		{Method: "GET", Path: "/bookings"},
		{Method: "POST", Path: "/bookings", Body: `{"event_date":"2030-05-02"}`},
		{Method: "GET", Path: b},
		{Method: "PATCH", Path: b, Body: `{"notes":"x"}`},
		{Method: "POST", Path: b + "/cancel"},
		{Method: "POST", Path: b + "/reprice"},
		{Method: "GET", Path: b + "/payments"},
		{Method: "POST", Path: "/test-clock", Body: ahead(`{"now":"2030-01-01T00:00:00Z"}`)},
		{Method: "DELETE", Path: "/test-clock"},
		{Method: "GET", Path: "/availability?from=2030-05-01&to=2030-05-02"},
		{Method: "GET", Path: fmt.Sprintf("/availability/explain?unit_id=%s&starts_at=2030-05-01T12:00:00Z", s.ada)},
	}
	f := w.feed(ctx, `{"name":"x"}`)
	requests = append(requests,
		apitest.Request{Method: "GET", Path: "/calendar-feeds"}, apitest.Request{Method: "POST", Path: "/calendar-feeds", Body: `{"name":"x"}`},
		apitest.Request{Method: "GET", Path: "/calendar-feeds/" + f.ID}, apitest.Request{Method: "GET", Path: strings.TrimPrefix(*f.URL, feedBase)},
		apitest.Request{Method: "DELETE", Path: "/calendar-feeds/" + f.ID})
	closed := w.closes(ctx, `"date_from":"2030-05-03","date_to":"2030-05-03"`).ID
	requests = append(requests, apitest.Request{Method: "DELETE", Path: "/closures/" + closed})
	for list, r := range map[string]struct{ id, create string }{
		"/services":      {s.tour.String(), `{"name":"x"}`},
		"/units":         {s.ada.String(), `{"name":"x"}`},
		"/packages":      {s.flat.String(), fmt.Sprintf(`{"name":"x","service_id":%q,"base_price":{"amount":1,"currency":"USD"}}`, s.tour)},
		"/closures":      {closed, `{"name":"x","date_from":"2030-05-04","date_to":"2030-05-04"}`},
		"/holiday-rules": {rule, `{"name":"x","date_from":"2030-05-01","date_to":"2030-05-02","multiplier_bps":11000}`},
	} {
		requests = append(requests, apitest.Request{Method: "GET", Path: list},
			apitest.Request{Method: "POST", Path: list, Body: r.create},
			apitest.Request{Method: "GET", Path: list + "/" + r.id},
			apitest.Request{Method: "PATCH", Path: list + "/" + r.id, Body: `{"name":"y"}`})
	}
	w.Overloaded(ctx, w.serve, requests, "getTestClock")
}
