package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// priced contains the amounts of a booking, a quote or an invoice.
type priced struct {
	ID      string
	Total   chainMoney `json:"total_amount"`
	Gross   chainMoney `json:"gross_amount"` // of a booking
	Deposit chainMoney `json:"deposit_amount"`
	Tax     chainMoney `json:"tax_amount"`
	Taxes   []taxRow   `json:"tax_breakdown"`
}

// TestPackageHasOnePrice checks that a booking, a quote and an invoice of one package have the same total, taxes and deposit, for random
// prices and numbers of guests, with taxes in prices and added to them, and in currencies with 0, 2 and 3 decimals.
func TestPackageHasOnePrice(t *testing.T) {
	var all sync.WaitGroup
	for _, kind := range moneyKinds {
		all.Go(func() {
			c := kind.merchant(t).moneyCase(t)
			for range scaled(15, 500) {
				price, guests, percent := 1+rand.Int64N(100_000), 1+rand.IntN(7), 1+rand.IntN(99)
				service := c.list(t, "/services?limit=1")[0]["id"]
				pack := c.want(t, http.StatusCreated, http.MethodPost, "/packages", fmt.Sprintf(
					`{"service_id":%q,"name":"P","pricing":"per_guest","base_price":%s,"deposit_type":"percentage","deposit_value":%d}`,
					service, c.money(fmt.Sprint(price)), percent)).id(t)
				body := fmt.Sprintf(`{"customer_id":%q,"event_date":%q,"package_id":%q,"guest_count":%d}`, c.customer, c.day, pack, guests)
				var booking, quote, invoice priced
				c.want(t, http.StatusCreated, http.MethodPost, "/bookings", body).decode(t, &booking)
				c.want(t, http.StatusCreated, http.MethodPost, "/quotes", body).decode(t, &quote)
				c.want(t, http.StatusCreated, http.MethodPost, "/invoices", fmt.Sprintf(`{"booking_id":%q,"kind":"balance"}`, booking.ID)).decode(t, &invoice)
				for name, document := range map[string]priced{"quote": quote, "invoice": invoice} {
					if document.Total != booking.Gross || document.Tax != booking.Tax || !slices.Equal(document.Taxes, booking.Taxes) {
						t.Errorf("%s, %d for %d guests: the %s is\n%+v, the booking\n%+v", kind.currency, price, guests, name, document, booking)
					}
				}
				if quote.Deposit != booking.Deposit {
					t.Errorf("%s, %d for %d guests: deposits of %d %% are %v and %v", kind.currency, price, guests, percent, quote.Deposit, booking.Deposit)
				}
			}
		})
	}
	all.Wait()
}
