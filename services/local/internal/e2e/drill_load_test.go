package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// journal holds the acknowledged requests of the load.
type journal struct {
	mu      sync.Mutex
	entries []entry
}

// entry is one acknowledged request, and the resource that it created or changed.
type entry struct {
	at      time.Time // of the response
	service string    // that owns the resource
	path    string    // of the resource; "": a payment, which no resource of ours has to show
	what    string
	version int64
	number  string // of the document, such as "invoices INV-000001"; "": it has none
}

func (j *journal) note(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.at = time.Now() // entries are in the order of time
	j.entries = append(j.entries, e)
}

// between returns the number of acknowledgments after one moment and before another.
func (j *journal) between(from, to time.Time) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.at.After(from) && e.at.Before(to) {
			n++
		}
	}
	return n
}

// before returns the time of the n-th last acknowledgment before a moment, or the moment itself if n is 0.
func (j *journal) before(t *testing.T, moment time.Time, n int) time.Time {
	t.Helper()
	last := slices.IndexFunc(j.entries, func(e entry) bool { return !e.at.Before(moment) })
	if last < 0 {
		last = len(j.entries)
	}
	if last < n {
		t.Fatalf("%d acknowledgments before %v, want %d", last, moment, n)
	}
	if n == 0 {
		return moment
	}
	return j.entries[last-n].at
}

// drillLoad sends requests until its end or until one fails. Before the kill, it repeats a 503 with its key, as an SDK does: the network
// policies of a cluster can reach a node after the release is ready.
type drillLoad struct {
	c       *client
	stripe  stripe
	journal journal
	unit    string
	day     atomic.Int64
	ended   atomic.Bool
	killing atomic.Bool // a request that fails is no error
}

var owners = map[string]string{
	"/customers": "customers", "/bookings": "bookings", "/quotes": "customers", "/invoices": "customers", "/payment-intents": "payments",
}

// write sends a request and notes it. It returns false if the request failed.
func (l *drillLoad) write(t *testing.T, resource, path, body string, out any) bool {
	key := unique("drill")
	a, err := l.c.try(t, http.MethodPost, path, body, key)
	for end := time.Now().Add(30 * time.Second); err == nil && a.Status == http.StatusServiceUnavailable && !l.killing.Load() && time.Now().Before(end); {
		t.Logf("POST %s: 503, repeated", path)
		time.Sleep(time.Second)
		a, err = l.c.try(t, http.MethodPost, path, body, key)
	}
	if err != nil || a.Status >= 300 {
		if !l.killing.Load() {
			t.Errorf("POST %s: %d %s, %v", path, a.Status, a.Body, err)
		}
		return false
	}
	var r struct {
		ID      string
		Version int64
		Number  string
	}
	if err := json.Unmarshal(a.Body, &r); err != nil {
		t.Error(err)
	}
	if r.Number != "" {
		r.Number = resource + " " + r.Number
	}
	l.journal.note(entry{service: owners[resource], path: resource + "/" + r.ID, what: path, version: r.Version, number: r.Number})
	return out == nil || json.Unmarshal(a.Body, out) == nil
}

// work takes bookings with payments in a loop: a booking on a unit, a quote that is accepted, its deposit by card, and a manual
// payment of an invoice.
func (l *drillLoad) work(t *testing.T) {
	for !l.ended.Load() {
		var customer, quote, invoice struct{ ID string }
		var accepted chainQuote
		var paid intent
		day := chainDay(int(l.day.Add(1)))
		ok := l.write(t, "/customers", "/customers", `{"first_name":"Dora","email":"dora@example.com"}`, &customer) &&
			l.write(t, "/bookings", "/bookings", fmt.Sprintf(`{"customer_id":%q,"unit_id":%q,"event_date":%q}`, customer.ID, l.unit, day), nil) &&
			l.write(t, "/quotes", "/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":%q,"line_items":[{"description":"Tour","quantity":1,`+
				`"unit_amount":{"amount":100000,"currency":"USD"}}],"deposit_amount":{"amount":20000,"currency":"USD"}}`, customer.ID, day), &quote) &&
			l.write(t, "/quotes", "/quotes/"+quote.ID+"/send", "", nil) &&
			l.write(t, "/quotes", "/quotes/"+quote.ID+"/accept", "", &accepted) &&
			l.write(t, "/payment-intents", "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"amount_minor":20000}`, accepted.BookingID), &paid) &&
			l.pay(paid) &&
			l.write(t, "/invoices", "/invoices", fmt.Sprintf(`{"customer_id":%q,"booking_id":%q,"line_items":[{"description":"Bag","quantity":1,`+
				`"unit_amount":{"amount":1500,"currency":"USD"}}]}`, customer.ID, accepted.BookingID), &invoice) &&
			l.write(t, "/invoices", "/invoices/"+invoice.ID+"/open", "", nil) &&
			l.write(t, "/invoices", "/invoices/"+invoice.ID+"/record-payment", `{"amount":{"amount":1500,"currency":"USD"},"method":"cash"}`, nil)
		if !ok {
			return
		}
	}
}

// pay confirms an intent once, like a payer's browser.
func (l *drillLoad) pay(i intent) bool {
	form := url.Values{"key": {l.stripe.publishable}, "client_secret": {i.ClientSecret}, "payment_method": {"pm_card_visa"}}
	res, err := httpClient.PostForm(l.stripe.url+"/v1/payment_intents/"+i.ID+"/confirm", form)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	if res.StatusCode == http.StatusOK {
		l.journal.note(entry{service: "stripe", what: "paid " + i.ID})
	}
	return res.StatusCode == http.StatusOK
}

// charged is a payment intent of the platform at the Stripe stand-in.
type charged struct {
	ID       string
	Received int64 `json:"amount_received"`
	Status   string
	Metadata map[string]string
}

// charges returns all payment intents of the stand-in's test account, by id.
func (p *platform) charges(t *testing.T) map[string]charged {
	t.Helper()
	secret, out, after := settingOf(t, p.path("services", "stripe.env"), "LOCAL_STRIPE_TEST_SECRET_KEY"), map[string]charged{}, ""
	for more := true; more; {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.env["STRIPE_URL"]+"/v1/payment_intents?limit=100"+after, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := httpClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Data    []charged
			HasMore bool `json:"has_more"`
		}
		err = json.NewDecoder(res.Body).Decode(&page)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Data {
			out[c.ID], after = c, "&starting_after="+c.ID
		}
		more = page.HasMore
	}
	return out
}
