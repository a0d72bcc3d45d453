package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
)

// Rows that the benchmark inserts have ids that consist of one of these prefixes and a number.
const (
	rowPrefix   = "fe000000-0000-7000-8000-"
	unitPrefix  = "ff000000-0000-7000-8000-"
	barePrefix  = "ffffffff-0001-7000-8000-" // of pgbench's bookings
	eventPrefix = "ffffffff-0002-7000-8000-" // of their events
)

// rowUUID returns the id of a numbered row, and rowSQL its SQL expression.
func rowUUID(prefix string, n int) (u [16]byte) {
	text, _ := hex.DecodeString(strings.ReplaceAll(fmt.Sprintf("%s%012x", prefix, n), "-", "")) // the prefixes are valid
	copy(u[:], text)
	return u
}

func rowSQL(prefix, number string) string {
	return fmt.Sprintf(`('%s' || lpad(to_hex((%s)::bigint), 12, '0'))::uuid`, prefix, number)
}

func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// publicID returns the id of a resource, such as bk_…, and uuidOf returns its UUID.
func publicID(prefix string, u [16]byte) string {
	_, text, _ := strings.Cut(ids.FromUUID[ids.CustomerPrefix](u).String(), "_")
	return prefix + "_" + text
}

func uuidOf(id string) ([16]byte, error) {
	_, text, _ := strings.Cut(id, "_")
	parsed, err := ids.Parse[ids.CustomerPrefix]("cu_" + text)
	return parsed.UUID(), err
}

// tenant sends requests through the gateway with one of its API keys.
type tenant struct{ addr, key string }

func (t tenant) request(method, path, idempotencyKey, body string) []byte {
	headers := []string{"Authorization: Bearer " + t.key}
	if idempotencyKey != "" {
		headers = append(headers, "Idempotency-Key: "+idempotencyKey)
	}
	return load.Request(method, "/api/v1"+path, headers, body)
}

// target returns the gateway with a GET of the n-th path, and post with the n-th POST.
func (t tenant) target(path func(n int) string) load.Target {
	return load.Target{Addr: t.addr, Nth: func(n int) []byte { return t.request(http.MethodGet, path(n), "", "") }}
}

func (t tenant) post(nth func(n int) (path, idempotencyKey, body string)) load.Target {
	return load.Target{Addr: t.addr, Nth: func(n int) []byte {
		path, key, body := nth(n)
		return t.request(http.MethodPost, path, key, body)
	}}
}

func same(path string) func(int) string { return func(int) string { return path } }

// call sends a request of a tenant and decodes the response into out.
func (f *figure) call(t tenant, method, path, body string, out any) {
	f.decode(t.addr, t.request(method, path, "", body), out)
}

// decode sends a request to an address and decodes the response into out.
func (f *figure) decode(addr string, request []byte, out any) {
	text, err := load.Once(f.ctx, addr, request)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		line, _, _ := strings.Cut(string(request), "\r\n")
		f.check(fmt.Errorf("%s: %w", line, err))
	}
}

// create sends a POST of a tenant and returns the id of what it creates or changes.
func (f *figure) create(t tenant, path, body string) string {
	var created struct{ ID string }
	f.call(t, http.MethodPost, path, body, &created)
	return created.ID
}

// template is create, and returns the UUID.
func (f *figure) template(t tenant, path, body string) [16]byte {
	u, err := uuidOf(f.create(t, path, body))
	f.check(err)
	return u
}

// me returns the owner of a tenant's API key.
func (f *figure) me(t tenant) (me struct {
	ID     string
	Tenant ids.Tenant `json:"tenant_id"`
	Scopes []string
},
) {
	f.call(t, http.MethodGet, "/me", "", &me)
	return me
}

// demo returns the seeded tenant with one of the keys in the platform's environment.
func (b *bench) demo(key string) tenant {
	base, _, _ := strings.Cut(strings.TrimPrefix(b.platform.Env["BASE_URL"], "http://"), "/")
	return tenant{addr: base, key: b.platform.Env[key]}
}

// newTenant creates a tenant with the command-line tool, and a test key.
func (f *figure) newTenant(slug string) tenant {
	f.identity("tenant", "create", "--slug", slug, "--name", slug, "--timezone", "UTC", "--currency", "USD", "--json")
	t := f.demo("")
	t.key = f.identity("key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json")
	return t
}

// identity runs identity's command-line tool and returns the secret in its output, if any.
func (f *figure) identity(args ...string) string {
	cmd := exec.CommandContext(f.ctx, filepath.Join(f.platform.Dir, "bin", "identity"), args...)
	cmd.Dir = f.platform.Dir
	text, err := cmd.Output()
	var created struct{ Secret string }
	if err == nil {
		err = json.Unmarshal(text, &created)
	}
	if err != nil {
		f.check(fmt.Errorf("identity %s: %w", strings.Join(args[:2], " "), err))
	}
	return created.Secret
}

// settingsOf returns the variables that a service was started with.
func (f *figure) settingsOf(service string) map[string]string {
	settings, err := f.platform.Settings(service)
	f.check(err)
	return settings
}

// database connects to a service's database, not subject to row-level security. The connection stays open until the end
// of the run.
func (f *figure) database(service string) *pgx.Conn {
	if f.databases[service] == nil {
		db, err := f.platform.Admin(f.ctx, f.settingsOf(service)["DATABASE_URL"])
		f.check(err)
		f.databases[service] = db
	}
	return f.databases[service]
}

