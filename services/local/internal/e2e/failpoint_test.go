package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// failpoints are the steps of the chain at which a process crashes in TestCrashAtEachStep, with the service and an operation that
// includes the step. left is the state before the client repeats the request: "done" if a completer finishes the operation, or
// "nothing".
var failpoints = []struct{ name, service, operation, left string }{
	{"accept.marked", "customers", "accept", "done"},
	{"accept.booked", "customers", "accept", "done"},
	{"accept.written", "customers", "accept", "done"},
	{"accept.committed", "customers", "accept", "done"},
	{"convert.marked", "customers", "convert with a booking", "done"},
	{"convert.booked", "customers", "convert with a booking", "done"},
	{"convert.written", "customers", "convert with a booking", "done"},
	{"convert.written", "customers", "convert", "nothing"},
	{"convert.committed", "customers", "convert with a booking", "done"},
	{"open.numbered", "customers", "open", "nothing"},
	{"open.committed", "customers", "open", "done"},
	{"linked.requested", "bookings", "accept", "done"},
	{"linked.requested", "bookings", "convert with a booking", "done"},
	{"linked.written", "bookings", "accept", "done"},
	{"linked.written", "bookings", "convert with a booking", "done"},
	{"linked.committed", "bookings", "accept", "done"},
	{"linked.committed", "bookings", "convert with a booking", "done"},
}

// allFailpoints returns the names of all steps, with their services.
func allFailpoints() (list []struct{ name, service string }) {
	for _, f := range failpoints {
		list = append(list, struct{ name, service string }{f.name, f.service})
	}
	for _, f := range paymentFailpoints {
		list = append(list, struct{ name, service string }{f.name, "payments"})
	}
	for _, f := range accountFailpoints {
		list = append(list, struct{ name, service string }{f.name, f.service})
	}
	for _, name := range oauthFailpoints {
		list = append(list, struct{ name, service string }{name, "identity"})
	}
	return append(list, struct{ name, service string }{"owed.begun", "payments"}) // has its own test, for owed refunds
}

// TestEachFailpointIsAttacked checks that each failpoint in the code is tested, and that each tested failpoint is in the code.
func TestEachFailpointIsAttacked(t *testing.T) {
	t.Parallel()
	call := regexp.MustCompile(`failpoint\.Here\(([^()]*)\)`)
	var placed, attacked []string
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range call.FindAllSubmatch(text, -1) {
			service, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(path), "../../../"), "/")
			placed = append(placed, service+" "+strings.Trim(string(found[1]), `"`))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range allFailpoints() {
		attacked = append(attacked, f.service+" "+f.name)
	}
	slices.Sort(placed)
	slices.Sort(attacked)
	attacked = slices.Compact(attacked)
	if !slices.Equal(placed, attacked) {
		t.Errorf("in the code: %q\nattacked:    %q", placed, attacked)
	}
}

// TestProductionHasNoFailpoint checks that the executables of make build contain no failpoints, and that those for the next test
// do.
func TestProductionHasNoFailpoint(t *testing.T) {
	onMachine(t)
	t.Parallel()
	program := func(path ...string) []byte {
		b, err := os.ReadFile(filepath.Join(append([]string{"../../../../bin"}, path...)...))
		if err != nil {
			t.Fatalf("%v: run `make build failpoints`", err)
		}
		return b
	}
	markers := []string{"FAILPOINT"}
	for _, f := range allFailpoints() {
		markers = append(markers, f.name)
		if b := program("failpoints", f.service); !bytes.Contains(b, []byte(f.name)) || !bytes.Contains(b, []byte("FAILPOINT")) {
			t.Errorf("%s lacks %s", f.service, f.name)
		}
	}
	for _, name := range proto.ServiceNames() {
		b := program(name)
		for _, word := range markers {
			if bytes.Contains(b, []byte(word)) {
				t.Errorf("%s holds %s", name, word)
			}
		}
	}
}

// step is one request during which a process crashes.
type step struct {
	failpoint, operation, left string
	id, path, body, key        string
	committed                  bool // the process crashes after the commit of the complete operation
}

func (s step) books() bool { return s.operation == "accept" || s.operation == "convert with a booking" }

