package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// chainBooking is what the chain's tests read of a booking.
type chainBooking struct {
	ID            string     `json:"id"`
	Status        string     `json:"status"`
	PaymentStatus string     `json:"payment_status"`
	LeadID        string     `json:"lead_id"`
	QuoteID       string     `json:"quote_id"`
	InvoiceIDs    []string   `json:"invoice_ids"`
	Total         chainMoney `json:"total_amount"`
	Paid          chainMoney `json:"amount_paid"`
}

type chainMoney struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

type chainQuote struct {
	Status     string   `json:"status"`
	BookingID  string   `json:"booking_id"`
	InvoiceIDs []string `json:"invoice_ids"`
}

type chainInvoice struct {
	Status string     `json:"status"`
	Number string     `json:"number"`
	Due    chainMoney `json:"amount_due"`
}

func read[T any](t *testing.T, c *client, path string) T {
	t.Helper()
	var v T
	c.insist(t, http.MethodGet, path, "", "", http.StatusOK).decode(t, &v)
	return v
}

// newQuote sends a quote for a unit on a day, with a deposit of 200.00 of 1,000.00, and returns its id.
func newQuote(t *testing.T, c *client, customer, lead, unit, day string) string {
	t.Helper()
	tag := unique("chain")
	body := fmt.Sprintf(`{"customer_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":"10:00","event_end_time":"12:00",`+
		`"line_items":[{"description":"A day on the water","quantity":1,"unit_amount":{"amount":100000,"currency":"USD"}}],`+
		`"deposit_amount":{"amount":20000,"currency":"USD"},"metadata":{"tag":%q}`, customer, unit, day, tag)
	if lead != "" {
		body += fmt.Sprintf(`,"lead_id":%q`, lead)
	}
	id := c.insist(t, http.MethodPost, "/quotes", body+"}", tag, http.StatusCreated).id(t)
	c.insist(t, http.MethodPost, "/quotes/"+id+"/send", "", tag+"-send", http.StatusOK)
	return id
}

// chainDay is a day that no other test uses.
func chainDay(n int) string {
	return time.Date(2150, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n).Format(time.DateOnly)
}

// From a lead to a paid deposit: a quote is accepted, its booking is made, the invoice is opened and paid, and the booking
// is confirmed. Each step has its event once, and each resource names the others.
func TestFromLeadToPaidInvoice(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	unit := c.want(t, http.StatusCreated, http.MethodPost, "/units", `{"name":"Chain"}`).id(t)
	lead := c.want(t, http.StatusCreated, http.MethodPost, "/leads", `{"first_name":"Lea","email":"lea@example.com","source":"chain"}`).id(t)
	c.want(t, http.StatusOK, http.MethodPatch, "/leads/"+lead, `{"status":"qualified"}`)
	customer := c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Lea","email":"lea@example.com"}`).id(t)
	quote := newQuote(t, c, customer, lead, unit, chainDay(rand.IntN(10_000)))
	if l := read[struct{ Status string }](t, c, "/leads/"+lead); l.Status != "quoted" {
		t.Errorf("the lead is %s", l.Status)
	}
	var accepted chainQuote
	c.want(t, http.StatusOK, http.MethodPost, "/quotes/"+quote+"/accept", "").decode(t, &accepted)
	if accepted.Status != "accepted" || accepted.BookingID == "" || len(accepted.InvoiceIDs) != 1 {
		t.Fatalf("%+v", accepted)
	}
	booking := read[chainBooking](t, c, "/bookings/"+accepted.BookingID)
	if booking.Status != "pending" || booking.QuoteID != quote || booking.LeadID != lead || booking.Total.Amount != 100_000 {
		t.Errorf("%+v", booking)
	}
	invoice := "/invoices/" + accepted.InvoiceIDs[0]
	if i := read[chainInvoice](t, c, invoice); i.Status != "open" || i.Number == "" || i.Due.Amount != 20_000 {
		t.Errorf("%+v", i)
	}
	c.want(t, http.StatusOK, http.MethodPost, invoice+"/record-payment", `{"amount":{"amount":20000,"currency":"USD"},"method":"cash"}`)
	await(t, "the booking is confirmed", func() bool {
		booking = read[chainBooking](t, c, "/bookings/"+accepted.BookingID)
		return booking.Status == "confirmed"
	})
	if booking.Paid.Amount != 20_000 || booking.PaymentStatus != "deposit_paid" || !slices.Equal(booking.InvoiceIDs, accepted.InvoiceIDs) {
		t.Errorf("%+v", booking)
	}
	balance := c.want(t, http.StatusCreated, http.MethodPost, "/invoices", fmt.Sprintf(`{"booking_id":%q,"kind":"balance"}`, booking.ID))
	var left chainInvoice
	balance.decode(t, &left)
	if left.Due.Amount != 80_000 {
		t.Errorf("the balance is %+v", left)
	}
	for object, want := range map[string]map[string]int{
		lead:                   {"lead.created": 1, "lead.updated": 2},
		quote:                  {"quote.created": 1, "quote.accepted": 1},
		accepted.InvoiceIDs[0]: {"invoice.created": 1, "invoice.paid": 1},
		booking.ID:             {"booking.created": 1, "booking.updated": 1},
	} {
		var got map[string]int
		await(t, "the events of "+object, func() bool {
			got = map[string]int{}
			total, wanted := 0, 0
			for _, e := range c.list(t, "/events?object_id="+object) {
				got[e["type"].(string)]++
				total++
			}
			for _, n := range want {
				wanted += n
			}
			return total >= wanted
		})
		for kind, n := range want {
			if got[kind] != n {
				t.Errorf("%s: %v, want %v", object, got, want)
			}
		}
	}
}

// Quotes are accepted while the services of the chain are killed at random moments. Each quote has one booking and one
// opened invoice in the end, and the numbers of the invoices have no gap.
func TestAcceptUnderKills(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	unit := c.want(t, http.StatusCreated, http.MethodPost, "/units", `{"name":"Chain"}`).id(t)
	customer := c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Kai","email":"kai@example.com"}`).id(t)
	first := rand.IntN(10_000)
	for n := range rounds(3) {
		quote := newQuote(t, c, customer, "", unit, chainDay(first+n))
		victim := []string{"customers", "bookings", "gateway"}[n%3]
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Duration(rand.IntN(25_000)) * time.Microsecond)
			shared.kill(t, victim)
		})
		_, _ = c.try(t, http.MethodPost, "/quotes/"+quote+"/accept", "", unique("accept"))
		wg.Wait()
		c.insist(t, http.MethodPost, "/quotes/"+quote+"/accept", "", unique("accept"), http.StatusOK)
		q := read[chainQuote](t, c, "/quotes/"+quote)
		if q.Status != "accepted" || len(q.InvoiceIDs) != 1 {
			t.Errorf("%s died: %+v", victim, q)
		}
		if made := c.list(t, "/bookings?unit_id="+unit+"&event_date_from="+chainDay(first+n)+"&event_date_to="+chainDay(first+n)); len(made) != 1 || made[0]["id"] != q.BookingID {
			t.Errorf("%s died: %d bookings for one quote", victim, len(made))
		}
	}
	invoices := shared.database(t, "customers")
	gaps := rows(t, invoices, `
		select format('%s %s: %s of %s', tenant_id, livemode, count(number), max(right(number, 6)::int)) from invoices where number is not null
		group by tenant_id, livemode having count(number) <> max(right(number, 6)::int) or count(distinct number) <> count(number)`)
	if len(gaps) > 0 {
		t.Errorf("numbers with gaps: %v", gaps)
	}
}
