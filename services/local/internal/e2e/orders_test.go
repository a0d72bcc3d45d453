package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/services/local/internal/prove"
)

// ordered are the services whose round trips to PostgreSQL are put in order.
var ordered = []string{"bookings", "customers", "payments"}

// prover runs writes in a chosen order. Each participant has a gateway and processes of the ordered services of its own, with proxies
// between them and PostgreSQL. Their workers and consumers have empty databases and topics, so they do nothing: those of the platform
// do the work.
type prover struct {
	sched   *prove.Scheduler
	clients []*client // one per participant
	plain   *client   // of the platform
	units   *pgx.Conn // the database of bookings
}

// newProver starts the participants. A service with a seeded fault is built with it.
func newProver(t *testing.T, p *platform, faults ...seeded) *prover {
	t.Helper()
	onMachine(t)
	if os.Getenv("POOLER") != "" {
		t.Skip("a pooler hides which of PostgreSQL's processes wait for a lock")
	}
	s := &prover{plain: p.as(t, "DEMO_TEST_KEY"), sched: &prove.Scheduler{MaxWait: 40 * time.Millisecond}}
	s.sched.Blocked, s.units = prove.BlockedOn(p.database(t, "bookings")), p.database(t, "bookings")
	own := map[string]map[string]string{} // the environment by service
	for _, service := range ordered {
		env, err := readEnv(p.path("services", service+".env"))
		if err != nil {
			t.Fatal(err)
		}
		own[service] = env
		idle(t, p, service, env)
	}
	programs := map[string]string{}
	for _, service := range ordered {
		programs[service] = filepath.Join(p.root, "bin", service)
	}
	for _, f := range faults {
		programs[f.service] = f.build(t)
	}
	for number := range 2 {
		s.clients = append(s.clients, s.participant(t, p, number, own, programs))
	}
	return s
}

const idlePrefix = "idle."

// idle creates an empty database and empty topics for the workers of a service.
func idle(t *testing.T, p *platform, service string, env map[string]string) {
	t.Helper()
	owner, err := url.Parse(env["MIGRATE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	if len(rows(t, p.database(t, service), "select datname::text from pg_database where datname = $1", "idle_"+service)) == 0 {
		execute(t, p.database(t, service), "create database idle_"+service+" owner "+owner.User.Username())
		empty, err := pgx.Connect(t.Context(), inDatabase(t, p.env["POSTGRES_URL"], "idle_"+service))
		if err != nil {
			t.Fatal(err)
		}
		for _, extension := range rows(t, p.database(t, service), "select extname::text from pg_extension") {
			execute(t, empty, "create extension if not exists "+extension)
		}
		_ = empty.Close(t.Context())
	}
	migrate := p.command(service, "migrate")
	for name, value := range env {
		if name == "MIGRATE_DATABASE_URL" || name == "WORKER_DATABASE_URL" {
			value = inDatabase(t, value, "idle_"+service)
			env[name] = value
		}
		migrate.Env = append(migrate.Env, name+"="+value)
	}
	migrate.Env = append(migrate.Env, "KAFKA_TOPIC_PREFIX="+idlePrefix, "KAFKA_PARTITIONS=1")
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("migrate the empty database of %s: %v\n%s", service, err, out)
	}
}

