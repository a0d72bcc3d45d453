package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

// TestIdsInAPath checks each route with an id × {own, other mode, other tenant, unknown, malformed}.
func TestIdsInAPath(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	other := pgtest.Ctx(t, caller.Test)
	own, wrongMode, foreign := w.shop(ctx), w.shop(live), w.shop(other)
	rules, closures := map[context.Context]string{}, map[context.Context]string{}
	for _, who := range []context.Context{ctx, live, other} {
		rules[who] = w.offer(who, "/holiday-rules", `{"name":"R","date_from":"2030-07-01","date_to":"2030-07-02","multiplier_bps":11000}`).ID
		closures[who] = w.closes(who, `"date_from":"2030-07-01","date_to":"2030-07-02"`).ID
	}
	book := func(ctx context.Context) string { return w.book(ctx, `"event_date":"2030-05-01"`).ID }
	ownID, modeID, tenantID := book(ctx), book(live), book(other)
	for _, r := range []struct {
		method, path, suffix, body, code       string
		own, wrongMode, foreign, unknown, kind string
	}{
		{"GET", "/bookings/", "", "", "booking_not_found", ownID, modeID, tenantID, domain.NewBookingID().String(), "bk_"},
		{"GET", "/bookings/", "/payments", "", "booking_not_found", ownID, modeID, tenantID, domain.NewBookingID().String(), "bk_"},
		{"PATCH", "/bookings/", "", `{"notes":"x"}`, "booking_not_found", ownID, modeID, tenantID, domain.NewBookingID().String(), "bk_"},
		{"POST", "/bookings/", "/reprice", ``, "booking_not_found", ownID, modeID, tenantID, domain.NewBookingID().String(), "bk_"},
		{"POST", "/bookings/", "/cancel", ``, "booking_not_found", ownID, modeID, tenantID, domain.NewBookingID().String(), "bk_"},
		{"GET", "/services/", "", "", "service_not_found", own.tour.String(), wrongMode.tour.String(), foreign.tour.String(), id[domain.ServicePrefix]().String(), "srv_"},
		{"PATCH", "/services/", "", `{"name":"x"}`, "service_not_found", own.tour.String(), wrongMode.tour.String(), foreign.tour.String(), id[domain.ServicePrefix]().String(), "srv_"},
		{"PATCH", "/units/", "", `{"name":"x"}`, "unit_not_found", own.ada.String(), wrongMode.ada.String(), foreign.ada.String(), id[domain.UnitPrefix]().String(), "un_"},
		{"PATCH", "/packages/", "", `{"name":"x"}`, "package_not_found", own.flat.String(), wrongMode.flat.String(), foreign.flat.String(), id[domain.PackagePrefix]().String(), "pkg_"},
		{"PATCH", "/holiday-rules/", "", `{"name":"x"}`, "holiday_rule_not_found", rules[ctx], rules[live], rules[other], id[domain.HolidayPrefix]().String(), "hr_"},
		{"GET", "/holiday-rules/", "", "", "holiday_rule_not_found", rules[ctx], rules[live], rules[other], id[domain.HolidayPrefix]().String(), "hr_"},
		{"PATCH", "/closures/", "", `{"name":"x"}`, "closure_not_found", closures[ctx], closures[live], closures[other], id[domain.ClosurePrefix]().String(), "cl_"},
		{"GET", "/closures/", "", "", "closure_not_found", closures[ctx], closures[live], closures[other], id[domain.ClosurePrefix]().String(), "cl_"},
		{"GET", "/units/", "", "", "unit_not_found", own.ada.String(), wrongMode.ada.String(), foreign.ada.String(), id[domain.UnitPrefix]().String(), "un_"},
		{"GET", "/packages/", "", "", "package_not_found", own.flat.String(), wrongMode.flat.String(), foreign.flat.String(), id[domain.PackagePrefix]().String(), "pkg_"},
	} {
		w.do(ctx, r.method, r.path+r.own+r.suffix, r.body).is(200)
		w.do(ctx, r.method, r.path+r.wrongMode+r.suffix, r.body).is(403, "mode_mismatch")
		var bodies []string
		for _, bad := range []string{r.foreign, r.unknown, r.kind, "x", r.kind + strings.Repeat("z", 26), strings.ToUpper(r.own), ids.New[ids.CustomerPrefix]().String(), "%20", r.own + "%00"} {
			a := w.do(ctx, r.method, r.path+bad+r.suffix, r.body).is(404, r.code)
			bodies = append(bodies, strings.ReplaceAll(string(a.Body), caller.FromContext(ctx).RequestID, ""))
		}
		for _, body := range bodies {
			if body != bodies[0] {
				t.Errorf("a 404 that reveals something: %s", body)
			}
		}
		if r.method == "GET" {
			w.do(ctx, r.method, r.path+r.own+r.suffix+"?x=1", "").is(422, "invalid_request", "x")
			w.do(ctx, r.method, r.path+r.unknown+r.suffix+"?x=1", "").is(404, r.code)
			continue
		}
		// A missing resource takes precedence over an invalid body, key, or condition. A stored response takes precedence over all of
		// these.
		w.do(ctx, r.method, r.path+r.unknown+r.suffix, `{"notes":1,"reason":1,"name":1}`).is(404, r.code)
		w.do(ctx, r.method, r.path+r.wrongMode+r.suffix, `{"notes":1,"reason":1,"name":1}`).is(403, "mode_mismatch")
		w.do(ctx, r.method, r.path+r.own+r.suffix, `{"notes":1,"reason":1,"name":1}`, "If-Match: 1").is(422)
	}
	for _, path := range []string{"/bookings", "/services", "/units", "/packages", "/holiday-rules"} {
		for _, who := range []context.Context{ctx, live, other} {
			got := w.do(who, "GET", path, "").is(200)
			for _, foreign := range []context.Context{ctx, live, other} {
				if who != foreign && strings.Contains(string(got.Body), map[context.Context]string{ctx: ownID, live: modeID, other: tenantID}[foreign]) {
					t.Errorf("%s shows another's row", path)
				}
			}
		}
	}
	for filter, value := range map[string]string{"unit_id": wrongMode.ada.String(), "service_id": foreign.tour.String(), "package_id": foreign.flat.String(), "customer_id": ids.New[ids.CustomerPrefix]().String()} {
		if got := w.list(ctx, "/bookings?"+filter+"="+value); len(got.Data) != 0 {
			t.Errorf("%s of another: %d rows", filter, len(got.Data))
		}
	}
	if got := w.list(ctx, "/units?service_id="+foreign.tour.String()); len(got.Data) != 0 {
		t.Errorf("%d units", len(got.Data))
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s, ann := w.shop(ctx), w.customer(ctx)
	const key = "Idempotency-Key: k"
	body := `{"event_date":"2030-05-01","customer_id":"` + ann + `","unit_id":"` + s.ada.String() + `"}`
	first := w.post(ctx, body, key).is(201)
	b := first.booking()
	w.patch(ctx, b.ID, `{"notes":"x"}`).is(200)
	// The first success remains the response, regardless of later changes.
	w.Exec(`update customers set erased = true`)
	w.Exec(`update units set status = 'retired'`)
	w.tenants.Fail(apperr.ErrUnavailable)
	w.customers.Fail(apperr.ErrUnavailable)
	again := w.post(ctx, body, key).is(201)
	if string(again.Body) != string(first.Body) || again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Location") != first.Header.Get("Location") || again.Header.Get("ETag") != `"1"` {
		t.Errorf("not the first response: %s", again.Body)
	}
	w.post(ctx, `{"event_date":"2030-05-02"}`, key).is(422, "idempotency_mismatch", "Idempotency-Key")
	w.post(ctx, `{"event_date":"x"}`, key).is(422, "idempotency_mismatch", "Idempotency-Key")
	w.post(ctx, `{"event_date":"2030-05-02"}`, "Idempotency-Key: ").is(422, "invalid_request", "Idempotency-Key")
	w.post(ctx, `{"event_date":"2030-05-02"}`, header("Idempotency-Key: "+strings.Repeat("k", 256))).is(422, "invalid_request", "Idempotency-Key")
	w.post(ctx, `{"event_date":"2030-05-02"}`).is(503, "unavailable")
	w.tenants.Fail(nil)
	w.post(ctx, `{"event_date":"2030-05-02","customer_id":"`+w.customer(ctx)+`"}`).is(503, "unavailable")
	w.post(ctx, `{"event_date":"2030-05-02"}`, header("Idempotency-Key: "+strings.Repeat("k", 255))).is(201)
	cancel := w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "", "Idempotency-Key: c").is(200)
	w.patch(ctx, b.ID, `{"notes":"y"}`, "Idempotency-Key: p", `If-Match: "3"`).is(200)
	w.patch(ctx, b.ID, `{"notes":"y"}`, "Idempotency-Key: p", `If-Match: "3"`).is(200)
	if got := w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "", "Idempotency-Key: c").is(200); string(got.Body) != string(cancel.Body) {
		t.Errorf("an action replays its response: %s", got.Body)
	}
	w.late.Store(int64(24*time.Hour + time.Minute))
	if got := w.post(ctx, `{"event_date":"2030-05-05"}`, key).is(201); got.Header.Get("Idempotent-Replayed") != "" {
		t.Error("remembered after 24 hours")
	}
}

