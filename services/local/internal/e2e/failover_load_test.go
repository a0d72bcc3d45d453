package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
)

// The amounts of each booking that is paid, in cents: by card, and in cash.
const cardAmount, cashAmount = 20_000, 1500

// failoverLoad is the load of two operators, and what was acknowledged.
type failoverLoad struct {
	p         *platform
	operators []*operator
	day       atomic.Int64

	mu        sync.Mutex
	responses []acknowledgment
	bookings  int
	sales     []sale
	objects   []string // public ids of what was created
}

// operator works with the key of one tenant.
type operator struct {
	c        *client
	receiver *receiver
	unit     string
	pays     bool // the tenant has a gateway account
	writes   ledger
}

// acknowledgment is the time of an acknowledgment, and how long the client tried.
type acknowledgment struct {
	at   time.Time
	took time.Duration
}

// sale is a quote that was accepted and paid.
type sale struct{ quote, booking, intent, invoice string }

func newFailoverLoad(t *testing.T, p *platform) *failoverLoad {
	t.Helper()
	l := &failoverLoad{p: p}
	for _, key := range []string{"DEMO_TEST_KEY", "OTHER_TEST_KEY"} {
		o := &operator{c: p.as(t, key), pays: key == "DEMO_TEST_KEY"}
		o.receiver = o.c.receive(t, `["*"]`, nil)
		o.unit = o.c.insist(t, http.MethodPost, "/units", `{"name":"Failover"}`, unique("failover"), http.StatusCreated).id(t)
		l.operators = append(l.operators, o)
	}
	return l
}

// start starts two workers for each operator. stop waits until they have completed their bookings.
func (l *failoverLoad) start(t *testing.T) (stop func()) {
	t.Helper()
	var loads []*load
	for _, o := range l.operators {
		loads = append(loads, goOn(t, 2, func() { l.work(t, o) }))
	}
	return func() {
		for _, one := range loads {
			one.stop()
		}
	}
}

// write repeats a request until it is acknowledged, and returns the response.
func (l *failoverLoad) write(t *testing.T, o *operator, path, body string, statuses ...int) response {
	return l.send(t, o, path, body, unique("failover"), statuses...)
}

func (l *failoverLoad) send(t *testing.T, o *operator, path, body, key string, statuses ...int) response {
	begin := time.Now()
	a := o.c.insist(t, http.MethodPost, path, body, key, statuses...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.responses = append(l.responses, acknowledgment{time.Now(), time.Since(begin)})
	if a.Status == http.StatusCreated {
		l.objects = append(l.objects, a.id(t))
	}
	return a
}

// work creates a customer, lets two requests compete for a slot, and, with a gateway account, sells to the customer.
func (l *failoverLoad) work(t *testing.T, o *operator) {
	day := chainDay(int(l.day.Add(1)))
	w := newCustomer()
	customer := l.send(t, o, w.path, w.body, w.key, http.StatusCreated).id(t)
	o.writes.note(customer, w)
	l.compete(t, o, day)
	if o.pays {
		l.sell(t, o, customer, day)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bookings++
}

// compete sends two requests for one slot. One of them must get it.
func (l *failoverLoad) compete(t *testing.T, o *operator, day string) {
	var race sync.WaitGroup
	var won atomic.Int64
	for range 2 {
		race.Go(func() {
			w := newBooking()
			w.body = fmt.Sprintf(`{"unit_id":%q,"event_date":%q,"metadata":{"tag":%q}}`, o.unit, day, w.key)
			switch a := l.send(t, o, w.path, w.body, w.key, http.StatusCreated, http.StatusConflict); {
			case a.Status == http.StatusCreated:
				won.Add(1)
				o.writes.note(a.id(t), w)
			case a.code() != "slot_unavailable":
				t.Errorf("%s: %s", day, a.Body)
			}
		})
	}
	if race.Wait(); won.Load() != 1 {
		t.Errorf("%s was given to %d bookings", day, won.Load())
	}
}

// sell accepts a quote, pays its deposit by card, and pays an invoice in cash.
func (l *failoverLoad) sell(t *testing.T, o *operator, customer, day string) {
	s := sale{quote: newQuote(t, o.c, customer, "", "", day)}
	var accepted chainQuote
	l.write(t, o, "/quotes/"+s.quote+"/accept", "", http.StatusOK).decode(t, &accepted)
	s.booking = accepted.BookingID
	var card intent
	l.write(t, o, "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"amount_minor":%d}`, s.booking, cardAmount), http.StatusCreated).decode(t, &card)
	s.intent = card.ID
	l.p.stripe(t).pay(t, card)
	s.invoice = l.write(t, o, "/invoices", fmt.Sprintf(`{"customer_id":%q,"booking_id":%q,"line_items":[{"description":"Bag","quantity":1,`+
		`"unit_amount":{"amount":%d,"currency":"USD"}}]}`, customer, s.booking, cashAmount), http.StatusCreated).id(t)
	l.write(t, o, "/invoices/"+s.invoice+"/open", "", http.StatusOK)
	l.write(t, o, "/invoices/"+s.invoice+"/record-payment",
		fmt.Sprintf(`{"amount":{"amount":%d,"currency":"USD"},"method":"cash"}`, cashAmount), http.StatusOK)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sales = append(l.sales, s)
	l.objects = append(l.objects, s.quote, s.booking)
}

// sold returns the number of completed sales.
func (l *failoverLoad) sold() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sales)
}

// until waits for a number of completed sales.
func (l *failoverLoad) until(t *testing.T, sales int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); l.sold() < sales; time.Sleep(20 * time.Millisecond) {
		if t.Failed() || time.Now().After(end) {
			t.Fatalf("%d sales within 5 minutes, want %d", l.sold(), sales)
		}
	}
}

