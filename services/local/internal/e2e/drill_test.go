package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/repair"
)

// scenario is what is lost, and the moments of the restore. They are given as numbers of requests that were acknowledged between the
// moment and a later one.
type scenario struct {
	name        string
	before      int            // between the moment of the newest database and the newest moment that the archive contains
	behind      map[string]int // between the moment of a database and the one of the newest database
	retainKafka bool
}

// TestRecoveryDrill loses everything under load: PostgreSQL and all processes are killed, Redis is empty, and Kafka is empty or ahead of
// the databases. It restores the databases to one moment, or each to another one, runs the commands of docs/operations/back-up.md, and checks that
// the services agree with each other and with Stripe, and that nothing that was acknowledged before the moment is lost. `make drill` runs
// all scenarios on this machine, and `make kind-drill` in a cluster; DRILL=short runs one.
func TestRecoveryDrill(t *testing.T) {
	if os.Getenv("DRILL") == "" {
		t.Skip("run `make drill`, or set DRILL=short for one scenario")
	}
	const some = 30
	scenarios := []scenario{
		{name: "payments and customers are behind, Kafka is empty", behind: map[string]int{"payments": 2 * some, "customers": some}},
		{name: "one moment, Kafka is empty", before: some},
		{name: "one moment, Kafka is ahead", before: some, retainKafka: true},
		{name: "bookings is behind", behind: map[string]int{"bookings": 2 * some}},
		{name: "webhooks is behind", before: some, behind: map[string]int{"webhooks": 2 * some}},
	}
	if os.Getenv("DRILL") != "full" {
		scenarios = scenarios[:1] // it includes what the others need
	}
	d := newDrill(t)
	d.run(t, 5*some)
	for _, s := range scenarios {
		if !t.Run(s.name, func(t *testing.T) { d.recover(t, s) }) {
			return
		}
	}
}

// drill is a platform, its load, and what happened.
type drill struct {
	p         *platform
	site      site
	load      *drillLoad
	killed    time.Time
	newest    time.Time // moment that the archive contains
	recovered bool      // from the loss, in a scenario
	known     map[string]bool
	listed    map[string]repair.Lost
}

// site is where the platform of a drill runs. Its PostgreSQL archives its WAL.
type site interface {
	// client returns a client of a tenant that is connected to the Stripe stand-in.
	client(t *testing.T) *client
	// shell runs commands where PostgreSQL's programs and the backups are, with the variables of the page and additional ones.
	shell(t *testing.T, script string, variables ...string) string
	// kill ends all processes of the services and the datastores immediately, stops the services, and returns when the processes ended.
	kill(t *testing.T) time.Time
	// restore loses the data of PostgreSQL and Redis, and that of Kafka unless it is retained. It starts PostgreSQL with the state of a
	// moment, and replaces databases by their state of an earlier moment. Nothing else runs when it returns, except Kafka and Redis.
	restore(t *testing.T, moment time.Time, earlier map[string]time.Time, retainKafka bool)
	// start starts the services and returns when they are ready.
	start(t *testing.T)
	// prelude returns what precedes the commands of the page's section "Repair".
	prelude(section []string) string
	// finish ends what only the repair needs.
	finish(t *testing.T)
}

func newDrill(t *testing.T) *drill {
	t.Helper()
	if shared.cluster != nil {
		return &drill{p: shared, site: newClusterSite(t)}
	}
	m := newMachineSite(t)
	return &drill{p: m.p, site: m}
}

// run sends load, takes the base backup meanwhile, and kills everything while the load goes on. The archive then contains at least
// this number of acknowledged requests after the base backup.
func (d *drill) run(t *testing.T, requests int) {
	t.Helper()
	begun := time.Now()
	c := d.site.client(t)
	c.receive(t, `["*"]`, nil)
	d.load = &drillLoad{c: c, stripe: stripe{d.p.env["STRIPE_URL"], d.p.env["STRIPE_PUBLISHABLE_KEY"]}}
	d.load.unit = c.want(t, http.StatusCreated, http.MethodPost, "/units", `{"name":"Drill"}`).id(t)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() { d.load.work(t) })
	}
	d.site.shell(t, commands(t, "Back up")[0])
	backup := time.Now()
	for end := backup.Add(5 * time.Minute); !t.Failed(); time.Sleep(time.Second) {
		if n := d.load.journal.between(backup, d.newestMoment(t)); n >= requests {
			break
		} else if time.Now().After(end) {
			t.Errorf("%d requests acknowledged in 5 minutes, want %d", n, requests)
		}
	}
	if t.Failed() {
		d.load.ended.Store(true)
		workers.Wait()
		t.FailNow()
	}
	d.load.killing.Store(true)
	d.killed = d.site.kill(t)
	d.load.ended.Store(true)
	workers.Wait()
	d.newest = d.newestMoment(t)
	t.Logf("%d requests acknowledged in %v", len(d.load.journal.entries), d.killed.Sub(begun).Round(time.Second))
}

var commits = regexp.MustCompile(`COMMIT (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) UTC`)

