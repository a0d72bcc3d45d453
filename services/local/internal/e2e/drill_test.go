package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
)

// scenario is what is lost, and the moments of the restore.
type scenario struct {
	name string
	// behind is by how much each database is older than the newest one.
	behind      map[string]time.Duration
	retainKafka bool
}

// TestRecoveryDrill loses everything under load: PostgreSQL and all processes are killed, Redis is empty, and Kafka is empty or ahead of
// the databases. It restores the databases to one moment, or each to another one, runs the commands of docs/operations/back-up.md, and checks that
// the services agree with each other and with Stripe, and that nothing that was acknowledged before the moment is lost. `make drill` runs
// all scenarios, under load for longer; DRILL=short runs one.
func TestRecoveryDrill(t *testing.T) {
	onMachine(t)
	if os.Getenv("DRILL") == "" {
		t.Skip("run `make drill`, or set DRILL=short for one scenario")
	}
	lag := time.Duration(scaled(2, 5)) * time.Second
	scenarios := []scenario{
		{name: "payments and customers are behind, Kafka is empty", behind: map[string]time.Duration{"payments": lag, "customers": lag / 2}},
		{name: "one moment, Kafka is empty"},
		{name: "one moment, Kafka is ahead", retainKafka: true},
		{name: "bookings is behind", behind: map[string]time.Duration{"bookings": lag}},
		{name: "webhooks is behind", behind: map[string]time.Duration{"webhooks": lag}},
	}
	if os.Getenv("TEST_SCALE") != "full" {
		scenarios = scenarios[:1] // it includes what the others need
	}
	d := newDrill(t)
	d.run(t, time.Duration(scaled(6, 45))*time.Second)
	for _, s := range scenarios {
		if !t.Run(s.name, func(t *testing.T) { d.recover(t, s) }) {
			return
		}
	}
}

// drill is a platform with a server of its own, its load, and what happened.
type drill struct {
	p             *platform
	first, now    *server
	load          *drillLoad
	receiver      *receiver
	begun, killed time.Time
}

func newDrill(t *testing.T) *drill {
	t.Helper()
	d := &drill{first: newServer(t)}
	d.now = d.first
	d.first.start(t, d.first.archiving()...)
	var err error
	if d.p, err = newPlatform("DATABASE_URL="+d.first.url(), "KAFKA=embedded"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.p.remove)
	if err := d.p.up(); err != nil {
		t.Fatal(err)
	}
	return d
}

// run sends load, takes the base backup meanwhile, and kills everything while the load goes on.
func (d *drill) run(t *testing.T, length time.Duration) {
	t.Helper()
	d.begun = time.Now()
	c := d.p.as(t, "DEMO_TEST_KEY")
	d.receiver = c.receive(t, `["*"]`, nil)
	d.load = &drillLoad{c: c, stripe: stripe{d.p.env["STRIPE_URL"], d.p.env["STRIPE_PUBLISHABLE_KEY"]}}
	d.load.unit = c.want(t, http.StatusCreated, http.MethodPost, "/units", `{"name":"Drill"}`).id(t)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() { d.load.work(t) })
	}
	d.first.backup(t)
	time.Sleep(length)
	if t.Failed() {
		d.load.ended.Store(true)
		workers.Wait()
		t.FailNow()
	}
	d.load.ended.Store(true) // requests that fail from now on are no error; those that succeed are in the journal
	d.killed = time.Now()
	d.kill(t)
	workers.Wait()
	t.Logf("%d requests acknowledged in %v", len(d.load.journal.entries), d.killed.Sub(d.begun).Round(time.Second))
}

// kill ends all processes immediately, the supervisor first.
func (d *drill) kill(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(d.p.path("pids"))
	if err != nil {
		t.Fatal(err)
	}
	if pid := d.p.pid("local"); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-d.p.gone
	}
	for _, f := range files {
		if pid := d.p.pid(f.Name()); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	d.now.kill()
}

