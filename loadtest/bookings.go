package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
)

// The days of the bookings that are created through the API range from firstDay to the template's day. recordedDay is the day of
// the booking whose SQL is recorded, near the last day that the contract allows. The contract does not limit pgbench, which books
// later days.
var (
	firstDay    = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	recordedDay = time.Date(2199, 3, 1, 0, 0, 0, 0, time.UTC)
)

// units are booked in turn, so that parallel requests never compete for the same one. raceUnit is an additional unit.
const (
	units    = 64
	raceUnit = units
)

// shop is the tenant whose bookings are created and listed.
type shop struct {
	addr, key, live string // the gateway's address, and the keys of test and live mode
	tenant          [16]byte
	pack, customer  string
	packUUID        [16]byte
	units           [units + 1]string
	admin           *pgx.Conn // in the bookings database, not subject to row-level security
	app             string    // URL of that database with the service's own role
	bookings        string    // address of the bookings service
}

type (
	unitPrefix    struct{}
	bookingPrefix struct{}
	servicePrefix struct{}
	packPrefix    struct{}
)

func (unitPrefix) Prefix() string    { return "un" }
func (bookingPrefix) Prefix() string { return "bk" }
func (servicePrefix) Prefix() string { return "srv" }
func (packPrefix) Prefix() string    { return "pkg" }

// bookings measures requests through gateway, service and database.
func (b *bench) bookings(ctx context.Context) error {
	s, err := b.openShop(ctx)
	if err != nil {
		return fmt.Errorf("preparing the catalogue: %w", err)
	}
	defer func() { _ = s.admin.Close(context.WithoutCancel(ctx)) }()
	template, err := s.book(ctx, "template", recordedDay.AddDate(-1, 0, 0))
	if err != nil {
		return err
	}
	var small *list
	if b.wants("bookings") || b.wants("cores") || b.wants("list") || b.wants("pooler") {
		if small, err = b.smallList(ctx, s, template); err != nil {
			return fmt.Errorf("filling the small list: %w", err)
		}
	}
	for _, one := range []struct {
		show, figure string
		measure      func() error
	}{
		{"bookings", "`GET /bookings/{id}`", func() error { return b.read(ctx, s) }},
		{"bookings", "`POST /bookings`", func() error { return b.create(ctx, s) }},
		{"cores", "rates on one and two processors", func() error { return b.cores(ctx, s) }},
		{"size", "what a booking adds", func() error { return b.size(ctx, s) }},
		{"pooler", "requests through a pooler", func() error { return b.pooler(ctx, s) }},
		{"joins", "bookings that join a departure", func() error { return b.joins(ctx, s) }},
		{"race", "race for a day", func() error { return b.race(ctx, s) }},
		{"availability", "`GET /availability`", func() error { return b.availability(ctx, s) }},
		{"pricing", "`GET /availability` at the catalogue's caps", func() error { return b.pricing(ctx, s) }},
		{"list", "`GET /bookings?limit=25`", func() error { return b.largeList(ctx, s, small) }},
	} {
		if b.wants(one.show) {
			b.try(ctx, one.show, one.figure, one.measure)
		}
	}
	return nil
}

// openShop reads the seeded tenant's catalogue and adds the units if they are missing.
func (b *bench) openShop(ctx context.Context) (*shop, error) {
	env := b.platform.Env
	base, _, _ := strings.Cut(strings.TrimPrefix(env["BASE_URL"], "http://"), "/")
	settings, err := b.platform.Settings("bookings")
	if err != nil {
		return nil, err
	}
	s := &shop{
		addr: base, key: env["DEMO_TEST_KEY"], live: env["DEMO_LIVE_KEY"],
		app: settings["DATABASE_URL"], bookings: settings["HTTP_ADDR"],
	}
	if s.admin, err = b.platform.Admin(ctx, s.app); err != nil {
		return nil, err
	}
	var me struct {
		Tenant ids.Tenant `json:"tenant_id"`
	}
	if err := s.get(ctx, "/me", &me); err != nil {
		return s, err
	}
	s.tenant = me.Tenant.UUID()
	var created struct {
		ID string `json:"id"`
	}
	if err := s.post(ctx, "/customers", "bench-customer", `{"first_name":"Bench","email":"bench@example.com"}`, &created); err != nil {
		return s, err
	}
	s.customer = created.ID
	return s, s.addUnits(ctx)
}

// addUnits finds the package that can be booked with any unit of its service, and adds units to the service.
func (s *shop) addUnits(ctx context.Context) error {
	var packs struct {
		Data []struct {
			ID      ids.ID[packPrefix]    `json:"id"`
			Name    string                `json:"name"`
			Service ids.ID[servicePrefix] `json:"service_id"`
		} `json:"data"`
	}
	if err := s.get(ctx, "/packages?limit=100", &packs); err != nil {
		return err
	}
	for _, p := range packs.Data {
		if p.Name != "Half day" {
			continue
		}
		s.pack, s.packUUID = p.ID.String(), p.ID.UUID()
		for i := range s.units {
			id := unitUUID(i)
			s.units[i] = ids.FromUUID[unitPrefix](id).String()
			_, err := s.admin.Exec(ctx, `
				with u as (insert into units (tenant_id, livemode, id, name) values ($1, false, $2, $3) on conflict do nothing returning id)
				insert into unit_services (tenant_id, livemode, unit_id, service_id) select $1, false, id, $4 from u`,
				s.tenant, id, fmt.Sprintf("Bench %d", i), p.Service.UUID())
			if err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("the seed has no package %q", "Half day")
}

// unitUUID returns the i-th unit's id. unitSQL does the same with a number in SQL.
func unitUUID(i int) (u [16]byte) {
	u[0], u[6], u[8], u[15] = 0xff, 0x70, 0x80, byte(i)
	return u
}

const unitSQL = `('ff000000-0000-7000-8000-' || lpad(to_hex((:u)::bigint), 12, '0'))::uuid`

// bookingBody returns the body of a booking of the unit on a day.
func (s *shop) bookingBody(unit int, day time.Time) string {
	return fmt.Sprintf(`{"customer_id":%q,"package_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":"10:00",`+
		`"event_type":"Team outing","guest_count":4,"notes":"Vegetarian lunch for two."}`,
		s.customer, s.pack, s.units[unit], day.Format(time.DateOnly))
}

// book creates one booking of the first unit and returns its id.
func (s *shop) book(ctx context.Context, key string, day time.Time) (string, error) {
	var created struct {
		ID string `json:"id"`
	}
	err := s.post(ctx, "/bookings", key, s.bookingBody(0, day), &created)
	return created.ID, err
}

func (s *shop) get(ctx context.Context, path string, out any) error {
	return s.call(ctx, load.Request(http.MethodGet, "/api/v1"+path, s.headers(s.key, ""), ""), http.StatusOK, out)
}

func (s *shop) post(ctx context.Context, path, key, body string, out any) error {
	return s.call(ctx, load.Request(http.MethodPost, "/api/v1"+path, s.headers(s.key, key), body), http.StatusCreated, out)
}

func (s *shop) call(ctx context.Context, request []byte, status int, out any) error {
	body, err := load.Once(ctx, load.Target{Addr: s.addr, Nth: func(int) []byte { return request }, Status: status})
	if err != nil {
		return err
	}
	return json.Unmarshal(body, out)
}

func (s *shop) headers(credential, idempotency string) []string {
	headers := []string{"Authorization: Bearer " + credential}
	if idempotency != "" {
		headers = append(headers, "Idempotency-Key: "+idempotency)
	}
	return headers
}
