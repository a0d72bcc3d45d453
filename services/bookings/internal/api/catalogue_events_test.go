package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// eventsAfter returns the events after the first n as "type id version". It checks that each event is internal and contains the
// body that GET returns.
func (w *world) eventsAfter(ctx context.Context, n int) (list []string) {
	w.T.Helper()
	paths := map[string]string{"service.updated": "/services/", "unit.updated": "/units/", "package.updated": "/packages/", "holiday_rule.updated": "/holiday-rules/"}
	newest := map[string]int64{}
	all := w.Events()
	for _, e := range all {
		newest[e.GetObjectId()] = e.GetResourceVersion()
	}
	for _, e := range all[n:] {
		list = append(list, fmt.Sprint(e.GetType(), " ", e.GetObjectId(), " ", e.GetResourceVersion()))
		if e.GetResourceVersion() > 1 {
			list[len(list)-1] += " " + string(e.GetPreviousAttributes())
		}
		if !e.GetInternal() || e.GetResourceVersion() == 1 && string(e.GetPreviousAttributes()) != "{}" {
			w.T.Errorf("%s is no internal event: %v", e.GetType(), e)
		}
		if body := w.do(ctx, "GET", paths[e.GetType()]+e.GetObjectId(), "").is(200).Body; e.GetResourceVersion() == newest[e.GetObjectId()] && string(body) != string(e.GetObject()) {
			w.T.Errorf("%s holds %s\nwant %s", e.GetType(), e.GetObject(), body)
		}
	}
	return list
}

// TestCatalogueEvents checks that each create and each change of a service, a unit, a package, or a holiday rule has one event,
// which contains the previous values. A changed link changes both of its ends. A change without a visible effect and a refused
// request have no event.
func TestCatalogueEvents(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	n := 0
	expect := func(what string, want ...string) {
		t.Helper()
		got := w.eventsAfter(ctx, n)
		n += len(got)
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%s: events %v, want %v", what, got, want)
		}
	}
	service := w.offer(ctx, "/services", `{"name":"S"}`).ID
	expect("create", "service.updated "+service+" 1")
	unit := w.offer(ctx, "/units", fmt.Sprintf(`{"name":"U","service_ids":[%q]}`, service)).ID
	expect("create with a link", "service.updated "+service+` 2 {"unit_ids":[]}`, "unit.updated "+unit+" 1")
	pack := w.offer(ctx, "/packages", fmt.Sprintf(`{"name":"P","service_id":%q,"base_price":{"amount":1,"currency":"USD"},"unit_ids":[%q]}`, service, unit)).ID
	expect("create a package", "package.updated "+pack+" 1")
	rule := w.offer(ctx, "/holiday-rules", offers(shop{})["/holiday-rules"]).ID
	expect("create a holiday rule", "holiday_rule.updated "+rule+" 1")
	for path, event := range map[string]string{
		"/services/" + service: "service.updated " + service + ` 3 {"name":"S"}`, "/units/" + unit: "unit.updated " + unit + ` 2 {"name":"U"}`,
		"/packages/" + pack: "package.updated " + pack + ` 2 {"name":"P"}`, "/holiday-rules/" + rule: "holiday_rule.updated " + rule + ` 2 {"name":"R"}`,
	} {
		w.do(ctx, "PATCH", path, `{"name":"x"}`, "Idempotency-Key: k"+header(event[:3])).is(200)
		expect("update", event)
		w.do(ctx, "PATCH", path, `{"name":"x"}`, "Idempotency-Key: k"+header(event[:3])).is(200)
		w.do(ctx, "PATCH", path, `{"name":"x"}`).is(200)
		w.do(ctx, "PATCH", path, `{"name":"y"}`, `If-Match: "1"`).is(412)
		w.do(ctx, "PATCH", path, `{"name":""}`).is(422)
		expect("no change")
	}
	w.do(ctx, "PATCH", "/services/"+service, `{"unit_ids":[]}`).is(200)
	expect("unlink", "service.updated "+service+fmt.Sprintf(` 4 {"unit_ids":[%q]}`, unit), "unit.updated "+unit+fmt.Sprintf(` 3 {"service_ids":[%q]}`, service))
	w.do(ctx, "PATCH", "/units/"+unit, fmt.Sprintf(`{"service_ids":[%q]}`, service)).is(200)
	expect("link", "service.updated "+service+` 5 {"unit_ids":[]}`, "unit.updated "+unit+` 4 {"service_ids":[]}`)
	w.do(ctx, "PATCH", "/units/"+unit, fmt.Sprintf(`{"service_ids":[%q],"name":"z"}`, service)).is(200)
	expect("keep the link", "unit.updated "+unit+` 5 {"name":"x"}`)
	w.do(ctx, "POST", "/packages", fmt.Sprintf(`{"name":"P","service_id":%q,"base_price":{"amount":1,"currency":"EUR"}}`, service)).is(422)
	expect("refused")
}

// TestCatalogueEventsInOrder checks that parallel changes of one unit are published in the order of its versions, without gaps.
func TestCatalogueEventsInOrder(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	service, unit := w.offer(ctx, "/services", `{"name":"S"}`).ID, w.offer(ctx, "/units", `{"name":"U"}`).ID
	got := atOnce(20, func(i int) response {
		if i%2 == 0 {
			return w.do(ctx, "PATCH", "/units/"+unit, fmt.Sprintf(`{"name":"%d"}`, i))
		}
		return w.do(ctx, "PATCH", "/services/"+service, fmt.Sprintf(`{"unit_ids":[%s]}`, []string{"", str(unit)}[i/2%2]))
	})
	if got[200] != 20 {
		t.Fatalf("responses %v", got)
	}
	versions := map[string]int64{}
	for _, e := range w.Events() {
		if e.GetResourceVersion() != versions[e.GetObjectId()]+1 {
			t.Errorf("%s: version %d after %d", e.GetType(), e.GetResourceVersion(), versions[e.GetObjectId()])
		}
		versions[e.GetObjectId()] = e.GetResourceVersion()
	}
	if at := w.offered(ctx, "/units/"+unit); at.Version != versions[unit] || w.offered(ctx, "/services/"+service).Version != versions[service] {
		t.Errorf("versions %v", versions)
	}
}