// TestRefusals checks every error response that the contract declares.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01","unit_id":"%s"`, s.ada)
	rule := w.offer(ctx, "/holiday-rules", `{"name":"R","date_from":"2030-07-01","date_to":"2030-07-02","multiplier_bps":11000}`).ID
	big := `{"notes":"` + strings.Repeat("x", 1<<20) + `"}`
	writes := []struct{ method, path string }{
		{"POST", "/bookings"},
		{"PATCH", "/bookings/" + b.ID},
		{"POST", "/bookings/" + b.ID + "/cancel"},
		{"POST", "/bookings/" + b.ID + "/reprice"},
		{"POST", "/test-clock"},
		{"POST", "/services"},
		{"PATCH", "/services/" + s.tour.String()},
		{"POST", "/units"},
		{"PATCH", "/units/" + s.ada.String()},
		{"POST", "/packages"},
		{"PATCH", "/packages/" + s.flat.String()},
		{"POST", "/holiday-rules"},
		{"PATCH", "/holiday-rules/" + rule},
	}
	for _, r := range writes {
		w.do(ctx, r.method, r.path, `[]`).is(400, "malformed_json")
		w.do(ctx, r.method, r.path, `{}`, "Content-Type: text/plain").is(400, "missing_content_type")
		w.do(ctx, r.method, r.path, big).is(413, "request_too_large")
	}
	gets := []string{
		"/bookings", "/bookings/" + b.ID, "/services", "/services/" + s.tour.String(), "/units", "/units/" + s.ada.String(), "/packages", "/packages/" + s.flat.String(),
		"/holiday-rules", "/holiday-rules/" + rule, "/availability?from=2030-05-01&to=2030-05-02", "/availability/explain?unit_id=" + s.ada.String() + "&starts_at=2030-05-01T10:00:00Z",
	}
	for _, path := range gets {
		w.do(ctx, "GET", path, "", caller.Header+": forged").is(401, "invalid_credential")
	}
	for _, r := range append(writes, []struct{ method, path string }{{"GET", "/test-clock"}, {"DELETE", "/test-clock"}}...) {
		w.do(ctx, r.method, r.path, `{}`, caller.Header+": forged").is(401, "invalid_credential")
	}
	for _, path := range []string{"/bookings", "/services", "/units", "/packages", "/holiday-rules"} {
		w.do(ctx, "GET", path+"?cursor=x", "").is(400, "invalid_cursor")
		w.do(ctx, "GET", path+"?limit=0", "").is(422, "invalid_request", "limit")
	}
	// A caller with an unknown time zone is a fault of the platform, and so is a missing table.
	w.post(zoned(ctx, "Mars/Olympus"), `{"event_date":"2030-05-01"}`).is(500, "internal_error")
	w.setClock(zoned(ctx, "Mars/Olympus"), "2030-05-01").is(500, "internal_error")
	w.Exec(`drop table bookings, services, packages, units, holiday_rules, test_clocks cascade`)
	for path, body := range offers(s) {
		w.do(ctx, "POST", path, body).is(500, "internal_error")
	}
	for _, path := range []string{"/services/" + s.tour.String(), "/units/" + s.ada.String(), "/packages/" + s.flat.String(), "/holiday-rules/" + rule} {
		w.do(ctx, "PATCH", path, `{"name":"x"}`).is(500, "internal_error")
	}
	for _, path := range gets {
		w.do(ctx, "GET", path, "").is(500, "internal_error")
	}
	w.patch(ctx, b.ID, `{"notes":"x"}`).is(500, "internal_error")
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(500, "internal_error")
	w.do(ctx, "POST", "/bookings/"+b.ID+"/reprice", "").is(500, "internal_error")
	w.do(ctx, "DELETE", "/test-clock", "").is(500, "internal_error")
}