func (s step) String() string { return s.operation + ", killed at " + s.failpoint }

// TestCrashAtEachStep crashes customers and bookings at each step of accept, convert, and open, while other processes of both
// services continue. It checks that without another request from the client, each operation is either completed or completely
// undone. A repetition with the same key succeeds, and there is one booking, one invoice with the next number, and one event of
// each kind. The bookings of leads share a departure, which counts the seats of each once.
func TestCrashAtEachStep(t *testing.T) {
	onMachine(t)
	c := shared.as(t, "DEMO_TEST_KEY")
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	bookings := newReplica(t, "bookings", filepath.Join(bin, "failpoints", "bookings"))
	customers := newReplica(t, "customers", filepath.Join(bin, "failpoints", "customers"), "UPSTREAM_BOOKINGS_URL=http://"+bookings.address)
	gateway := newReplica(t, "gateway", filepath.Join(bin, "gateway"), "UPSTREAM_CUSTOMERS_URL=http://"+customers.address)
	for _, r := range []*replica{bookings, customers, gateway} {
		defer r.stop()
	}
	gateway.start(t, shared)
	dying := shared.with(t, c.key)
	dying.base = strings.Replace(c.base, strings.TrimPrefix(shared.env["BASE_URL"], "http://"), gateway.address+"/api/v1", 1)

	world := newChain(t, c)
	var steps []step
	for n, f := range failpoints {
		s := world.prepare(t, f.operation, world.day+n)
		s.failpoint, s.left, s.committed = f.name, f.left, f.service == "customers" && strings.HasSuffix(f.name, ".committed")
		victim := customers
		if f.service == "bookings" {
			victim = bookings
		}
		for _, r := range []*replica{bookings, customers} {
			if r == victim {
				r.stop()
				r.start(t, shared, "FAILPOINT="+f.name)
			} else if r.cmd == nil || r.dead() {
				r.start(t, shared)
			}
		}
		if a, err := dying.try(t, http.MethodPost, s.path, s.body, s.key); err == nil && a.Status < 300 {
			t.Errorf("%v: responded %d before its process crashed", s, a.Status)
		}
		victim.killed(t)
		steps = append(steps, s)
	}
	for _, r := range []*replica{gateway, customers, bookings} { // their peers crash, the other processes continue
		r.stop()
	}
	world.endLeases(t)
	for _, s := range steps {
		world.left(t, s)
	}
	for _, s := range steps {
		world.repeated(t, s)
	}
	world.seats(t, steps)
	if !t.Failed() {
		world.events(t, steps)
	}
	noGaps(t, shared)
}

// chain creates the resources for the steps of the chain, and reads their state afterwards.
type chain struct {
	c                   *client
	customers, bookings *pgx.Conn
	unit, customer      string
	tour                string // a unit in seats mode: the bookings of leads share one departure
	day                 int
}

func newChain(t *testing.T, c *client) *chain {
	t.Helper()
	day := `[["10:00","12:00"]]`
	tour := fmt.Sprintf(`{"name":"Chain tour","booking_mode":"seats","capacity":100,"opening_hours":{"mon":%[1]s,"tue":%[1]s,"wed":%[1]s,"thu":%[1]s,"fri":%[1]s,"sat":%[1]s,"sun":%[1]s}}`, day)
	return &chain{
		tour: c.insist(t, http.MethodPost, "/units", tour, "", http.StatusCreated).id(t),
		c:    c, customers: shared.database(t, "customers"), bookings: shared.database(t, "bookings"), day: rand.IntN(10_000),
		unit:     c.insist(t, http.MethodPost, "/units", `{"name":"Chain"}`, "", http.StatusCreated).id(t),
		customer: c.insist(t, http.MethodPost, "/customers", `{"first_name":"Kai","email":"kai@example.com"}`, "", http.StatusCreated).id(t),
	}
}