// newestMoment returns the newest moment that the archive contains: just before the last commit in it.
func (d *drill) newestMoment(t *testing.T) time.Time {
	t.Helper()
	out := d.site.shell(t, commands(t, "Restore")[0])
	found := commits.FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("the archive contains no commit: %s", out)
	}
	at, err := time.Parse("2006-01-02 15:04:05.000000", found[1])
	if err != nil {
		t.Fatal(err)
	}
	return at.Add(-time.Microsecond)
}

// recover loses Redis, and Kafka if the scenario says so, restores each database to its moment, repairs and checks.
func (d *drill) recover(t *testing.T, s scenario) {
	if d.recovered { // in the previous scenario
		d.site.kill(t)
	}
	d.recovered = true
	begin := time.Now()
	moment := d.load.journal.before(t, d.newest, s.before)
	moments, oldest := map[string]time.Time{}, moment
	for service, behind := range s.behind {
		moments[service] = d.load.journal.before(t, moment, behind)
		oldest = earliest(oldest, moments[service])
	}
	d.site.restore(t, moment, moments, s.retainKafka)
	restored := time.Now()
	since := oldest.Add(-5 * time.Minute)
	if len(d.p.differences(t)) == 0 && len(s.behind) > 0 {
		t.Error("the databases agree before the repair: nothing was tested")
	}
	if _, err := d.doc(t, since, 1); err == nil && len(s.behind) > 0 {
		t.Error("the check finds no difference before the repair")
	}
	d.known, d.listed = d.traces(t), map[string]repair.Lost{}
	before := time.Now()
	d.repair(t, since)
	d.skipNumbers(t)
	repaired := time.Now()
	d.site.start(t)
	up := time.Now()
	passes := d.converge(t, since)
	d.site.finish(t)
	t.Logf("RPO %v (each database up to %v older), RTO %v: %v restore, %v repair, %v start; %v until everything agreed, after %d repairs",
		d.killed.Sub(moment).Round(time.Millisecond), moment.Sub(oldest).Round(time.Millisecond), (restored.Sub(begin) + up.Sub(before)).Round(time.Millisecond),
		restored.Sub(begin).Round(time.Millisecond), repaired.Sub(before).Round(time.Millisecond), up.Sub(repaired).Round(time.Millisecond),
		time.Since(up).Round(time.Millisecond), passes)
	d.lost(t, moments, moment)
	d.takesBookings(t)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

var blocks = regexp.MustCompile("(?s)( *)```sh\n(.*?)```")

// commands returns the blocks of commands in a section of docs/operations/back-up.md.
func commands(t *testing.T, section string) []string {
	t.Helper()
	return commandsOf(t, "operations/back-up.md", "## "+section)
}

// commandsOf returns the blocks of commands in a page of docs, from a heading to the next one of level 2.
func commandsOf(t *testing.T, page, heading string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+heading+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, m := range blocks.FindAllStringSubmatch(rest, -1) {
		found = append(found, strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n")) // blocks in a list are indented
	}
	if len(found) == 0 {
		t.Fatalf("docs/%s has no commands under %q", page, heading)
	}
	return found
}

// doc runs a block of commands of the section "Repair" in the checkout: 1 is the check, 2 the repair, and 3 skips numbers.
func (d *drill) doc(t *testing.T, since time.Time, number int) (string, error) {
	t.Helper()
	return d.commands(t, since, commands(t, "Repair")[number])
}

// commands runs commands with the definitions of the section "Repair".
func (d *drill) commands(t *testing.T, since time.Time, text string) (string, error) {
	t.Helper()
	script := "set -eu -o pipefail\nsince=" + since.UTC().Format(time.RFC3339) + "\n" + d.site.prelude(commands(t, "Repair")) + text
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = d.p.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *drill) repair(t *testing.T, since time.Time) {
	t.Helper()
	out, err := d.doc(t, since, 2)
	if err != nil {
		t.Fatalf("repair: %v\n%s", err, out)
	}
	t.Logf("repair:\n%s", out)
	lines, err := os.ReadFile(filepath.Join(d.p.root, "lost.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		var one repair.Lost
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		d.listed[one.ID] = one
	}
}

// ledger records the payments that payments has lost.
func (d *drill) ledger(t *testing.T, since time.Time) {
	t.Helper()
	if out, err := d.commands(t, since, "ledger"); err != nil {
		t.Fatalf("ledger: %v\n%s", err, out)
	}
}

func (d *drill) skipNumbers(t *testing.T) {
	t.Helper()
	if out, err := d.doc(t, d.newest, 3); err != nil {
		t.Fatalf("numbers: %v\n%s", err, out)
	}
}

// traces returns the public ids of objects that a database other than their owner's knows.
func (d *drill) traces(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, copies := range []struct{ prefix, service, sql string }{
		{"", "webhooks", `select distinct object_id from events`},
		{"bk", "customers", `select id::text from bookings`},
		{"bk", "payments", `select id::text from bookings`},
		{"cu", "bookings", `select id::text from customers where version > 0`},
		{"inv", "bookings", `select invoice_id from booking_invoices`},
		{"qt", "bookings", `select quote_id::text from bookings where quote_id is not null and status in ('pending', 'confirmed')`},
	} {
		for _, key := range d.p.rows(t, copies.service, copies.sql) {
			out[ids.Public(copies.prefix, key)] = true
		}
	}
	return out
}

// converge repairs until the check finds no difference, and returns the number of repairs, including the first.
func (d *drill) converge(t *testing.T, since time.Time) int {
	t.Helper()
	var out string
	for passes := 1; passes <= 6; passes++ {
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
			var err error
			if out, err = d.doc(t, since, 1); err == nil {
				d.ledger(t, since)
				var found []string
				t.Cleanup(func() {
					if t.Failed() && len(found) > 0 {
						t.Logf("the check finds no difference, but: %s", strings.Join(found, "; "))
					}
				})
				await(t, "the services agree", func() bool {
					found = d.p.differences(t)
					return len(found) == 0
				})
				return passes
			}
		}
		d.repair(t, since)
	}
	t.Fatalf("the databases still differ: %v\n%s\n%s", d.p.differences(t), out, d.p.log)
	return 0
}

// lost checks that nothing is lost that was acknowledged before its database's moment, that the list of `repair` names each lost object
// that another database knew, and that nothing on the list exists. It shows what is lost.
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
	changes, onList, unknown := map[string]int{}, map[string]int{}, map[string]int{}
	for path, e := range newestOf {
		moment, ok := moments[e.service]
		if !ok {
			moment = newest
		}
		id := path[strings.LastIndex(path, "/")+1:]
		a := d.load.c.insist(t, http.MethodGet, path, "", "", http.StatusOK, http.StatusNotFound)
		var now struct{ Version int64 }
		a.decode(t, &now)
		_, listed := d.listed[id]
		kind := strings.Trim(path[:len(path)-len(id)], "/")
		switch {
		case a.Status == http.StatusOK && listed && e.service != "payments": // payments adopts intents from Stripe
			t.Errorf("%s is on the list of lost objects, and exists", path)
		case a.Status == http.StatusOK && now.Version >= e.version:
			continue
		case a.Status == http.StatusOK:
			changes[kind]++
		case listed:
			onList[kind]++
		case d.known[id]:
			t.Errorf("%s is lost although another database knew it, and is not on the list", path)
		default:
			unknown[kind]++
		}
		if e.at.Before(moment) {
			t.Errorf("%s (%s) was acknowledged %v before the moment of the restore, and is lost", path, e.what, moment.Sub(e.at))
		}
	}
	if len(onList)+len(unknown)+len(changes) == 0 {
		t.Error("nothing is lost: the list was not tested")
	}
	t.Logf("lost, of %d acknowledged objects: on the list %v, known to no database %v, only their last changes %v; the list has %d objects",
		len(newestOf), onList, unknown, changes, len(d.listed))
}

// takesBookings checks that no slot of a booking can be booked again, that the platform takes new ones, and that no number of a
// booking, a quote or an invoice that was acknowledged is assigned again.
func (d *drill) takesBookings(t *testing.T) {
	t.Helper()
	c := d.load.c
	held := d.p.rows(t, "bookings", `select event_day::text from bookings where unit_id = $1 and status in ('pending', 'confirmed') order by 1 limit 3`, uuidOf(t, d.load.unit))
	for _, day := range held {
		a := c.insist(t, http.MethodPost, "/bookings", fmt.Sprintf(`{"unit_id":%q,"event_date":%q}`, d.load.unit, day), unique("drill"), http.StatusConflict)
		if a.code() != "slot_unavailable" {
			t.Errorf("%s: %s", day, a.Body)
		}
	}
	if len(held) == 0 {
		t.Error("no booking is left")
	}
	seen := map[string]bool{}
	for _, e := range d.load.journal.entries {
		seen[e.number] = true
	}
	customer := c.insist(t, http.MethodPost, "/customers", `{"first_name":"Nora","email":"nora@example.com"}`, unique("drill"), http.StatusCreated).id(t)
	line := `{"description":"Bag","quantity":1,"unit_amount":{"amount":1500,"currency":"USD"}}`
	day := chainDay(int(d.load.day.Add(1)))
	invoice := c.insist(t, http.MethodPost, "/invoices", fmt.Sprintf(`{"customer_id":%q,"line_items":[%s]}`, customer, line), unique("drill"), http.StatusCreated).id(t)
	for resource, create := range map[string]func() response{
		"/bookings": func() response {
			return c.insist(t, http.MethodPost, "/bookings", fmt.Sprintf(`{"unit_id":%q,"event_date":%q}`, d.load.unit, day), unique("drill"), http.StatusCreated)
		},
		"/quotes": func() response {
			return c.insist(t, http.MethodPost, "/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":%q,"line_items":[%s]}`, customer, day, line), unique("drill"), http.StatusCreated)
		},
		"/invoices": func() response {
			return c.insist(t, http.MethodPost, "/invoices/"+invoice+"/open", "", unique("drill"), http.StatusOK)
		},
	} {
		var created struct{ Number string }
		if create().decode(t, &created); created.Number == "" || seen[resource+" "+created.Number] {
			t.Errorf("%s: number %q was assigned before the failure", resource, created.Number)
		}
	}
}