// pause returns the longest time between two acknowledgments after a moment.
func (l *failoverLoad) pause(since time.Time) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := since
	for _, r := range l.responses {
		if r.at.After(since) {
			longest, last = max(longest, r.at.Sub(last)), r.at
		}
	}
	return longest
}

// slowest returns the longest time that a client tried until an acknowledgment after a moment.
func (l *failoverLoad) slowest(since time.Time) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.responses {
		if r.at.After(since) {
			longest = max(longest, r.took)
		}
	}
	return longest
}

// check compares what was acknowledged with the databases, Stripe, Kafka, and the deliveries.
func (l *failoverLoad) check(t *testing.T) {
	t.Helper()
	begin := time.Now()
	var differ []string
	for end := begin.Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if differ = l.p.differences(t); len(differ) == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the services differ after 2 minutes: %v", differ)
		}
	}
	agreed := time.Since(begin)
	for _, o := range l.operators {
		o.writes.check(t, l.p, o.c)
	}
	l.checkSales(t)
	events := l.checkOrder(t)
	deliveries := l.checkDeliveries(t)
	t.Logf("%d requests acknowledged, %d bookings, of which %d sold; %d events, %d deliveries; the services agreed %v after the load",
		len(l.responses), l.bookings, len(l.sales), events, deliveries, agreed.Round(time.Millisecond))
}

// checkSales checks that each sale has one booking and one invoice for its deposit, and was charged once.
func (l *failoverLoad) checkSales(t *testing.T) {
	t.Helper()
	column := func(service, sql string) map[string]string {
		out := map[string]string{}
		for _, row := range l.p.rows(t, service, sql) {
			id, value, _ := strings.Cut(row, " ")
			out[id] = value
		}
		return out
	}
	booked := column("bookings", `select quote_id || ' ' || count(*) from bookings where quote_id is not null group by quote_id`)
	billed := column("customers", `select quote_id || ' ' || count(*) from invoices where quote_id is not null group by quote_id`)
	settled := column("customers", `select invoice_id || ' ' || count(*) || ' ' || sum(amount) from invoice_payments where reversed_at is null group by invoice_id`)
	paid := column("bookings", `select id || ' ' || paid from bookings`)
	charges := map[string][]charged{}
	for _, one := range l.p.charges(t) {
		charges[one.Metadata["booking_id"]] = append(charges[one.Metadata["booking_id"]], one)
	}
	for _, s := range l.sales {
		_, quote := ids.Stored(s.quote)
		_, booking := ids.Stored(s.booking)
		_, invoice := ids.Stored(s.invoice)
		if booked[quote] != "1" || billed[quote] != "1" {
			t.Errorf("%s has %q bookings and %q invoices", s.quote, booked[quote], billed[quote])
		}
		if settled[invoice] != fmt.Sprint("1 ", cashAmount) || paid[booking] != fmt.Sprint(cardAmount+cashAmount) {
			t.Errorf("%s: %q paid for the invoice, %q for the booking", s.booking, settled[invoice], paid[booking])
		}
		if c := charges[s.booking]; len(c) != 1 || c[0].ID != s.intent || c[0].Received != cardAmount {
			t.Errorf("%s: Stripe has %+v, want one charge by %s", s.booking, c, s.intent)
		}
	}
}

// checkOrder checks that the topics contain each version of each object once, in order. It returns the number of events.
func (l *failoverLoad) checkOrder(t *testing.T) (events int) {
	t.Helper()
	for _, topic := range []string{"customers", "bookings", "payments"} {
		seen, last := map[string]bool{}, map[string]int64{}
		for _, m := range l.p.messages(t, topic) {
			e, err := outbox.Decode(m.Value)
			if err != nil {
				t.Fatal(err)
			}
			if seen[e.GetId()] { // a duplicate, which is allowed
				continue
			}
			seen[e.GetId()] = true
			if before := last[e.GetObjectId()]; e.GetResourceVersion() < before || e.GetResourceVersion() > before+1 {
				t.Errorf("%s: %s of version %d follows version %d", e.GetObjectId(), e.GetType(), e.GetResourceVersion(), before)
			}
			last[e.GetObjectId()] = e.GetResourceVersion()
		}
		events += len(seen)
	}
	return events
}

// checkDeliveries checks that each event of what was created is delivered. It returns their number.
func (l *failoverLoad) checkDeliveries(t *testing.T) int {
	t.Helper()
	public := l.p.rows(t, "webhooks", `select id::text from events where object_id = any($1)`, l.objects)
	for i, id := range public {
		public[i] = ids.Public(ids.EventPrefix{}.Prefix(), id)
	}
	if len(public) < len(l.objects) {
		t.Errorf("%d events of %d objects", len(public), len(l.objects))
	}
	var missing []string
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		got := map[string]bool{}
		for _, o := range l.operators {
			for _, h := range o.receiver.all(t) {
				got[h.event] = true
			}
		}
		missing = slices.DeleteFunc(slices.Clone(public), func(id string) bool { return got[id] })
		if len(missing) == 0 {
			return len(public)
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d events were not delivered within 2 minutes: %v", len(missing), len(public), missing[:min(len(missing), 5)])
		}
	}
}
