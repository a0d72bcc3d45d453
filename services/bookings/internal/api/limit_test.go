package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto"

	"holdfast.dev/services/bookings/internal/domain/limit"
)

// capped is a kind of row in the catalogue, with its caps.
type capped struct {
	fill                   string // SQL that inserts a number of rows in a state
	sqlActive, sqlInactive string // the two states in SQL
	active, inactive       string // the two states as a field of a body
	create, update         string // operations
	caps                   limit.Caps
}

func cappedKinds(s shop) map[string]capped {
	const owner = `(tenant_id, livemode, id, name`
	return map[string]capped{
		"/services": {
			fill:   `insert into services ` + owner + `, active) select $1, $2, gen_random_uuid(), 'N', %s from generate_series(1, %d)`,
			active: `"active":true`, inactive: `"active":false`, sqlActive: `true`, sqlInactive: `false`,
			create: "createService", update: "updateService", caps: limit.Services,
		},
		"/units": {
			fill:   `insert into units ` + owner + `, status) select $1, $2, gen_random_uuid(), 'N', %s from generate_series(1, %d)`,
			active: `"status":"maintenance"`, inactive: `"status":"retired"`, sqlActive: `'active'`, sqlInactive: `'retired'`,
			create: "createUnit", update: "updateUnit", caps: limit.Units,
		},
		"/packages": {
			fill: `insert into packages ` + owner + `, active, service_id, currency, base_price) select $1, $2, gen_random_uuid(), 'N', %s, '` +
				uuidText(s.tour.UUID()) + `', 'USD', 1 from generate_series(1, %d)`,
			active: `"active":true`, inactive: `"active":false`, sqlActive: `true`, sqlInactive: `false`,
			create: "createPackage", update: "updatePackage", caps: limit.Packages,
		},
		"/holiday-rules": {
			fill: `insert into holiday_rules ` + owner + `, active, date_from, date_to, multiplier_bps) select $1, $2, gen_random_uuid(), 'N', %s,
				'2030-01-01', '2030-01-02', 11000 from generate_series(1, %d)`,
			active: `"active":true`, inactive: `"active":false`, sqlActive: `true`, sqlInactive: `false`,
			create: "createHolidayRule", update: "updateHolidayRule", caps: limit.Holidays,
		},
	}
}

func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// TestCapsOfTheCatalogue checks that exactly one of several parallel requests gets the last place within a cap. One more row, and
// the activation of an inactive row, are refused until the cap allows them. Every mode and every tenant has its own caps.
func TestCapsOfTheCatalogue(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	s, liveShop := w.shop(ctx), w.shop(live)
	bodies, others := offers(s), offers(liveShop)
	for path, k := range cappedKinds(s) {
		table := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "-", "_")
		fill := func(state string, to int) {
			have := w.Count(`select count(*) from `+table+` where tenant_id = $1 and not livemode and `+stateOf(table)+` = (`+state+`)`, tenant.UUID())
			w.Exec(fmt.Sprintf(k.fill, state, to-have), tenant.UUID(), false)
		}
		inactive := w.offer(ctx, path, and(bodies[path], k.inactive))
		fill(k.sqlActive, k.caps.Active.Most-1)
		created := w.race(ctx, path, bodies[path])
		w.do(ctx, "POST", path, bodies[path]).is(422, "limit_reached", "name")
		w.do(ctx, "PATCH", path+"/"+inactive.ID, `{"name":"",`+k.active+"}").is(422, "invalid_request", "name")
		w.do(ctx, "PATCH", path+"/"+inactive.ID, "{"+k.active+"}").is(422, "limit_reached", "name")
		w.do(ctx, "PATCH", path+"/"+inactive.ID, "{"+k.active+"}", `If-Match: "7"`).is(412, "version_mismatch")
		w.do(ctx, "PATCH", path+"/"+created, `{"name":"Still"}`).is(200)
		w.do(ctx, "POST", path, and(bodies[path], k.inactive)).is(201)
		w.do(live, "POST", path, others[path]).is(201)
		w.do(ctx, "PATCH", path+"/"+created, "{"+k.inactive+"}").is(200)
		w.do(ctx, "PATCH", path+"/"+inactive.ID, "{"+k.active+"}").is(200)

		fill(k.sqlInactive, k.caps.Inactive.Most)
		w.do(ctx, "POST", path, and(bodies[path], k.inactive)).is(422, "limit_reached", "name")
		w.do(ctx, "PATCH", path+"/"+inactive.ID, "{"+k.inactive+"}").is(422, "limit_reached", "name")
	}
}

