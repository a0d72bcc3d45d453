package api_test

import (
	"fmt"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

// TestIdsInABody checks that ids in a body belong to the caller's tenant and mode. All other ids are reported as unknown, on
// their field.
func TestIdsInABody(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	other := pgtest.Ctx(t, caller.Test)
	own, wrongMode, foreign := w.shop(ctx), w.shop(live), w.shop(other)
	b := w.book(ctx, `"event_date":"2030-05-01"`)
	for field, list := range map[string][]string{
		"customer_id": {w.customer(live), w.customer(other), ids.New[ids.CustomerPrefix]().String(), "cu_x", "", own.ada.String()},
		"service_id":  {wrongMode.tour.String(), foreign.tour.String(), id[domain.ServicePrefix]().String(), "srv_x", "", own.ada.String()},
		"unit_id":     {wrongMode.ada.String(), foreign.ada.String(), id[domain.UnitPrefix]().String(), "un_x", "", own.tour.String()},
		"package_id":  {wrongMode.flat.String(), foreign.flat.String(), id[domain.PackagePrefix]().String(), "pkg_x", "", own.ada.String()},
	} {
		for _, value := range list {
			w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-01",%q:%q}`, field, value)).is(422, "invalid_request", field)
			w.patch(ctx, b.ID, fmt.Sprintf(`{%q:%q}`, field, value)).is(422, "invalid_request", field)
		}
	}
	if got := w.Types(); got != "created" {
		t.Errorf("events: %s", got)
	}
}

func TestIncompatibleLinksAreRefused(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2031-01-01"`)
	day := 0
	for _, tc := range []struct{ fields, wrong string }{
		{fmt.Sprintf(`"package_id":"%s","service_id":"%s"`, s.flat, s.tour), ""},
		{fmt.Sprintf(`"package_id":"%s","service_id":"%s"`, s.flat, s.rental), "service_id"},
		{fmt.Sprintf(`"package_id":"%s","service_id":null`, s.flat), ""},
		{fmt.Sprintf(`"package_id":"%s","unit_id":"%s"`, s.flat, s.bee), ""},
		{fmt.Sprintf(`"package_id":"%s","unit_id":"%s"`, s.flat, s.cat), "unit_id"},
		{fmt.Sprintf(`"package_id":"%s","unit_id":"%s"`, s.onlyAda, s.ada), ""},
		{fmt.Sprintf(`"package_id":"%s","unit_id":"%s"`, s.onlyAda, s.bee), "unit_id"},
		{fmt.Sprintf(`"package_id":"%s"`, s.gone), "package_id"},
		{fmt.Sprintf(`"package_id":"%s"`, s.hidden), ""},
		{fmt.Sprintf(`"service_id":"%s"`, s.idle), "service_id"},
		{fmt.Sprintf(`"service_id":"%s","unit_id":"%s"`, s.rental, s.cat), ""},
		{fmt.Sprintf(`"service_id":"%s","unit_id":"%s"`, s.rental, s.ada), "unit_id"},
		{fmt.Sprintf(`"unit_id":"%s"`, s.docked), "unit_id"},
		{fmt.Sprintf(`"unit_id":"%s"`, s.sold), "unit_id"},
		{fmt.Sprintf(`"unit_id":"%s","guest_count":10`, s.ada), ""},
		{fmt.Sprintf(`"unit_id":"%s","guest_count":11`, s.ada), "guest_count"},
		{fmt.Sprintf(`"unit_id":"%s","guest_count":2147483647`, s.bee), ""},
		{`"guest_count":0`, ""},
		{`"guest_count":-1`, "guest_count"},
		{`"guest_count":2147483648`, "guest_count"},
		{`"guest_count":1.0`, "guest_count"},
	} {
		day++
		create := w.post(ctx, fmt.Sprintf(`{"event_date":"2031-%02d-%02d",%s}`, 1+day/28, 1+day%28, tc.fields))
		clean := w.patch(ctx, b.ID, `{"unit_id":null,"package_id":null,"service_id":null,"guest_count":null}`).is(200)
		if got := clean.booking(); got.ServiceID != nil || got.UnitID != nil || got.PackageID != nil || got.TotalAmount.Amount != 0 || got.PackageSnapshot != nil {
			t.Errorf("not cleared: %s", clean.Body)
		}
		change := w.patch(ctx, b.ID, "{"+tc.fields+"}")
		if tc.wrong == "" {
			create.is(201)
			change.is(200)
			continue
		}
		create.is(422, "invalid_request", tc.wrong)
		change.is(422, "invalid_request", tc.wrong)
	}
	a := w.post(ctx, fmt.Sprintf(`{"event_date":"2031-06-01","customer_id":"cu_x","unit_id":"un_x","package_id":"%s","guest_count":1}`, s.gone)).is(422, "invalid_request", "customer_id")
	if got := decode[struct{ Errors map[string][]string }](a).Errors; len(got) != 3 {
		t.Errorf("each failed field is reported: %v", got)
	}
}

// TestRetiredLater checks that a link stays when its target is retired later. Only new links are validated.
func TestRetiredLater(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	fields := fmt.Sprintf(`"package_id":"%s","unit_id":"%s","service_id":"%s"`, s.flat, s.ada, s.tour)
	b := w.book(ctx, `"event_date":"2030-05-01","event_start_time":"10:00",%s`, fields)
	w.Exec(`update units set status = 'retired'`)
	w.Exec(`update packages set active = false`)
	w.Exec(`update services set active = false`)
	w.patch(ctx, b.ID, `{`+fields+`,"guest_count":3,"notes":"x"}`).is(200)
	w.patch(ctx, b.ID, `{"event_start_time":"11:00"}`).is(200)
	w.patch(ctx, b.ID, fmt.Sprintf(`{"unit_id":"%s"}`, s.bee)).is(422, "invalid_request", "unit_id")
	w.patch(ctx, b.ID, `{"guest_count":11}`).is(422, "invalid_request", "guest_count")
	w.post(ctx, `{"event_date":"2030-05-02",`+fields+`}`).is(422, "invalid_request", "service_id")
}

func TestErasedCustomer(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.customer(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01","customer_id":"%s"`, c)
	w.Exec(`update customers set erased = true, name = ''`)
	w.post(ctx, `{"event_date":"2030-05-01","customer_id":"`+c+`"}`).is(422, "invalid_request", "customer_id")
	w.patch(ctx, b.ID, `{"customer_id":"`+c+`","notes":"x"}`).is(200)
	if got := w.get(ctx, b.ID); *got.CustomerID != c {
		t.Error("an erased customer's bookings still have the id")
	}
}
