package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"
)

// chainBooking contains the fields of a booking that the chain's tests read.
type chainBooking struct {
	Version       int
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

type chainLead struct {
	Status     string `json:"status"`
	CustomerID string `json:"customer_id"`
	BookingID  string `json:"converted_booking_id"`
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

// newQuote sends a quote for a day, and for a unit if one is given, with a deposit of 200.00 of 1,000.00. It returns the quote's
// id.
func newQuote(t *testing.T, c *client, customer, lead, unit, day string) string {
	t.Helper()
	tag := unique("chain")
	body := fmt.Sprintf(`{"customer_id":%q,"event_date":%q,"event_start_time":"10:00","event_end_time":"12:00",`+
		`"line_items":[{"description":"A day on the water","quantity":1,"unit_amount":{"amount":100000,"currency":"USD"}}],`+
		`"deposit_amount":{"amount":20000,"currency":"USD"},"metadata":{"tag":%q}`, customer, day, tag)
	if unit != "" {
		body += fmt.Sprintf(`,"unit_id":%q`, unit)
	}
	if lead != "" {
		body += fmt.Sprintf(`,"lead_id":%q`, lead)
	}
	id := c.insist(t, http.MethodPost, "/quotes", body+"}", tag, http.StatusCreated).id(t)
	c.insist(t, http.MethodPost, "/quotes/"+id+"/send", "", tag+"-send", http.StatusOK)
	return id
}

// chainDay returns a day that no other test uses.
func chainDay(n int) string {
	return time.Date(2150, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n).Format(time.DateOnly)
}

// TestFromLeadToPaidInvoice checks the chain from a lead to a paid deposit: a quote is accepted, its booking is created, the
// invoice is opened and paid, and the booking is confirmed. Each step has its event once, and the resources refer to each other.
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
	c.want(t, http.StatusOK, http.MethodPost, "/leads/"+lead+"/convert", fmt.Sprintf(`{"customer_id":%q}`, customer))
	booking := read[chainBooking](t, c, "/bookings/"+accepted.BookingID)
	if booking.Status != "pending" || booking.QuoteID != quote || booking.LeadID != lead || booking.Total.Amount != 100_000 {
		t.Errorf("%+v", booking)
	}
	invoice := "/invoices/" + accepted.InvoiceIDs[0]
	if i := read[chainInvoice](t, c, invoice); i.Status != "open" || i.Number == "" || i.Due.Amount != 20_000 {
		t.Errorf("%+v", i)
	}
	c.want(t, http.StatusOK, http.MethodPost, invoice+"/record-payment", `{"amount":{"amount":20000,"currency":"USD"},"method":"cash"}`)
	await(t, "the booking is paid, is confirmed and names its invoice", func() bool { // by an event of payments and one of customers
		booking = read[chainBooking](t, c, "/bookings/"+accepted.BookingID)
		return booking.Status == "confirmed" && booking.Paid.Amount == 20_000 && slices.Equal(booking.InvoiceIDs, accepted.InvoiceIDs)
	})
	if booking.Paid.Amount != 20_000 || booking.PaymentStatus != "deposit_paid" {
		t.Errorf("%+v", booking)
	}
	balance := c.want(t, http.StatusCreated, http.MethodPost, "/invoices", fmt.Sprintf(`{"booking_id":%q,"kind":"balance"}`, booking.ID))
	var left chainInvoice
	balance.decode(t, &left)
	if left.Due.Amount != 80_000 {
		t.Errorf("the balance is %+v", left)
	}
	events := map[string]map[string]int{
		lead:                   {"lead.created": 1, "lead.updated": 3},
		quote:                  {"quote.created": 1, "quote.accepted": 1},
		accepted.InvoiceIDs[0]: {"invoice.created": 1, "invoice.paid": 1},
		booking.ID:             {"booking.created": 1, "booking.updated": booking.Version - 1},
	}
	for object, want := range events {
		var got map[string]int
		await(t, "the events of "+object, func() bool {
			got = map[string]int{}
			total, expected := 0, 0
			for _, e := range c.list(t, "/events?object_id="+object) {
				got[e["type"].(string)]++
				total++
			}
			for _, n := range want {
				expected += n
			}
			return total >= expected
		})
		for kind, n := range want {
			if got[kind] != n {
				t.Errorf("%s: %v, want %v", object, got, want)
			}
		}
	}
	await(t, "the booking names both invoices", func() bool {
		return len(read[chainBooking](t, c, "/bookings/"+booking.ID).InvoiceIDs) == 2
	})
	checkExport(t, c, customer, map[string]int{"bookings": 1, "leads": 1, "quotes": 1, "invoices": 2}, events)
}

// checkExport checks the export of a customer: the number of resources by kind, that each equals the response of its own GET, and
// the events by object and type.
func checkExport(t *testing.T, c *client, customer string, want map[string]int, events map[string]map[string]int) {
	t.Helper()
	export := read[map[string]json.RawMessage](t, c, "/customers/"+customer+"/export")
	for kind, n := range want {
		var list []json.RawMessage
		if err := json.Unmarshal(export[kind], &list); err != nil || len(list) != n {
			t.Errorf("%d %s in the export, want %d: %v", len(list), kind, n, err)
		}
		for _, body := range list {
			var resource struct{ ID string }
			if err := json.Unmarshal(body, &resource); err != nil {
				t.Fatal(err)
			}
			if own := c.insist(t, http.MethodGet, "/"+kind+"/"+resource.ID, "", "", http.StatusOK); string(own.Body) != string(body) {
				t.Errorf("exported %s, shown %s", body, own.Body)
			}
		}
	}
	var exported []struct {
		Type string
		Data struct{ Object struct{ ID string } }
	}
	if err := json.Unmarshal(export["events"], &exported); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range exported {
		got[e.Data.Object.ID+" "+e.Type]++
	}
	for object, types := range events {
		for kind, n := range types {
			if got[object+" "+kind] != n {
				t.Errorf("%d events %s of %s in the export, want %d", got[object+" "+kind], kind, object, n)
			}
		}
	}
	if got[customer+" customer.created"] != 1 {
		t.Errorf("events of the customer: %v", got)
	}
}

// TestExportHasRefunds checks that the export of a customer contains the refunds of the customer's card payments, equal to the
// responses of their own GET.
func TestExportHasRefunds(t *testing.T) {
	m := newMerchant(t, "USD")
	customer := m.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Rae","email":"rae@example.com"}`).id(t)
	booking := m.insist(t, http.MethodPost, "/bookings", fmt.Sprintf(`{"event_date":%q,"customer_id":%q}`, chainDay(rand.IntN(10_000)), customer),
		unique("booking"), http.StatusCreated).id(t)
	i := m.begin(t, booking, 1000, "")
	m.pay(t, i)
	m.paid(t, booking, 1000)
	for range 2 {
		m.insist(t, http.MethodPost, "/refunds", fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":300,"reason":"duplicate"}`, i.ID), unique("refund"), http.StatusCreated)
	}
	await(t, "the refunds are in the export as they are shown", func() bool {
		export := read[struct{ Refunds []json.RawMessage }](t, m.client, "/customers/"+customer+"/export")
		for _, body := range export.Refunds {
			var refund struct{ ID, Status string }
			if err := json.Unmarshal(body, &refund); err != nil || refund.Status != "succeeded" {
				return false
			}
			if own := m.insist(t, http.MethodGet, "/refunds/"+refund.ID, "", "", http.StatusOK); string(own.Body) != string(body) {
				t.Errorf("exported %s, shown %s", body, own.Body)
			}
		}
		return len(export.Refunds) == 2
	})
}
