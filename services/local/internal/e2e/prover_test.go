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
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/local/internal/prove"
)

// ordered are the services whose round trips to PostgreSQL are put in order.
var ordered = []string{"bookings", "customers", "payments"}

const (
	participants = 3
	// worker is the participant whose background workers can run, by a guard. Those of the others have an empty database.
	worker = participants - 1
)

// prover runs writes in a chosen order. Each participant has a gateway and processes of the ordered services of its own, with proxies
// between them and PostgreSQL, and before each call to them. Their consumers have empty topics, so they do nothing: those of the
// platform do the work.
type prover struct {
	sched     *prove.Scheduler
	guard     *prove.Guard   // of the workers of the participant worker
	calls     []*prove.Calls // one per participant
	clients   []*client      // one per participant
	processes []map[string]*replica
	cut       atomic.Value // string: the service whose connections of the second participant to PostgreSQL break
	plain     *client      // of the platform
	merchant  merchant     // the tenant of all clients
	databases map[string]*pgx.Conn
	objects   map[string]bool // the IDs of all objects that clients saw
	since     time.Time
	gaps      []string // in the numbers of invoices, before the runs
}

// newProver starts the participants. A service with a seeded fault is built with it.
func newProver(t *testing.T, p *platform, faults ...seeded) *prover {
	t.Helper()
	onMachine(t)
	if os.Getenv("POOLER") != "" {
		t.Skip("a pooler hides which of PostgreSQL's processes wait for a lock")
	}
	s := &prover{
		merchant: newMerchant(t, "USD"), sched: &prove.Scheduler{MaxWait: 40 * time.Millisecond}, databases: map[string]*pgx.Conn{},
		objects: map[string]bool{}, since: time.Now(), guard: &prove.Guard{Pass: func(sql string) bool { return !strings.Contains(sql, "from ") }},
	}
	s.plain = s.merchant.client
	s.guard.Busy = func() bool { return s.sched.Busy(worker) }
	s.sched.Blocked = prove.BlockedOn(p.database(t, "bookings"))
	s.databases["webhooks"] = p.database(t, "webhooks")
	s.gaps = gaps(t, p)
	own := map[string]map[string]string{} // the environment by service
	programs := map[string]string{}
	for _, service := range ordered {
		env, err := readEnv(p.path("services", service+".env"))
		if err != nil {
			t.Fatal(err)
		}
		own[service], s.databases[service] = env, p.database(t, service)
		idle(t, p, service, env)
		programs[service] = filepath.Join(p.root, "bin", service)
	}
	for _, f := range faults {
		programs[f.service] = f.build(t)
	}
	for number := range participants {
		if number == worker {
			for service, edits := range eager {
				all := seeded{service: service, edits: edits}
				for _, f := range faults {
					if f.service == service {
						all.edits = slices.Concat(all.edits, f.edits)
					}
				}
				programs[service] = all.build(t)
			}
		}
		s.participant(t, p, number, own, programs)
	}
	return s
}