// recover loses Redis, and Kafka if the scenario says so, restores each database to its moment, repairs and checks.
func (d *drill) recover(t *testing.T, s scenario) {
	if d.now != d.first { // the previous scenario's
		d.kill(t)
		d.now.discard(t)
	}
	lost := []string{"redis"}
	if !s.retainKafka {
		lost = append(lost, "kafka*")
	}
	for _, pattern := range lost {
		folders, err := filepath.Glob(d.p.path("data", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin, newest := time.Now(), d.killed.Add(-archiveTimeout-time.Second) // the archive is complete up to here
	moments := d.restore(t, s, newest)
	restored := time.Now()
	oldest := newest
	for _, moment := range moments {
		oldest = earliest(oldest, moment)
	}
	since := oldest.Add(-5 * time.Minute)
	if differ := d.differences(t); len(differ) == 0 && len(s.behind) > 0 {
		t.Error("the databases agree before the repair: nothing was tested")
	}
	if _, err := d.doc(t, since, 0, 1); err == nil && len(s.behind) > 0 {
		t.Error("the check finds no difference before the repair")
	}
	d.repair(t, since)
	repaired := time.Now()
	if err := d.p.up(); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	passes := d.converge(t, since)
	t.Logf("RPO %v (each database up to %v older), RTO %v: %v restore, %v repair, %v start; %v until everything agreed, after %d repairs",
		d.killed.Sub(newest).Round(time.Millisecond), newest.Sub(oldest), up.Sub(begin).Round(time.Millisecond), restored.Sub(begin).Round(time.Millisecond),
		repaired.Sub(restored).Round(time.Millisecond), up.Sub(repaired).Round(time.Millisecond), time.Since(up).Round(time.Millisecond), passes)
	d.lost(t, moments, newest)
	d.takesBookings(t)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// restore starts the restored server on the first one's port. Databases with an older moment come from further servers. It returns the
// moment of each.
func (d *drill) restore(t *testing.T, s scenario, newest time.Time) map[string]time.Time {
	t.Helper()
	moments := map[string]time.Time{}
	d.now = d.first.restore(t, unique("all"), newest, d.first.port)
	for service, behind := range s.behind {
		moments[service] = newest.Add(-behind)
		older := d.first.restore(t, unique(service), moments[service], freePort(t))
		d.now.take(t, older, "holdfast_"+service)
		older.discard(t)
	}
	return moments
}

var blocks = regexp.MustCompile("(?s)```sh\n(.*?)```")

// doc runs blocks of commands in the section "Repair" of docs/operations/back-up.md in the checkout: 0 are functions, 1 is the check, 2 the repair.
func (d *drill) doc(t *testing.T, since time.Time, numbers ...int) (string, error) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/operations/back-up.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Repair\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found := blocks.FindAllStringSubmatch(section, -1)
	script := "set -eu -o pipefail\nsince=" + since.UTC().Format(time.RFC3339) + "\n"
	for _, n := range numbers {
		script += found[n][1]
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = d.p.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *drill) repair(t *testing.T, since time.Time) {
	t.Helper()
	out, err := d.doc(t, since, 0, 2)
	if err != nil {
		t.Fatalf("repair: %v\n%s", err, out)
	}
	t.Logf("repair:\n%s", out)
}

// converge repairs until the check finds no difference, and returns the number of repairs, including the first.
func (d *drill) converge(t *testing.T, since time.Time) int {
	t.Helper()
	var out string
	for passes := 1; passes <= 5; passes++ {
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
			var err error
			if out, err = d.doc(t, since, 0, 1); err == nil {
				await(t, "the services agree", func() bool { return len(d.differences(t)) == 0 })
				return passes
			}
		}
		d.repair(t, since)
	}
	t.Fatalf("the databases still differ: %v\n%s\n%s", d.differences(t), out, d.p.log)
	return 0
}

// lost checks that nothing is lost that was acknowledged before its database's moment, and lists what is.
func (d *drill) lost(t *testing.T, moments map[string]time.Time, newest time.Time) {
	t.Helper()
	paid := d.p.charges(t)
	newestOf := map[string]entry{}
	for _, e := range d.load.journal.entries {
		if e.service == "stripe" {
			if id := strings.TrimPrefix(e.what, "paid "); paid[id].Received == 0 {
				t.Errorf("%s: Stripe does not know it", e.what)
			}
			continue
		}
		if e.version >= newestOf[e.path].version {
			newestOf[e.path] = e
		}
	}
	count := map[string]int{}
	for path, e := range newestOf {
		moment, ok := moments[e.service]
		if !ok {
			moment = newest
		}
		a := d.load.c.insist(t, http.MethodGet, path, "", "", http.StatusOK, http.StatusNotFound)
		var now struct{ Version int64 }
		a.decode(t, &now)
		if a.Status == http.StatusOK && now.Version >= e.version {
			continue
		}
		count[e.service]++
		if e.at.Before(moment) {
			t.Errorf("%s (%s) was acknowledged %v before the moment of the restore, and is lost", path, e.what, moment.Sub(e.at))
		}
	}
	t.Logf("lost, of %d resources: %v", len(newestOf), count)
	text, err := os.ReadFile(filepath.Join(d.p.root, "lost.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("objects that other services still knew in the last repair: %d", strings.Count(string(text), "\n"))
}

// takesBookings checks that no slot of a booking can be booked again, that the platform takes new ones, and that no number is used
// twice.
func (d *drill) takesBookings(t *testing.T) {
	t.Helper()
	c := d.load.c
	held := d.rows(t, "bookings", `select event_day::text from bookings where unit_id = $1 and status in ('pending', 'confirmed') order by 1 limit 3`, uuidOf(t, d.load.unit))
	for _, day := range held {
		a := c.insist(t, http.MethodPost, "/bookings", fmt.Sprintf(`{"unit_id":%q,"event_date":%q}`, d.load.unit, day), unique("drill"), http.StatusConflict)
		if a.code() != "slot_unavailable" {
			t.Errorf("%s: %s", day, a.Body)
		}
	}
	if len(held) == 0 {
		t.Error("no booking is left")
	}
	seen := d.rows(t, "webhooks", `select distinct split_part(object_id, '_', 1) || ' ' || (convert_from(body, 'UTF8')::json->'data'->'object'->>'number')
		from events where convert_from(body, 'UTF8')::json->'data'->'object'->>'number' is not null`)
	customer := c.insist(t, http.MethodPost, "/customers", `{"first_name":"Nora","email":"nora@example.com"}`, unique("drill"), http.StatusCreated).id(t)
	var b, v struct{ ID, Number string }
	c.insist(t, http.MethodPost, "/bookings", fmt.Sprintf(`{"unit_id":%q,"event_date":%q}`, d.load.unit, chainDay(int(d.load.day.Add(1)))), unique("drill"), http.StatusCreated).decode(t, &b)
	c.insist(t, http.MethodPost, "/invoices", fmt.Sprintf(`{"customer_id":%q,"line_items":[{"description":"Bag","quantity":1,"unit_amount":{"amount":1500,"currency":"USD"}}]}`, customer), unique("drill"), http.StatusCreated).decode(t, &v)
	c.insist(t, http.MethodPost, "/invoices/"+v.ID+"/open", "", unique("drill"), http.StatusOK).decode(t, &v)
	for _, number := range []string{"bk " + b.Number, "inv " + v.Number} {
		if slices.Contains(seen, number) {
			t.Errorf("%s is in an event already", number)
		}
	}
}

// rows returns the values of a text column of a service's database. It leaves no connection open, because the server is killed.
func (d *drill) rows(t *testing.T, service, sql string, args ...any) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), strings.Replace(d.now.url(), "/postgres?", "/holdfast_"+service+"?", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	return rows(t, conn, sql, args...)
}

// differences compares the databases with each other and with Stripe, independently of the command repair.
func (d *drill) differences(t *testing.T) (found []string) {
	t.Helper()
	in := func(service, sql string) []string { return d.rows(t, service, sql) }
	compare := func(what string, owner, copies []string) {
		for _, one := range owner {
			if !slices.Contains(copies, one) {
				found = append(found, what+" lacks "+one)
			}
		}
		for _, one := range copies {
			if !slices.Contains(owner, one) {
				found = append(found, what+" has "+one)
			}
		}
	}
	bookings := in("bookings", `select id || ' ' || status || ' ' || version from bookings`)
	compare("customers: bookings", bookings, in("customers", `select id || ' ' || status || ' ' || version from bookings`))
	compare("payments: bookings", bookings, in("payments", `select id || ' ' || status || ' ' || version from bookings`))
	compare("bookings: customers", in("customers", `select id || ' ' || version from customers`), in("bookings", `select id || ' ' || version from customers where version > 0`))
	exist := in("bookings", `select id::text from bookings`)
	ofBookings := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(one string) bool { booking, _, _ := strings.Cut(one, " "); return !slices.Contains(exist, booking) })
	}
	charges := in("payments", `select booking_id || ' ' || gateway_id || ' ' || received || ' ' || refunded from payment_intents where received > 0`)
	compare("customers: charges", charges, in("customers", `select booking_id || ' ' || id || ' ' || amount || ' ' || refunded from charges`))
	compare("bookings: charges", ofBookings(charges), in("bookings", `select booking_id || ' ' || payment_id || ' ' || amount || ' ' || refunded from booking_payments where source = 'gateway'`))
	manual := in("customers", `select v.booking_id || ' ' || p.amount || ' ' || v.id from invoice_payments p join invoices v using (tenant_id, livemode)
		where v.id = p.invoice_id and v.booking_id is not null and p.source = 'manual' and p.reversed_at is null`)
	for i, one := range manual { // bookings stores the public id of an invoice
		parts := strings.Fields(one)
		manual[i] = parts[0] + " " + parts[1]
	}
	slices.Sort(manual)
	copied := in("bookings", `select booking_id || ' ' || amount from booking_payments where source = 'manual' and amount > 0 and reversed_at is null`)
	compare("bookings: manual payments", ofBookings(manual), copied)
	compare("amounts of bookings", in("bookings", `select b.id || ' ' || coalesce(sum(p.amount), 0) from bookings b left join booking_payments p
		on (p.tenant_id, p.livemode, p.booking_id) = (b.tenant_id, b.livemode, b.id) and p.reversed_at is null group by b.id`),
		in("bookings", `select id || ' ' || paid from bookings`))
	found = append(found, in("bookings", `select 'paid twice: ' || id from bookings where paid > total`)...)
	var atStripe []string
	if d.p.pid("stripe") > 0 && syscall.Kill(d.p.pid("stripe"), 0) == nil { // it runs with the services
		for _, c := range d.p.charges(t) {
			if c.Received > 0 && c.Metadata["booking_id"] != "" {
				_, booking := ids.Stored(c.Metadata["booking_id"])
				atStripe = append(atStripe, booking+" "+c.ID+" "+strconv.FormatInt(c.Received, 10)+" 0")
			}
		}
		compare("payments: Stripe", atStripe, charges)
	}
	logged := in("webhooks", `select object_id || ' ' || max((convert_from(body, 'UTF8')::json->>'resource_version')::int) from events where object_id like 'bk\_%' group by object_id`)
	for _, one := range in("bookings", `select id || ' ' || version from bookings`) {
		id, version, _ := strings.Cut(one, " ")
		if !slices.ContainsFunc(logged, func(l string) bool {
			object, of, _ := strings.Cut(l, " ")
			_, key := ids.Stored(object)
			return of == version && key == id
		}) {
			found = append(found, "log: version "+version+" of "+id)
		}
	}
	return found
}