func inDatabase(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// participant starts the processes of a participant and returns a client of its gateway.
func (s *prover) participant(t *testing.T, p *platform, number int, own map[string]map[string]string, programs map[string]string) *client {
	t.Helper()
	var all []*replica
	var upstreams []string
	for _, service := range ordered {
		u, err := url.Parse(own[service]["DATABASE_URL"])
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := prove.Listen(u.Host, s.sched.Intercept(number))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		u.Host = proxy.Address()
		r := newReplica(t, service, programs[service], "DATABASE_URL="+u.String(),
			"WORKER_DATABASE_URL="+own[service]["WORKER_DATABASE_URL"], "KAFKA_TOPIC_PREFIX="+idlePrefix, "KAFKA_PARTITIONS=1")
		all = append(all, r)
		upstreams = append(upstreams, "UPSTREAM_"+strings.ToUpper(service)+"_URL=http://"+r.address)
	}
	gateway := newReplica(t, "gateway", filepath.Join(p.root, "bin", "gateway"), "KAFKA_TOPIC_PREFIX="+idlePrefix, "KAFKA_PARTITIONS=1")
	for _, r := range append(all, gateway) {
		r.start(t, p, upstreams...)
		t.Cleanup(r.stop)
	}
	base, err := url.Parse(p.env["BASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	base.Host = gateway.address
	return &client{base: base.String(), key: s.plain.key, checker: s.plain.checker}
}

// fixture is the objects of one run, by their names in actions.
type fixture map[string]string

// action is a write of a client on the objects of a fixture: a method, a path and a body, with $name in place of the ID of an object.
type action struct{ name, method, path, body string }

// request returns the action for a fixture.
func (d action) request(sc fixture) (path, body string) {
	replace := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(name string) string { return sc[name[1:]] })
	}
	return replace(d.path), replace(d.body)
}

var placeholder = regexp.MustCompile(`\$[a-z]+`)

// family is actions on the same objects.
type family struct {
	name    string
	set     func(t *testing.T, c *client) fixture
	reads   []string // what clients see afterwards
	actions []action
}

const slot = `"event_date":"$day","event_start_time":"%s","event_end_time":"%s"`

func onUnit(unit, from, to string) string {
	return `{"unit_id":"` + unit + `",` + fmt.Sprintf(slot, from, to) + `}`
}

var families = []family{
	{
		name: "a pending booking from 10:00 to 12:00",
		set: func(t *testing.T, c *client) fixture {
			sc := fixture{"day": anyDay()}
			sc.create(t, c, "unit", "/units", `{"name":"Ordered"}`)
			sc.create(t, c, "other", "/units", `{"name":"Other"}`)
			sc.create(t, c, "booking", "/bookings", onUnit("$unit", "10:00", "12:00"))
			return sc
		},
		reads: []string{"/bookings/$booking", "/units/$unit"},
		actions: []action{
			{"book a free slot", "POST", "/bookings", onUnit("$unit", "13:00", "15:00")},
			{"book a slot that overlaps it", "POST", "/bookings", onUnit("$unit", "14:00", "16:00")},
			{"book the slot of the booking", "POST", "/bookings", onUnit("$unit", "10:00", "11:00")},
			{"book the other unit", "POST", "/bookings", onUnit("$other", "11:00", "13:00")},
			{"move it into the free slot", "PATCH", "/bookings/$booking", `{"event_start_time":"14:30","event_end_time":"15:30"}`},
			{"move it to the other unit", "PATCH", "/bookings/$booking", `{"unit_id":"$other"}`},
			{"confirm it", "PATCH", "/bookings/$booking", `{"status":"confirmed"}`},
			{"cancel it", "POST", "/bookings/$booking/cancel", `{"reason":"Rain"}`},
			{"change its notes", "PATCH", "/bookings/$booking", `{"notes":"Bring hats."}`},
			{"deactivate the unit", "PATCH", "/units/$unit", `{"status":"inactive"}`},
			{"close the unit", "POST", "/closures", `{"name":"Repair","unit_ids":["$unit"],"starts_at":"$dayT12:30:00Z","ends_at":"$dayT23:00:00Z"}`},
		},
	},
	{
		name: "a sent quote",
		set: func(t *testing.T, c *client) fixture {
			sc := fixture{"day": anyDay()}
			sc.create(t, c, "unit", "/units", `{"name":"Quoted"}`)
			sc.create(t, c, "customer", "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
			sc.create(t, c, "quote", "/quotes", `{"customer_id":"$customer","unit_id":"$unit",`+fmt.Sprintf(slot, "10:00", "12:00")+
				`,"line_items":[{"description":"Tour","quantity":1,"unit_amount":{"amount":10000,"currency":"USD"}}],"deposit_amount":{"amount":2500,"currency":"USD"}}`)
			c.want(t, http.StatusOK, "POST", "/quotes/"+sc["quote"]+"/send", "")
			return sc
		},
		reads: []string{"/quotes/$quote", "/invoices?customer_id=$customer", "/bookings?unit_id=$unit"},
		actions: []action{
			{"accept it", "POST", "/quotes/$quote/accept", ""},
			{"decline it", "POST", "/quotes/$quote/decline", ""},
			{"cancel the quote", "POST", "/quotes/$quote/cancel", ""},
			{"book its slot", "POST", "/bookings", onUnit("$unit", "11:00", "13:00")},
			{"deactivate its unit", "PATCH", "/units/$unit", `{"status":"inactive"}`},
			{"change its customer", "PATCH", "/customers/$customer", `{"first_name":"Grace"}`},
		},
	},
	{
		name: "an open invoice of 100.00",
		set: func(t *testing.T, c *client) fixture {
			sc := fixture{"day": anyDay()}
			sc.create(t, c, "customer", "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
			sc.create(t, c, "invoice", "/invoices", `{"customer_id":"$customer","line_items":[{"description":"Tour","quantity":1,"unit_amount":{"amount":10000,"currency":"USD"}}]}`)
			c.want(t, http.StatusOK, "POST", "/invoices/"+sc["invoice"]+"/open", "")
			return sc
		},
		reads: []string{"/invoices/$invoice", "/credit-notes?invoice_id=$invoice"},
		actions: []action{
			{"pay all", "POST", "/invoices/$invoice/record-payment", `{"amount":{"amount":10000,"currency":"USD"},"method":"cash"}`},
			{"pay a part", "POST", "/invoices/$invoice/record-payment", `{"amount":{"amount":4000,"currency":"USD"},"method":"cash"}`},
			{"credit all of it", "POST", "/invoices/$invoice/credit-notes", `{"amount":{"amount":10000,"currency":"USD"}}`},
			{"void it", "POST", "/invoices/$invoice/void", ""},
		},
	},
	{
		name: "an open invoice of 100.00 of which 30.00 are paid",
		set: func(t *testing.T, c *client) fixture {
			sc := fixture{"day": anyDay()}
			sc.create(t, c, "customer", "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
			sc.create(t, c, "invoice", "/invoices", `{"customer_id":"$customer","line_items":[{"description":"Tour","quantity":1,"unit_amount":{"amount":10000,"currency":"USD"}}]}`)
			c.want(t, http.StatusOK, "POST", "/invoices/"+sc["invoice"]+"/open", "")
			var paid struct{ Payments []struct{ ID string } }
			c.want(t, http.StatusOK, "POST", "/invoices/"+sc["invoice"]+"/record-payment", `{"amount":{"amount":3000,"currency":"USD"},"method":"cash"}`).decode(t, &paid)
			sc["payment"] = paid.Payments[0].ID
			return sc
		},
		reads: []string{"/invoices/$invoice", "/credit-notes?invoice_id=$invoice"},
		actions: []action{
			{"pay the rest", "POST", "/invoices/$invoice/record-payment", `{"amount":{"amount":7000,"currency":"USD"},"method":"cash"}`},
			{"pay a part of the rest", "POST", "/invoices/$invoice/record-payment", `{"amount":{"amount":4000,"currency":"USD"},"method":"cash"}`},
			{"reverse the payment", "POST", "/invoices/$invoice/payments/$payment/reverse", ""},
			{"credit all", "POST", "/invoices/$invoice/credit-notes", `{"amount":{"amount":10000,"currency":"USD"},"refund":"none"}`},
			{"credit a part and hand it back", "POST", "/invoices/$invoice/credit-notes", `{"amount":{"amount":9000,"currency":"USD"},"refund":"manual"}`},
			{"void the paid one", "POST", "/invoices/$invoice/void", ""},
			{"mark it uncollectible", "POST", "/invoices/$invoice/mark-uncollectible", ""},
		},
	},
}

// create creates an object of the fixture.
func (sc fixture) create(t *testing.T, c *client, name, path, body string) {
	t.Helper()
	_, body = action{body: body}.request(sc)
	sc[name] = c.want(t, http.StatusCreated, "POST", path, body).id(t)
}

// seen returns what clients see after the actions: the responses and the objects of the fixture, without what differs between runs.
func (s *prover) seen(t *testing.T, f family, sc fixture, got []response) string {
	t.Helper()
	var out strings.Builder
	for _, a := range got {
		fmt.Fprintf(&out, "%d %s\n", a.Status, a.code())
		if a.Status == http.StatusCreated { // other responses can show later writes
			out.Write(a.Body)
			out.WriteString("\n")
		}
	}
	for _, read := range f.reads {
		path, _ := action{path: read}.request(sc)
		out.Write(following.ReplaceAll(s.plain.want(t, http.StatusOK, "GET", path, "").Body, []byte("$1")))
		out.WriteString("\n")
	}
	for _, a := range got {
		if a.Status == http.StatusCreated && strings.HasPrefix(a.id(t), "bk_") {
			out.Write(s.plain.want(t, http.StatusOK, "GET", "/bookings/"+a.id(t), "").Body)
			out.WriteString("\n")
		}
	}
	for _, name := range []string{"unit", "other"} { // a tenant can have 2,000 units
		if sc[name] != "" {
			execute(t, s.units, "update units set status = 'retired' where id = $1", uuidOf(t, sc[name]))
		}
	}
	return alike(out.String(), sc)
}

// following matches the property of a booking that follows later, from the events of invoices.
var following = regexp.MustCompile(`("object":"booking".*?)"invoice_ids":\[[^]]*\],`)

// varying matches what differs between two runs of the same actions: IDs, numbers of documents, times and days, in this order.
var varying = regexp.MustCompile(`\b[a-z]{2,4}_[0-9a-z]{26}\b|\b[A-Z]+-(?:\d{4}-)?\d{4,}\b|\b20\d\d-\d\d-\d\d(?:T[0-9:.]+(?:Z|[+-]\d\d:\d\d))?`)

// alike replaces what varies: IDs by the name in the fixture or the order of their appearance.
func alike(text string, sc fixture) string {
	known := map[string]string{}
	for name, id := range sc {
		known[id] = "$" + name
	}
	return varying.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case found[2] == '_' || found[3] == '_' || found[4] == '_':
			if known[found] == "" {
				prefix, _, _ := strings.Cut(found, "_")
				known[found] = fmt.Sprintf("%s_%d", prefix, len(known))
			}
			return known[found]
		case found[0] >= 'A':
			return "NUMBER"
		default:
			return "TIME"
		}
	})
}

// difference describes the first difference of two texts.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	part := func(text string) string { return text[max(0, i-100):min(len(text), i+200)] }
	return fmt.Sprintf("got …%s…, want …%s…", part(got), part(want))
}