// TestKeyInUse checks that a request whose key is held by a transaction that does not end is refused after the lock timeout.
func TestKeyInUse(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	rule := w.offer(ctx, "/holiday-rules", offers(s)["/holiday-rules"]).ID
	b := w.book(ctx, `"event_date":"2030-05-01"`)
	w.engine = w.serve(w.Impatient(100 * time.Millisecond))
	release := w.HoldKey(caller.FromContext(ctx), "k")
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/bookings", `{"event_date":"2030-05-01"}`},
		{"PATCH", "/bookings/" + b.ID, `{"notes":"x"}`},
		{"POST", "/bookings/" + b.ID + "/cancel", ""},
		{"POST", "/bookings/" + b.ID + "/reprice", ""},
		{"POST", "/test-clock", ahead(`{"now":"2030-04-01"}`)},
		{"POST", "/services", offers(s)["/services"]},
		{"PATCH", "/services/" + s.tour.String(), `{"name":"x"}`},
		{"POST", "/units", offers(s)["/units"]},
		{"PATCH", "/units/" + s.ada.String(), `{"name":"x"}`},
		{"POST", "/packages", offers(s)["/packages"]},
		{"PATCH", "/packages/" + s.flat.String(), `{"name":"x"}`},
		{"POST", "/holiday-rules", offers(s)["/holiday-rules"]},
		{"PATCH", "/holiday-rules/" + rule, `{"name":"x"}`},
	} {
		if a := w.do(ctx, r.method, r.path, r.body, "Idempotency-Key: k").is(409, "idempotency_in_progress"); a.Header.Get("Retry-After") == "" {
			t.Error("409 without Retry-After")
		}
	}
	release()
	w.post(ctx, `{"event_date":"2030-05-01"}`, "Idempotency-Key: k").is(201)
}

func TestErrorsHaveTheirStatus(t *testing.T) {
	t.Parallel()
	for err, want := range map[*apperr.Error]int{
		domain.ErrBookingNotFound: 404, domain.ErrServiceNotFound: 404, domain.ErrUnitNotFound: 404, domain.ErrPackageNotFound: 404, domain.ErrHolidayNotFound: 404,
		domain.ErrCustomerNotFound: 404, domain.ErrSlotUnavailable: 409, domain.ErrTransition: 422, domain.ErrScope: 403, domain.ErrPriceTooHigh: 422,
	} {
		if got := httpx.StatusOf(err.Kind); got != want {
			t.Errorf("%s is %d, want %d", err.Code, got, want)
		}
	}
}