// prepare creates a sent quote or a lead for a day, or a draft invoice, and returns the request that accepts, converts, or opens
// it.
func (w *chain) prepare(t *testing.T, operation string, day int) step {
	t.Helper()
	s := step{operation: operation, key: unique("step")}
	unit := w.unit
	if day%2 == 0 {
		unit = "" // only the chain itself prevents a double booking
	}
	switch operation {
	case "accept":
		s.id = newQuote(t, w.c, w.customer, "", unit, chainDay(day))
		s.path = "/quotes/" + s.id + "/accept"
	case "convert", "convert with a booking":
		body := fmt.Sprintf(`{"first_name":"Lea","email":"%s@example.com"}`, s.key)
		s.id = w.c.insist(t, http.MethodPost, "/leads", body, s.key+"-made", http.StatusCreated).id(t)
		s.path = "/leads/" + s.id + "/convert"
		s.body = `{}`
		if operation == "convert" {
			break
		}
		s.body = fmt.Sprintf(`{"booking":{"unit_id":%q,"event_date":%q,"event_start_time":"10:00","event_end_time":"12:00","guest_count":%d}}`, w.tour, chainDay(w.day), tourGuests)
	case "open":
		body := fmt.Sprintf(`{"customer_id":%q,"line_items":[{"description":"Hall","quantity":1,"unit_amount":{"amount":5000,"currency":"USD"}}]}`, w.customer)
		s.id = w.c.insist(t, http.MethodPost, "/invoices", body, s.key+"-made", http.StatusCreated).id(t)
		s.path = "/invoices/" + s.id + "/open"
	}
	return s
}

// endLeases ends the leases of crashed processes on their operations.
func (w *chain) endLeases(t *testing.T) {
	t.Helper()
	execute(t, w.customers, `update quotes set accept_until = now() - interval '1 s', accept_next = now() - interval '1 s' where accept_until is not null`)
	execute(t, w.customers, `update leads set converting_until = now() - interval '1 s' where converting_until is not null`)
}

// done reports whether the operation took effect completely. It fails the test if only a part took effect.
func (w *chain) done(t *testing.T, s step) bool {
	t.Helper()
	for {
		before, half := w.look(t, s)
		if after, _ := w.look(t, s); after != before {
			continue // completed between two of its reads
		}
		if half != "" {
			t.Errorf("%v: half done: %s", s, half)
		}
		return before
	}
}

// look reports whether the operation took effect, and describes an incomplete effect.
func (w *chain) look(t *testing.T, s step) (done bool, half string) {
	t.Helper()
	switch s.operation {
	case "accept":
		q := read[chainQuote](t, w.c, "/quotes/"+s.id)
		invoices := rows(t, w.customers, `select id::text from invoices where quote_id = $1`, uuidOf(t, s.id))
		done = q.Status == "accepted"
		if done != (q.BookingID != "") || done != (len(q.InvoiceIDs) == 1) || len(invoices) != len(q.InvoiceIDs) {
			half = fmt.Sprintf("%+v with the invoices %v", q, invoices)
		}
	case "convert", "convert with a booking":
		l := read[chainLead](t, w.c, "/leads/"+s.id)
		customers := rows(t, w.customers, `select id::text from customers where email = $1`, s.key+"@example.com")
		done = l.Status == "converted"
		if (done && s.books()) != (l.BookingID != "") || done != (l.CustomerID != "") || done != (len(customers) == 1) {
			half = fmt.Sprintf("%+v with the customers %v", l, customers)
		}
	case "open":
		v := read[chainInvoice](t, w.c, "/invoices/"+s.id)
		done = v.Status == "open"
		if done != (v.Number != "") {
			half = fmt.Sprintf("%+v", v)
		}
	}
	return done, half
}

// booked returns the bookings of a step.
func (w *chain) booked(t *testing.T, s step) []string {
	t.Helper()
	return rows(t, w.bookings, `select id::text from bookings where quote_id = $1 or lead_id = $1`, uuidOf(t, s.id))
}

// left checks the state before the client repeats its request.
func (w *chain) left(t *testing.T, s step) {
	t.Helper()
	if s.left == "done" {
		await(t, s.String()+": completed", func() bool { return w.done(t, s) })
	} else if w.done(t, s) {
		t.Errorf("%v: done, want nothing", s)
	}
	if bookings := w.booked(t, s); s.books() != (len(bookings) == 1) {
		t.Errorf("%v: bookings %v", s, bookings)
	}
}