// execute sends a statement to a service's database.
func (f *figure) execute(service, sql string, args ...any) {
	_, err := f.database(service).Exec(f.ctx, sql, args...)
	f.check(err)
}

// copies inserts copies n = from…to of a row in test mode into a table of a service. own contains the SQL of the
// columns that differ.
func (f *figure) copies(service, table string, row [16]byte, from, to int, own map[string]string) {
	condition := fmt.Sprintf("id = '%x' and not livemode", row)
	f.check(bulk.Copy(f.ctx, f.database(service), table, condition, from, to, own))
}

// The days of the bookings that are created through the API range from firstDay to the template's day. recordedDay is
// the day of the booking whose SQL is recorded, near the last day that the contract allows. The contract does not limit
// pgbench, which books later days.
var (
	firstDay    = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	recordedDay = time.Date(2199, 3, 1, 0, 0, 0, 0, time.UTC)
)

const firstPage = "/bookings?limit=25"

const (
	units     = 64     // booked in turn, so that parallel requests never compete for the same one
	raceUnit  = units  // an additional unit
	smallList = 10_000 // rows of the small list, with which the large one is compared
)

// shop is the demo tenant, whose bookings are created and listed.
type shop struct {
	test, live     tenant
	id             [16]byte
	pack, customer string
	template       [16]byte // a booking in test mode that is copied
	listed         int      // bookings that list has created
	deep           string   // path of a page in live mode: the second half of the list, and all later rows, are newer
}

// open returns the shop. The first call adds its units, a customer, and the small list of bookings in live mode.
func (f *figure) open() *shop {
	if f.shop != nil {
		return f.shop
	}
	s := &shop{test: f.demo("DEMO_TEST_KEY"), live: f.demo("DEMO_LIVE_KEY")}
	s.id = f.me(s.test).Tenant.UUID()
	s.customer = f.create(s.test, "/customers", `{"first_name":"Bench","email":"bench@example.com"}`)
	f.addUnits(s)
	s.template = f.template(s.test, "/bookings", s.bookingBody(0, recordedDay.AddDate(-1, 0, 0)))
	for _, table := range []string{"services", "units", "packages", "customers"} { // the rows of the list refer to them
		f.execute("bookings", fmt.Sprintf(`insert into %[1]s
			select (jsonb_populate_record(t, '{"livemode": true}')).* from %[1]s t
			where tenant_id = $1 and not livemode`, table), s.id)
	}
	f.copies("bookings", "bookings", s.template, 1, smallList/2, listed("number"))
	var page struct {
		Next string `json:"next_cursor"`
	}
	f.call(s.live, http.MethodGet, firstPage, "", &page)
	s.deep = firstPage + "&cursor=" + url.QueryEscape(page.Next)
	f.copies("bookings", "bookings", s.template, smallList/2+1, smallList, listed("number"))
	f.shop = s
	return s
}

// addUnits finds the package that can be booked with any unit of its service, and adds units to the service.
func (f *figure) addUnits(s *shop) {
	var packs struct {
		Data []struct{ ID, Name string }
	}
	f.call(s.test, http.MethodGet, "/packages?limit=100", "", &packs)
	for _, p := range packs.Data {
		if p.Name == "Half day" {
			s.pack = p.ID
		}
	}
	pack, err := uuidOf(s.pack)
	if err != nil {
		f.check(fmt.Errorf("the seed has no package %q: %w", "Half day", err))
	}
	f.execute("bookings", `
		with u as (insert into units (tenant_id, livemode, id, name)
			select $1, false, `+rowSQL(unitPrefix, "n")+`, 'Bench ' || n from generate_series(0, $3::int) n returning id)
		insert into unit_services (tenant_id, livemode, unit_id, service_id)
			select $1, false, u.id, p.service_id from u, packages p where p.tenant_id = $1 and not p.livemode and p.id = $2`,
		s.id, pack, raceUnit)
}

// listed returns the columns that differ in the n-th row of a list: each row is newer than the previous one.
func listed(more ...string) map[string]string {
	at := "timestamptz '2020-01-01' + n * interval '100 ms'"
	all := map[string]string{"livemode": "true", "id": rowSQL(rowPrefix, "n"), "created_at": at, "updated_at": at}
	for _, column := range more {
		all[column] = "'L-' || n"
	}
	return all
}

// bookingBody returns the body of a booking of the unit on a day.
func (s *shop) bookingBody(unit int, day time.Time) string {
	return fmt.Sprintf(`{"customer_id":%q,"package_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":"10:00",`+
		`"event_type":"Team outing","guest_count":4,"notes":"Vegetarian lunch for two."}`,
		s.customer, s.pack, publicID("un", rowUUID(unitPrefix, unit)), day.Format(time.DateOnly))
}

// nthBooking returns the body for the n-th slot: all units of a day in turn, then those of the next day.
func (s *shop) nthBooking(n int) string {
	return s.bookingBody(n%units, firstDay.AddDate(0, 0, n/units))
}

// reads returns the gateway with a GET of each row of the small list in turn, and bookings with a POST of each slot
// from the first.
func (s *shop) reads() load.Target {
	return s.live.target(func(n int) string { return bookingPath(rowPrefix, n%smallList+1) })
}

func bookingPath(prefix string, n int) string {
	return "/bookings/" + publicID("bk", rowUUID(prefix, n))
}

func (s *shop) books(first int) load.Target {
	return s.test.post(func(n int) (path, key, body string) {
		return "/bookings", fmt.Sprintf("bench-%d", first+n), s.nthBooking(first + n)
	})
}
