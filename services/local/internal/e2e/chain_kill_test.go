package e2e

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// attempt is one request of the load with its key and its last definite response.
type attempt struct {
	verb, method, path, body, key string
	statuses                      []int // definite responses; after any other response, the client repeats the request
	got                           response
}

func (a *attempt) completed() bool { return slices.Contains(a.statuses, a.got.Status) }

// send sends the request once. While processes crash, the response can report an outage or that another attempt is still running.
func (a *attempt) send(t *testing.T, c *client) {
	t.Helper()
	got, err := c.try(t, a.method, a.path, a.body, a.key)
	if err != nil {
		return
	}
	if a.got = got; !a.completed() && !got.outage() && got.code() != "idempotency_in_progress" {
		t.Errorf("%s %s: %d %s", a.method, a.path, got.Status, got.Body)
	}
}

// complete repeats the request until it gets a definite response, and then once more: a request that took effect must get the same
// response.
func (a *attempt) complete(t *testing.T, c *client) {
	t.Helper()
	if !a.completed() {
		a.got = c.insist(t, a.method, a.path, a.body, a.key, a.statuses...)
	}
	if a.got.Status != http.StatusOK {
		return
	}
	if again := c.insist(t, a.method, a.path, a.body, a.key, a.statuses...); string(again.Body) != string(a.got.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s %s: responded %s, then %s", a.method, a.path, a.got.Body, again.Body)
	}
}

// target is a quote, a lead, or a draft invoice, with the requests that compete for it.
type target struct {
	operation, id string
	attempts      []*attempt
}

// newTarget creates a target: a lead, an invoice, or a quote that is accepted during another operation on it.
func (w *chain) newTarget(t *testing.T, day int) *target {
	t.Helper()
	operation := []string{"accept", "accept", "accept", "convert with a booking", "open"}[rand.IntN(5)]
	s := w.prepare(t, operation, day)
	clear := []int{http.StatusOK}
	if operation == "accept" {
		clear = append(clear, http.StatusUnprocessableEntity)
	}
	out := &target{operation: operation, id: s.id, attempts: []*attempt{{operation, http.MethodPost, s.path, s.body, s.key, clear, response{}}}}
	if operation != "accept" {
		return out
	}
	switch verb := []string{"accept", "cancel", "decline", "patch"}[rand.IntN(4)]; verb {
	case "patch":
		out.attempts = append(out.attempts, &attempt{verb, http.MethodPatch, "/quotes/" + s.id, `{"notes":"n"}`, s.key + "-2", []int{http.StatusOK}, response{}})
	default:
		out.attempts = append(out.attempts, &attempt{verb, http.MethodPost, "/quotes/" + s.id + "/" + verb, "", s.key + "-2", clear, response{}})
	}
	return out
}

// TestChainUnderKills accepts, cancels, declines, and changes quotes at the same time, converts leads, and opens invoices, while
// the services of the chain are killed at random moments. It checks that in the end, the data matches every response that a client
// received. An accepted quote and a converted lead have one booking, an accepted quote has one invoice, each event exists once,
// and the invoice numbers have no gaps.
func TestChainUnderKills(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	w := newChain(t, c)
	var mu sync.Mutex
	var targets []*target
	workers := goOn(t, 12, func() {
		mu.Lock()
		w.day++
		day := w.day
		mu.Unlock()
		one := w.newTarget(t, day)
		mu.Lock()
		targets = append(targets, one)
		mu.Unlock()
		var race sync.WaitGroup
		for _, a := range one.attempts {
			race.Go(func() { a.send(t, c) })
		}
		race.Wait()
	})
	kills := scaled(3, 200)
	for n := range kills {
		time.Sleep(time.Duration(1000+rand.IntN(1000)) * time.Millisecond)
		shared.kill(t, []string{"customers", "bookings", "gateway"}[n%3])
	}
	workers.stop()
	leases := goOn(t, 1, func() { // an attempt that starts while bookings is down would hold its lease for 30 seconds
		w.endLeases(t)
		time.Sleep(time.Second)
	})
	var settling errgroup.Group
	settling.SetLimit(4)
	for _, one := range targets {
		for _, a := range one.attempts {
			settling.Go(func() error { a.complete(t, c); return nil })
		}
	}
	_ = settling.Wait()
	leases.stop()
	counts := w.settled(t, targets)
	noGaps(t, shared)
	t.Logf("%d kills; %v", kills, counts)
}

// settled compares the responses that the clients received with the databases and the events, and counts the results.
func (w *chain) settled(t *testing.T, targets []*target) map[string]int {
	t.Helper()
	column := func(db *pgx.Conn, sql string) map[string]string {
		out := map[string]string{}
		for _, row := range rows(t, db, sql) {
			id, value, _ := strings.Cut(row, " ")
			out[strings.ReplaceAll(id, "-", "")] = value
		}
		return out
	}
	status := column(w.customers, `select id || ' ' || status from quotes union all select id || ' ' || status from leads union all select id || ' ' || status from invoices`)
	invoices := column(w.customers, `select quote_id || ' ' || count(*) from invoices where quote_id is not null group by quote_id`)
	bookings := column(w.bookings, `select coalesce(quote_id, lead_id) || ' ' || count(*) from bookings where coalesce(quote_id, lead_id) is not null group by coalesce(quote_id, lead_id)`)
	counts := map[string]int{}
	var expected []expectedEvent
	for _, one := range targets {
		id := uuidOf(t, one.id)
		is := status[id]
		counts[one.operation+": "+is]++
		for _, a := range one.attempts {
			counts["requests"]++
			if to, moves := map[string]string{
				"accept": "accepted", "cancel": "cancelled", "decline": "declined", "convert with a booking": "converted", "open": "open",
			}[a.verb]; moves && (a.got.Status == http.StatusOK) != (is == to) {
				t.Errorf("%s: the response to %s was %d %s, and it is %s", one.id, a.verb, a.got.Status, a.got.Body, is)
			}
		}
		booked, billed := "", ""
		switch is {
		case "accepted":
			booked, billed = "1", "1"
			expected = append(expected, expectedEvent{"customers", one.id, "quote.accepted"})
		case "converted":
			booked = "1"
			expected = append(expected, expectedEvent{"customers", one.id, "lead.updated"})
		}
		if bookings[id] != booked || invoices[id] != billed {
			t.Errorf("%s is %s with %q bookings and %q invoices", one.id, is, bookings[id], invoices[id])
		}
	}
	onceEach(t, expected)
	return counts
}