// repeated repeats the request like a client that received no response.
func (w *chain) repeated(t *testing.T, s step) {
	t.Helper()
	second := w.c.insist(t, http.MethodPost, s.path, s.body, s.key, http.StatusOK)
	third := w.c.insist(t, http.MethodPost, s.path, s.body, s.key, http.StatusOK)
	if string(second.Body) != string(third.Body) || third.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v: responded %s, then %s", s, second.Body, third.Body)
	}
	if s.committed && second.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v: the response was committed, and is not repeated", s)
	}
	if !w.done(t, s) {
		t.Errorf("%v: repeated, and not done", s)
	}
	if bookings := w.booked(t, s); s.books() != (len(bookings) == 1) {
		t.Errorf("%v: bookings %v after the repetition", s, bookings)
	}
}

// tourGuests is the number of seats that the booking of a lead takes.
const tourGuests = 2

// seats checks that the departure counts each booking once, although each was interrupted.
func (w *chain) seats(t *testing.T, steps []step) {
	t.Helper()
	want := 0
	for _, s := range steps {
		if s.operation == "convert with a booking" {
			want += tourGuests
		}
	}
	taken := rows(t, w.bookings, `select taken::text from unit_claims where unit_id = $1`, uuidOf(t, w.tour))
	if len(taken) != 1 || taken[0] != strconv.Itoa(want) {
		t.Errorf("the departure counts %v seats, want %d", taken, want)
	}
}

// expectedEvent is an event that must exist once.
type expectedEvent struct{ topic, object, kind string }

// events checks that each step caused each of its events once.
func (w *chain) events(t *testing.T, steps []step) {
	t.Helper()
	var expected []expectedEvent
	for _, s := range steps {
		switch s.operation {
		case "accept":
			q := read[chainQuote](t, w.c, "/quotes/"+s.id)
			expected = append(expected, expectedEvent{"customers", s.id, "quote.accepted"}, expectedEvent{"bookings", q.BookingID, "booking.created"},
				expectedEvent{"customers", q.InvoiceIDs[0], "invoice.created"})
		case "convert", "convert with a booking":
			l := read[chainLead](t, w.c, "/leads/"+s.id)
			expected = append(expected, expectedEvent{"customers", s.id, "lead.updated"}, expectedEvent{"customers", l.CustomerID, "customer.created"})
			if s.books() {
				expected = append(expected, expectedEvent{"bookings", l.BookingID, "booking.created"})
			}
		case "open":
			expected = append(expected, expectedEvent{"customers", s.id, "invoice.updated"})
		}
	}
	onceEach(t, expected)
}

// onceEach waits until all these events arrive, and fails the test if one arrives twice.
func onceEach(t *testing.T, expected []expectedEvent) {
	t.Helper()
	events := map[string]map[string][]*eventsv1.Event{}
	var missing []expectedEvent
	await(t, fmt.Sprintf("%d events", len(expected)), func() bool {
		for _, topic := range []string{"customers", "bookings"} {
			events[topic] = shared.events(t, topic)
		}
		missing = slices.DeleteFunc(slices.Clone(expected), func(e expectedEvent) bool { return ofType(events[e.topic][e.object], e.kind) > 0 })
		return len(missing) == 0
	})
	for _, e := range expected {
		if n := ofType(events[e.topic][e.object], e.kind); n != 1 {
			t.Errorf("%s has %d times %s", e.object, n, e.kind)
		}
	}
}

// noGaps checks that the numbers of all invoices have no gaps.
func noGaps(t *testing.T, p *platform) {
	t.Helper()
	if found := gaps(t, p); len(found) > 0 {
		t.Errorf("numbers with gaps: %v", found)
	}
}

// gaps returns the tenants and modes whose numbers of invoices have gaps.
func gaps(t *testing.T, p *platform) []string {
	t.Helper()
	return rows(t, p.database(t, "customers"), `
		select format('%s %s: %s of %s', tenant_id, livemode, count(number), max(right(number, 6)::int)) from invoices where number is not null
		group by tenant_id, livemode having count(number) <> max(right(number, 6)::int) or count(distinct number) <> count(number)`)
}
