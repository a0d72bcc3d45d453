package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
)

// TestThousandthsArePaidByCard checks exact payments by card in a currency with three decimals: the deposit and the balance of a
// quote, and the booking of a package whose price a holiday rule changed.
func TestThousandthsArePaidByCard(t *testing.T) {
	m := newMerchant(t, "KWD")
	day := chainDay(rand.IntN(10_000))
	charge := func(booking, more string, want int64) {
		t.Helper()
		var i intent
		m.insist(t, http.MethodPost, "/payment-intents", fmt.Sprintf(`{"booking_id":%q%s}`, booking, more), unique("pay"), http.StatusCreated).decode(t, &i)
		if i.Amount != want {
			t.Errorf("the intent requests %d, want %d", i.Amount, want)
		}
		m.pay(t, i)
	}

	customer := m.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Noor","email":"noor@example.com"}`).id(t)
	tag := unique("thousandths")
	// 3 × 3.335 = 10.005, less 3.33 % → 0.333, tax of 8.25 % on 9.672 → 0.798
	quote := m.insist(t, http.MethodPost, "/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":%q,"line_items":[{"description":"A day on the water",`+
		`"quantity":3,"unit_amount":{"amount":3335,"currency":"KWD"},"discount_bps":333,"tax_rate_bps":825}],"deposit_amount":{"amount":3333,"currency":"KWD"}}`,
		customer, day), tag, http.StatusCreated).id(t)
	m.insist(t, http.MethodPost, "/quotes/"+quote+"/send", "", tag+"-send", http.StatusOK)
	var accepted chainQuote
	m.insist(t, http.MethodPost, "/quotes/"+quote+"/accept", "", tag+"-accept", http.StatusOK).decode(t, &accepted)
	charge(accepted.BookingID, fmt.Sprintf(`,"invoice_id":%q`, accepted.InvoiceIDs[0]), 3330)
	m.paid(t, accepted.BookingID, 3330)
	balance := m.insist(t, http.MethodPost, "/invoices", fmt.Sprintf(`{"booking_id":%q,"kind":"balance"}`, accepted.BookingID), tag+"-balance", http.StatusCreated).id(t)
	m.insist(t, http.MethodPost, "/invoices/"+balance+"/open", "", tag+"-open", http.StatusOK)
	charge(accepted.BookingID, fmt.Sprintf(`,"invoice_id":%q`, balance), 7140)
	m.paid(t, accepted.BookingID, 10_470)

	service := m.want(t, http.StatusCreated, http.MethodPost, "/services", `{"name":"Sail"}`).id(t)
	pack := m.want(t, http.StatusCreated, http.MethodPost, "/packages", fmt.Sprintf(
		`{"name":"Day","service_id":%q,"base_price":{"amount":5120,"currency":"KWD"},"deposit_type":"percentage","deposit_value":3333}`, service)).id(t)
	m.want(t, http.StatusCreated, http.MethodPost, "/holiday-rules", fmt.Sprintf(
		`{"name":"High","date_from":%q,"date_to":%q,"recurrence":"none","multiplier_bps":11500,"applies_to":"all"}`, day, day))
	booking := m.want(t, http.StatusCreated, http.MethodPost, "/bookings", fmt.Sprintf(`{"event_date":%q,"package_id":%q}`, day, pack)).id(t)
	amounts := read[struct {
		Total   chainMoney `json:"total_amount"`
		Deposit chainMoney `json:"deposit_amount"`
	}](t, m.client, "/bookings/"+booking)
	if amounts.Total.Amount != 5890 || amounts.Deposit.Amount != 1960 { // 5888, and 1963.137
		t.Errorf("%+v", amounts)
	}
	charge(booking, fmt.Sprintf(`,"amount_minor":%d`, amounts.Deposit.Amount), 1960)
	m.paid(t, booking, 1960)
	charge(booking, "", 3930)
	m.paid(t, booking, 5890)
}
