package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"
)

// taxRow is a row of a document's breakdown, in minor units.
type taxRow struct {
	Name, Rate string
	Taxable    chainMoney `json:"taxable_amount"`
	Tax        chainMoney `json:"tax_amount"`
}

// document contains the fields of a quote, an invoice or a credit note that add up.
type document struct {
	ID, Status, Number string
	Breakdown          []taxRow   `json:"tax_breakdown"`
	Tax                chainMoney `json:"tax_amount"`
	Total              chainMoney `json:"total_amount"`
	Due                chainMoney `json:"amount_due"`
	Credited           chainMoney `json:"amount_credited"`
	BookingID          string     `json:"booking_id"`
	InvoiceIDs         []string   `json:"invoice_ids"`
}

// sums are the taxable amount and the tax of each rate, and the total and the tax of all.
type sums map[string][2]int64

// sumsOf adds up the documents of one booking.
func sumsOf(all ...document) sums {
	s := sums{}
	for _, d := range all {
		for _, row := range d.Breakdown {
			key := row.Name + " " + row.Rate
			s[key] = [2]int64{s[key][0] + row.Taxable.Amount, s[key][1] + row.Tax.Amount}
		}
		s["total"] = [2]int64{s["total"][0] + d.Total.Amount, s["total"][1] + d.Tax.Amount}
	}
	return s
}

// TestDocumentsAddUp checks the documents of operators in New York, Québec and Munich, from the quote to the last correction: the
// invoices of a booking add up to its quote, and the credit notes of an invoice add up to the invoice, for each rate.
func TestDocumentsAddUp(t *testing.T) {
	for _, operator := range []struct {
		place, currency, behavior, lines string
		deposit                          int64
		want                             sums
	}{
		{
			place: "New York", currency: "USD", behavior: "exclusive", deposit: 500,
			lines: `{"description":"Map","quantity":1,"unit_amount":{"amount":1999,"currency":"USD"},"taxes":[{"name":"Sales tax","rate":"8.875"}]},` +
				`{"description":"Gift card","quantity":1,"unit_amount":{"amount":2500,"currency":"USD"},"taxes":[]}`,
			want: sums{"Sales tax 8.875": {1999, 177}, "total": {4676, 177}},
		},
		{
			place: "Québec", currency: "CAD", behavior: "exclusive", deposit: 3333,
			lines: `{"description":"Tour","quantity":2,"unit_amount":{"amount":5000,"currency":"CAD"},"taxes":[{"name":"TPS","rate":"5"},{"name":"TVQ","rate":"9.975"}]}`,
			want:  sums{"TPS 5": {10_000, 500}, "TVQ 9.975": {10_000, 998}, "total": {11_498, 1498}},
		},
		{
			place: "Munich", currency: "EUR", behavior: "inclusive", deposit: 5001,
			lines: `{"description":"Fahrt","quantity":1,"unit_amount":{"amount":11900,"currency":"EUR"},"taxes":[{"name":"USt","rate":"19"}]},` +
				`{"description":"Brotzeit","quantity":5,"unit_amount":{"amount":1070,"currency":"EUR"},"taxes":[{"name":"USt","rate":"7"}]}`,
			want: sums{"USt 19": {10_000, 1900}, "USt 7": {5000, 350}, "total": {17_250, 2250}},
		},
	} {
		t.Run(operator.place, func(t *testing.T) {
			m := newMerchant(t, operator.currency)
			send := func(path, body string, status int) (d document) {
				m.insist(t, http.MethodPost, path, body, unique("documents"), status).decode(t, &d)
				return d
			}
			paid := func(amount int64) string {
				return fmt.Sprintf(`{"amount":{"amount":%d,"currency":%q},"method":"bank_transfer"}`, amount, operator.currency)
			}
			customer := m.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Ada","phone":"+1 555 0100"}`).id(t)
			quote := send("/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":%q,"tax_behavior":%q,"line_items":[%s],"deposit_amount":{"amount":%d,"currency":%q}}`,
				customer, chainDay(rand.IntN(10_000)), operator.behavior, operator.lines, operator.deposit, operator.currency), http.StatusCreated)
			if got := sumsOf(quote); !maps.Equal(got, operator.want) {
				t.Fatalf("the quote has %v, want %v", got, operator.want)
			}
			send("/quotes/"+quote.ID+"/send", "", http.StatusOK)
			quote = send("/quotes/"+quote.ID+"/accept", "", http.StatusOK)
			deposit := read[document](t, m.client, "/invoices/"+quote.InvoiceIDs[0])
			if deposit.Total.Amount != operator.deposit {
				t.Fatalf("the deposit is %+v", deposit)
			}
			send("/invoices/"+deposit.ID+"/record-payment", paid(operator.deposit), http.StatusOK)
			balance := send("/invoices", fmt.Sprintf(`{"booking_id":%q,"kind":"balance"}`, quote.BookingID), http.StatusCreated)
			balance = send("/invoices/"+balance.ID+"/open", "", http.StatusOK)
			if got := sumsOf(deposit, balance); !maps.Equal(got, operator.want) {
				t.Errorf("the invoices add up to %v, want %v", got, operator.want)
			}
			balance = send("/invoices/"+balance.ID+"/record-payment", paid(balance.Due.Amount), http.StatusOK)
			if balance.Status != "paid" {
				t.Errorf("the balance is %+v", balance)
			}

			notes := "/invoices/" + balance.ID + "/credit-notes"
			part := send(notes, fmt.Sprintf(`{"amount":{"amount":1001,"currency":%q},"reason":"It rained","refund":"manual"}`, operator.currency), http.StatusCreated)
			rest := send(notes, fmt.Sprintf(`{"amount":{"amount":%d,"currency":%q},"refund":"manual"}`, balance.Total.Amount-1001, operator.currency), http.StatusCreated)
			if part.Number != "CN-000001" || rest.Number != "CN-000002" || part.Total.Amount != 1001 {
				t.Errorf("%+v %+v", part, rest)
			}
			if got, want := sumsOf(part, rest), sumsOf(balance); !maps.Equal(got, want) {
				t.Errorf("the credit notes add up to %v, want %v", got, want)
			}
			if a := m.do(t, http.MethodPost, notes, fmt.Sprintf(`{"amount":{"amount":1,"currency":%q}}`, operator.currency), ""); a.Status != http.StatusUnprocessableEntity {
				t.Errorf("a credit note over the total: %d %s", a.Status, a.Body)
			}
			if i := read[document](t, m.client, "/invoices/"+balance.ID); i.Credited != balance.Total || i.Due.Amount != 0 {
				t.Errorf("the corrected invoice is %+v", i)
			}
			for _, path := range []string{"/quotes/" + quote.ID, "/invoices/" + deposit.ID, "/invoices/" + balance.ID, "/credit-notes/" + part.ID} {
				if a := m.want(t, http.StatusOK, http.MethodGet, path+"/pdf", ""); !bytes.HasPrefix(a.Body, []byte("%PDF-")) {
					t.Errorf("%s is no PDF", path)
				}
			}
		})
	}
}