// eager makes workers look for work without a pause, so that a run need not wait for one.
var eager = map[string][]edit{
	"bookings":  {{"services/bookings/wire.go", "expireEvery  = time.Second", "expireEvery  = 5 * time.Millisecond"}},
	"customers": {{"services/customers/wire.go", "workEvery  = time.Second ", "workEvery  = 5 * time.Millisecond "}},
	"payments":  {{"services/payments/wire.go", "workEvery  = time.Second ", "workEvery  = 5 * time.Millisecond "}},
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

// participant starts the processes of a participant.
func (s *prover) participant(t *testing.T, p *platform, number int, own map[string]map[string]string, programs map[string]string) {
	t.Helper()
	calls, processes, idleTopics := &prove.Calls{}, map[string]*replica{}, []string{"KAFKA_TOPIC_PREFIX=" + idlePrefix, "KAFKA_PARTITIONS=1"}
	var upstreams []string
	for _, service := range ordered {
		intercept := s.sched.Intercept(number, service)
		if number == 1 {
			next := intercept
			intercept = func(r *prove.Round) {
				if s.cut.Load() == service {
					r.Break()
					return
				}
				next(r)
			}
		}
		settings := append([]string{
			"DATABASE_URL=" + throughProxy(t, own[service]["DATABASE_URL"], intercept),
			"WORKER_DATABASE_URL=" + inDatabase(t, own[service]["WORKER_DATABASE_URL"], "idle_"+service),
		}, idleTopics...)
		if number == worker {
			settings = append(settings, "WORKER_DATABASE_MAX_CONNS=40",
				"WORKER_DATABASE_URL="+throughProxy(t, own[service]["WORKER_DATABASE_URL"], s.guard.Intercept(intercept)))
		}
		if service == "payments" {
			settings = append(settings, "STRIPE_URL=http://"+throughCalls(t, calls, paymentGateway, strings.TrimPrefix(own[service]["STRIPE_URL"], "http://")))
		}
		processes[service] = newReplica(t, service, programs[service], settings...)
		upstreams = append(upstreams, "UPSTREAM_"+strings.ToUpper(service)+"_URL=http://"+throughCalls(t, calls, service, processes[service].address))
	}
	processes["gateway"] = newReplica(t, "gateway", filepath.Join(p.root, "bin", "gateway"), idleTopics...)
	for _, r := range processes {
		r.settings = append(r.settings, upstreams...)
		r.start(t, p)
		t.Cleanup(r.stop)
	}
	base, err := url.Parse(p.env["BASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	base.Host = processes["gateway"].address
	s.clients = append(s.clients, &client{base: base.String(), key: s.plain.key, checker: s.plain.checker})
	s.calls, s.processes = append(s.calls, calls), append(s.processes, processes)
}

// paymentGateway is its name among the processes that are called.
const paymentGateway = "stripe"

// throughCalls returns the address of a process through a proxy that can break calls to it.
func throughCalls(t *testing.T, calls *prove.Calls, process, target string) string {
	t.Helper()
	address, stop, err := calls.Listen(process, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}

// throughProxy returns the address of a database through a proxy.
func throughProxy(t *testing.T, address string, intercept func(*prove.Round)) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := prove.Listen(u.Host, intercept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	u.Host = proxy.Address()
	return u.String()
}

func stored(id string) string {
	_, key := ids.Stored(id)
	return key
}

// leasesOfCalls are the statements that end the leases of all operations, as if their time had passed.
var leasesOfCalls = map[string][]string{
	"customers": {
		"update quotes set accept_until = now(), accept_next = now() where accept_until > now()",
		"update leads set converting_until = now() where converting_until > now()",
		"update credit_notes set call_until = now(), call_next = now() where call_until > now() or call_next > now()",
		"update charges set call_until = now(), call_next = now() where call_until > now() or call_next > now()",
	},
	"payments": {
		"update payment_intents set leased_until = now() where leased_until > now()",
		"update refunds set leased_until = now() where leased_until > now()",
	},
}

// endLeases lets others resume the operations of a process that crashed, without the wait for the end of its leases.
func (s *prover) endLeases(t *testing.T) {
	t.Helper()
	for service, all := range leasesOfCalls {
		for _, sql := range all {
			execute(t, s.databases[service], sql)
		}
	}
}

// perform runs an action as a participant. A worker has no response, and of the payer's page only the status is known.
func (s *prover) perform(t *testing.T, ctx context.Context, number int, sc fixture, d action, key string) response {
	path, body := d.request(sc)
	if d.method == payer {
		var got response
		s.sched.Do(number, "payments", func() {
			got.Status, _ = s.merchant.tryConfirm(intent{ID: sc["intent"], ClientSecret: sc["secret"]}, "pm_card_visa")
		})
		return got
	}
	if d.method != work {
		got, err := s.clients[number].try(t, d.method, path, body, key)
		if err != nil && ctx.Err() == nil && !t.Failed() {
			t.Errorf("%s: %v", d.name, err)
		}
		return got
	}
	if err := s.guard.Open(ctx, path); err != nil {
		t.Errorf("%s: %v", d.name, err)
	}
	return response{}
}

// numbers returns the participant of each action.
func numbers(actions []action) []int {
	list, next := make([]int, len(actions)), 0
	for i, d := range actions {
		if d.method == work {
			list[i] = worker
			continue
		}
		list[i] = next
		next++
	}
	return list
}

// result is what is known of one run.
type result struct {
	fixture
	got []response
}

// newFixture creates the objects of a family.
func (s *prover) newFixture(t *testing.T, f *family) fixture {
	t.Helper()
	day := time.Date(2030+rand.IntN(10), 7, 1+rand.IntN(28), 0, 0, 0, 0, time.UTC) // no change of the clocks
	for day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
		day = day.AddDate(0, 0, 1)
	}
	sc := fixture{"day": day.Format(time.DateOnly), "tag": unique("lead")}
	f.set(t, s, sc)
	return sc
}

// play runs actions in the order of a schedule.
func (s *prover) play(t *testing.T, f *family, prefix prove.Schedule, actions ...action) ([]prove.Step, result) {
	t.Helper()
	r, keys := result{s.newFixture(t, f), make([]response, len(actions))}, keysOf(actions)
	writes := make([]func(context.Context), participants)
	for i, number := range numbers(actions) {
		writes[number] = func(ctx context.Context) {
			r.got[i] = s.perform(t, ctx, number, r.fixture, actions[i], keys[i])
		}
	}
	steps, err := s.run(t, prefix, nil, writes...)
	if err != nil {
		t.Fatalf("schedule %s: %v", prove.ScheduleOf(steps), err)
	}
	for i, a := range r.got {
		if strings.HasSuffix(actions[len(actions)-1].name, repeated) && a.code() == "idempotency_in_progress" {
			r.got[i] = r.got[1-i] // that is what it gets when it repeats the request
		}
	}
	return steps, r
}

// repeated is the end of the name of an action that has the same Idempotency-Key as the one before.
const repeated = ", repeated"

// keysOf returns the Idempotency-Keys of actions.
func keysOf(actions []action) []string {
	keys := make([]string, len(actions))
	for i, d := range actions {
		if keys[i] = unique("order"); strings.HasSuffix(d.name, repeated) {
			keys[i] = keys[i-1]
		}
	}
	return keys
}

// sequence runs actions one after the other, in the given order.
func (s *prover) sequence(t *testing.T, f *family, actions []action, order []int) result {
	t.Helper()
	r, keys := result{s.newFixture(t, f), make([]response, len(actions))}, keysOf(actions)
	list := numbers(actions)
	for _, i := range order {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		r.got[i] = s.perform(t, ctx, list[i], r.fixture, actions[i], keys[i])
		cancel()
		if r.got[i].Status >= http.StatusInternalServerError { // a process has just been restarted
			path, body := actions[i].request(r.fixture)
			r.got[i] = s.repeat(t, actions[i].method, path, body, keys[i])
		}
		if isWork(actions[i]) {
			s.worked(t)
		}
	}
	return r
}

// worked waits until the platform's worker, which can have taken the work before, has done it.
func (s *prover) worked(t *testing.T) {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // the longest transaction of a worker that leaves no trace until its commit
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		events := rows(t, s.databases["payments"], "select id from gateway_events where due_at is not null and received_at >= $1", s.since)
		if len(events) == 0 && len(s.unfinished(t)) == 0 {
			return
		}
	}
}

func (s *prover) run(t *testing.T, prefix prove.Schedule, fault *prove.Fault, writes ...func(context.Context)) ([]prove.Step, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	all := make([]func(), len(writes))
	for i, write := range writes {
		if write != nil {
			all[i] = func() { write(ctx) }
		}
	}
	return s.sched.Run(ctx, prefix, fault, all...)
}

// warm opens the connections of the participants and prepares their statements. It checks that each action takes effect.
func (s *prover) warm(t *testing.T, families ...*family) {
	t.Helper()
	for _, f := range families {
		for _, d := range f.actions {
			if d.method == work {
				s.play(t, f, nil, d)
				continue
			}
			var got response
			for range 5 { // the platform's worker can come first
				_, r := s.play(t, f, nil, d)
				if got = r.got[0]; (got.Status >= 300) == slices.Contains(f.refused, d.name) {
					break
				}
			}
			if (got.Status >= 300) != slices.Contains(f.refused, d.name) {
				t.Errorf("%s: %s: %d %s", f.name, d.name, got.Status, got.Body)
			}
			s.play(t, f, nil, d, d)
		}
	}
}

// seen returns what clients see after a run: the responses and the objects of the fixture, without what differs between runs.
func (s *prover) seen(t *testing.T, f *family, r result) string {
	t.Helper()
	var out strings.Builder
	show := func(path string) {
		got := s.plain.do(t, "GET", path, "", "")
		if got.Status != http.StatusOK && got.Status != http.StatusNotFound {
			t.Fatalf("GET %s: %d %s", path, got.Status, got.Body)
		}
		s.note(t, got.Body)
		out.Write(following.ReplaceAll(got.Body, []byte("$1")))
		out.WriteString("\n")
	}
	for _, a := range r.got {
		fmt.Fprintf(&out, "%d %s\n", a.Status, a.code())
		if a.Status == http.StatusCreated && f.lags == 0 { // other responses can show later writes
			s.note(t, a.Body)
			out.Write(following.ReplaceAll(a.Body, []byte("$1")))
			out.WriteString("\n")
		}
	}
	for _, read := range f.reads {
		path, _ := action{path: read}.request(r.fixture)
		show(path)
	}
	for _, a := range r.got {
		if a.Status == http.StatusCreated && strings.HasPrefix(a.id(t), "bk_") {
			show("/bookings/" + a.id(t))
		}
	}
	text := alike(out.String(), r.fixture)
	if f.lags > 0 {
		text = confirmed.ReplaceAllString(text, `$1"confirmed_at":null`)
	}
	return text
}

// confirmed matches when a booking was confirmed that is cancelled now: never, if the event of its payment arrived after the cancellation.
var confirmed = regexp.MustCompile(`("object":"booking","number":"NUMBER","status":"cancelled".*?)"confirmed_at":"TIME"`)

// settled returns what clients see of each run, when it does not change any more.
func (s *prover) settled(t *testing.T, f *family, all ...result) []string {
	t.Helper()
	look := func() (texts []string) {
		for _, r := range all {
			texts = append(texts, s.seen(t, f, r))
		}
		return texts
	}
	texts := look()
	for since := time.Now(); f.lags > 0 && (time.Since(since) < f.lags || !s.agree(t, all)); time.Sleep(100 * time.Millisecond) {
		if now := look(); !slices.Equal(now, texts) {
			texts, since = now, time.Now()
		}
	}
	s.retire(t, f.lags == 0)
	return texts
}

// agree reports whether bookings knows the newest version of the account of each run's booking.
func (s *prover) agree(t *testing.T, all []result) bool {
	t.Helper()
	for _, r := range all {
		if id := r.fixture["booking"]; id != "" {
			owner := rows(t, s.databases["payments"], "select version::text from money_accounts where id = $1 and version > 0", stored(id))
			if len(owner) > 0 && !slices.Equal(owner, rows(t, s.databases["bookings"], "select account_version::text from bookings where id = $1", stored(id))) {
				return false
			}
		}
	}
	return true
}

// retire removes what runs leave of the kinds of which a tenant can have a limited number. Units, of which a tenant can have more, stay while
// a worker can need them.
func (s *prover) retire(t *testing.T, units bool) {
	t.Helper()
	statements := []string{
		"update services set active = false where created_at >= $1 and active", "update packages set active = false where created_at >= $1 and active",
		"delete from holiday_rules where created_at >= $1", "delete from closures where created_at >= $1", "delete from calendar_feeds where created_at >= $1",
	}
	if units {
		statements = append(statements, "update units set status = 'retired' where created_at >= $1 and status <> 'retired'")
	}
	for _, sql := range statements {
		execute(t, s.databases["bookings"], sql, s.since)
	}
}

// following matches the property of a booking that follows later, from the events of invoices, versions, which TestOrders checks by the
// events, and secrets.
var following = regexp.MustCompile(`("object":"booking".*?)"invoice_ids":\[[^]]*\],|"version":\d+,|/calendar/\w+\.ics`)

// varying matches what differs between two runs of the same actions: IDs, numbers of documents, times and days, in this order.
var varying = regexp.MustCompile(`\b[a-z]{2,4}_[0-9a-zA-Z]{24,26}\b|\b[A-Z]+-(?:\d{4}-)?\d{4,}\b|\b20\d\d-\d\d-\d\d(?:T[0-9:.]+(?:Z|[+-]\d\d:\d\d))?`)

// alike replaces what varies: IDs by the name in the fixture or the order of their appearance.
func alike(text string, sc fixture) string {
	known := map[string]string{}
	for name, id := range sc {
		known[id] = "$" + name
	}
	text = strings.ReplaceAll(text, sc["tag"], "$tag")
	text = varying.ReplaceAllStringFunc(text, func(found string) string {
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
	return links.ReplaceAllStringFunc(text, func(found string) string {
		list := strings.Split(strings.Replace(found, "[", "[,", 1), ",")
		slices.Sort(list[1:])
		return strings.Join(list, ",")
	})
}

// links matches the IDs of a service's units, which are in the order of the IDs, also if the units were created in another order.
var links = regexp.MustCompile(`"unit_ids":\[[^]]*`)

// difference describes the first difference of two texts.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	part := func(text string) string { return text[max(0, i-100):min(len(text), i+200)] }
	return fmt.Sprintf("got …%s…, want …%s…", part(got), part(want))
}