// play runs actions in the order of a schedule and returns what clients see.
func (s *prover) play(t *testing.T, f family, prefix prove.Schedule, actions ...action) (steps []prove.Step, seen string) {
	t.Helper()
	sc := f.set(t, s.plain)
	got, writes := make([]response, len(actions)), make([]func(), len(actions))
	for i, d := range actions {
		path, body := d.request(sc)
		writes[i] = func() { got[i] = s.clients[i].do(t, d.method, path, body, unique("order")) }
	}
	steps, err := s.run(t, prefix, nil, writes...)
	if err != nil {
		t.Fatalf("schedule %s: %v", prove.ScheduleOf(steps), err)
	}
	return steps, s.seen(t, f, sc, got)
}

func (s *prover) run(t *testing.T, prefix prove.Schedule, fault *prove.Fault, writes ...func()) ([]prove.Step, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return s.sched.Run(ctx, prefix, fault, writes...)
}

// warm opens the connections of the participants and prepares their statements.
func (s *prover) warm(t *testing.T, families ...family) {
	t.Helper()
	for _, f := range families {
		for _, d := range f.actions {
			s.play(t, f, nil, d, d)
		}
	}
}

// atMost returns a context that ends after a short time, or after a long one with TEST_SCALE=full.
func atMost(t *testing.T, short time.Duration) context.Context {
	t.Helper()
	if os.Getenv("TEST_SCALE") == "full" {
		short = 30 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), short)
	t.Cleanup(cancel)
	return ctx
}