// TestCapsOfATenant checks that the caps that the platform has set for a tenant, which arrive with the caller, replace the defaults, for
// parallel requests too. Ten times as many inactive rows are allowed.
func TestCapsOfATenant(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, _ := both(tenant, t)
	s := w.shop(ctx)
	c := caller.FromContext(ctx)
	bodies := offers(s)
	for path, k := range cappedKinds(s) {
		table := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "-", "_")
		have := w.Count(`select count(*) from `+table+` where tenant_id = $1 and not livemode and `+stateOf(table)+` = (`+k.sqlActive+`)`, tenant.UUID())
		c.Caps = map[string]int{k.caps.Active.Name: have + 1, "calendar_feeds": 1}
		own := caller.With(ctx, c)
		created := w.race(own, path, bodies[path])
		w.do(own, "POST", path, bodies[path]).is(422, "limit_reached", "name")
		w.do(own, "POST", path, and(bodies[path], k.inactive)).is(201)
		w.do(ctx, "POST", path, bodies[path]).is(201)
		w.do(own, "PATCH", path+"/"+created, `{"name":"Still"}`).is(200)
		w.Exec(fmt.Sprintf(k.fill, k.sqlInactive, 10*(have+1)-1), tenant.UUID(), false)
		w.do(own, "POST", path, and(bodies[path], k.inactive)).is(422, "limit_reached", "name")
	}
	own := caller.With(ctx, c)
	w.do(own, "POST", "/calendar-feeds", `{"name":"One"}`).is(201)
	w.do(own, "POST", "/calendar-feeds", `{"name":"Two"}`).is(422, "limit_reached", "name")
	w.do(ctx, "POST", "/calendar-feeds", `{"name":"Two"}`).is(201)
}

// stateOf returns the SQL for a row's state.
func stateOf(table string) string {
	if table == "units" {
		return "case when status = 'retired' then status else 'active' end"
	}
	return "active"
}

// and adds a field to a body.
func and(body, field string) string { return strings.TrimSuffix(body, "}") + "," + field + "}" }

// race sends four requests for the last place. Exactly one gets it.
func (w *world) race(ctx context.Context, path, body string) (id string) {
	w.T.Helper()
	responses := make([]response, 4)
	var field sync.WaitGroup
	for i := range responses {
		field.Go(func() { responses[i] = w.do(ctx, "POST", path, body) })
	}
	field.Wait()
	for _, a := range responses {
		switch {
		case a.Status == 201 && id == "":
			id = decode[offered](a).ID
		default:
			a.is(422, "limit_reached", "name")
		}
	}
	if id == "" {
		w.T.Fatalf("%s: no request got the last place", path)
	}
	return id
}

// TestTheContractSaysTheCaps checks that the contract states the caps.
func TestTheContractSaysTheCaps(t *testing.T) {
	t.Parallel()
	kinds := cappedKinds(shop{})
	kinds["/closures"] = capped{create: "createClosure", update: "updateClosure", caps: limit.Closures}
	for _, k := range kinds {
		for _, op := range []string{k.create, k.update} {
			_, text, _ := strings.Cut(string(proto.OpenAPI), "operationId: "+op+"\n")
			text, _, _ = strings.Cut(text, "x-service:")
			for _, n := range []int{k.caps.Active.Most, k.caps.Inactive.Most} {
				if !strings.Contains(strings.ReplaceAll(text, ",", ""), fmt.Sprintf(" %d ", n)) {
					t.Errorf("%s does not say %d: %q", op, n, text)
				}
			}
		}
	}
}