// TestOrders proves on the executables of the platform that neither the order of round trips nor a broken connection matters.
func TestOrders(t *testing.T) {
	s := newProver(t, shared)
	s.warm(t, families...)
	if text := os.Getenv("SCHEDULE"); text != "" {
		s.replay(t, text)
		return
	}
	t.Run("every order", s.everyOrder)
	t.Run("every break", s.everyBreak)
}

// pair is two writes of a family.
type pair struct {
	family
	actions []action
	allowed []string // what clients see when one write follows the other
}

// pairs returns all pairs of writes, and each write with itself.
func pairs() (list []*pair) {
	for _, f := range families {
		for i, a := range f.actions {
			for _, b := range f.actions[i:] {
				list = append(list, &pair{family: f, actions: []action{a, b}})
			}
		}
	}
	return list
}

// check runs a pair in the order of a schedule.
func (s *prover) check(t *testing.T, p *pair, prefix prove.Schedule) ([]prove.Step, error) {
	for first := len(p.allowed); first < 2; first++ {
		p.allowed = append(p.allowed, s.sequence(t, p, first))
	}
	steps, seen := s.play(t, p.family, prefix, p.actions...)
	if slices.Contains(p.allowed, seen) {
		return steps, nil
	}
	return steps, fmt.Errorf("SCHEDULE='%s; %s; %s' (%s)\none after the other: %s\nthe other one first: %s", p.actions[0].name, p.actions[1].name,
		prove.ScheduleOf(steps), p.name, difference(seen, p.allowed[0]), difference(seen, p.allowed[1]))
}

// sequence runs one write after the other and returns what clients see.
func (s *prover) sequence(t *testing.T, p *pair, first int) string {
	t.Helper()
	sc, got := p.set(t, s.plain), make([]response, 2)
	for _, i := range []int{first, 1 - first} {
		path, body := p.actions[i].request(sc)
		got[i] = s.clients[i].do(t, p.actions[i].method, path, body, unique("order"))
	}
	return s.seen(t, p.family, sc, got)
}

// replay runs the schedule of a failure.
func (s *prover) replay(t *testing.T, text string) {
	t.Helper()
	parts := strings.Split(text, "; ")
	schedule, err := prove.ParseSchedule(parts[len(parts)-1])
	if err != nil {
		t.Fatalf("SCHEDULE: %v", err)
	}
	for _, p := range pairs() {
		if slices.Equal(parts[:len(parts)-1], []string{p.actions[0].name, p.actions[1].name}) {
			if _, err := s.check(t, p, schedule); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Fatalf("SCHEDULE: no pair %q", parts[:len(parts)-1])
}

// everyOrder runs pairs of writes in every order with at most two preemptions. What clients see must be what they see when one
// write follows the other. A short run takes a sample of pairs.
func (s *prover) everyOrder(t *testing.T) {
	all := pairs()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	ctx, orders, complete, begin := atMost(t, 40*time.Second), 0, 0, time.Now()
	for _, p := range all {
		runs, completed, err := prove.Explore(ctx, 2, func(prefix prove.Schedule) ([]prove.Step, error) { return s.check(t, p, prefix) })
		if err != nil {
			t.Error(err)
		}
		if orders += runs; completed {
			complete++
		}
	}
	t.Logf("%d orders; all of %d of %d pairs; %v", orders, complete, len(all), time.Since(begin).Round(time.Second))
	if orders == 0 {
		t.Error("no order was run")
	}
}

// operation is one write of a family.
type operation struct {
	family
	action
}

func operations() (list []operation) {
	for _, f := range families {
		for _, d := range f.actions {
			list = append(list, operation{f, d})
		}
	}
	return list
}

// everyBreak breaks the connection of a write before and after each of its round trips. The client then repeats the write with its
// key. It must see what it sees without the break, and the same response to one more repetition. A short run takes a sample of writes.
func (s *prover) everyBreak(t *testing.T) {
	all := operations()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	ctx, breaks, begin := atMost(t, 15*time.Second), 0, time.Now()
	for _, w := range all {
		n, err := s.breaks(ctx, t, w)
		if breaks += n; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d breaks of %d writes in %v", breaks, len(all), time.Since(begin).Round(time.Second))
	if breaks == 0 {
		t.Error("no connection was broken")
	}
}

// breaks breaks a write at each place, until what clients see is wrong. It returns the number of breaks. After a break, the next
// connection prepares its statements again, so a write makes more round trips than before.
func (s *prover) breaks(ctx context.Context, t *testing.T, w operation) (n int, err error) {
	t.Helper()
	if ctx.Err() != nil {
		return 0, nil
	}
	_, want := s.play(t, w.family, nil, w.action)
	for _, drop := range []prove.Drop{prove.Before, prove.After} {
		for i, reached := 0, true; reached && ctx.Err() == nil; i++ {
			var seen string
			if seen, reached = s.broken(t, w.family, w.action, &prove.Fault{Step: i, Drop: drop}); reached {
				n++
			}
			if seen != want {
				return n, fmt.Errorf("%s: %s, broken at round trip %d (%d): %s", w.family.name, w.action.name, i, drop, difference(seen, want))
			}
		}
	}
	return n, nil
}

// broken runs a action with a fault, repeats it twice, and returns what clients see, and whether the fault was reached.
func (s *prover) broken(t *testing.T, f family, d action, fault *prove.Fault) (seen string, reached bool) {
	t.Helper()
	sc, key := f.set(t, s.plain), unique("break")
	path, body := d.request(sc)
	steps, err := s.run(t, nil, fault, func() { _, _ = s.clients[0].try(t, d.method, path, body, key) })
	if err != nil {
		t.Fatal(err)
	}
	definite := []int{200, 201, 404, 409, 422}
	got := s.clients[1].insist(t, d.method, path, body, key, definite...)
	again := s.clients[1].insist(t, d.method, path, body, key, definite...)
	seen = s.seen(t, f, sc, []response{got})
	if got.Status < 300 && string(again.Body) != string(got.Body) {
		seen += "the repetition: " + string(again.Body)
	}
	return seen, len(steps) > fault.Step
}
