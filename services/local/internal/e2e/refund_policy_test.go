package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// paidBooking contains the fields of a booking's payments that the tests read.
type paidBooking struct {
	Status         string
	PaymentStatus  string      `json:"payment_status"`
	AmountPaid     minorAmount `json:"amount_paid"`
	AmountRefunded minorAmount `json:"amount_refunded"`
	Cancellation   *struct {
		RefundAmountDue *minorAmount `json:"refund_amount_due"`
	}
}

type minorAmount struct{ Amount int64 }

// TestPaymentStatesAndRefundByPolicy checks that a booking passes through its payment states by card: deposit_paid, paid,
// overpaid, partially_refunded, refunded. It is canceled along the way, and the share that its policy defines is refunded
// automatically.
func TestPaymentStatesAndRefundByPolicy(t *testing.T) {
	s := shared.stripe(t)
	slug := strings.ReplaceAll(unique("refunds"), "-", "")
	var created struct{ Secret string }
	var tenant struct{ ID string }
	shared.identity(t, nil, "tenant", "create", "--slug", slug, "--name", "Refunds", "--timezone", "UTC", "--currency", "USD")
	shared.identity(t, nil, "tenant", "update", slug, "--refund-rules", `[{"hours_before":24,"percent":50}]`, "--auto-refund", "true")
	shared.identity(t, &created, "key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json")
	c := shared.with(t, created.Secret)
	c.want(t, http.StatusOK, http.MethodGet, "/tenant", "").decode(t, &tenant)
	shared.connectGateway(t, tenant.ID)
	service := c.want(t, http.StatusCreated, http.MethodPost, "/services", `{"name":"Tour","duration_minutes":60}`).id(t)
	pack := c.want(t, http.StatusCreated, http.MethodPost, "/packages", fmt.Sprintf(
		`{"service_id":%q,"name":"P","base_price":{"amount":100000,"currency":"USD"},"deposit_type":"percentage","deposit_value":2000}`, service)).id(t)
	booking := c.want(t, http.StatusCreated, http.MethodPost, "/bookings", fmt.Sprintf(`{"event_date":"2090-05-01","package_id":%q}`, pack)).id(t)
	path := "/bookings/" + booking
	shows := func(status string, paid, refunded int64) {
		t.Helper()
		await(t, "the booking is "+status, func() bool {
			b := read[paidBooking](t, c, path)
			return b.PaymentStatus == status && b.AmountPaid.Amount == paid && b.AmountRefunded.Amount == refunded
		})
	}
	create := func(amount int64) (i intent) {
		t.Helper()
		c.insist(t, http.MethodPost, "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"amount_minor":%d}`, booking, amount), unique("pay"), http.StatusCreated).
			decode(t, &i)
		return i
	}
	deposit, rest, again := create(20_000), create(80_000), create(30_000)
	s.confirm(t, deposit, "pm_card_visa")
	shows("deposit_paid", 20_000, 0)
	if b := read[paidBooking](t, c, path); b.Status != "confirmed" {
		t.Errorf("the booking is %s", b.Status)
	}
	s.confirm(t, rest, "pm_card_visa")
	shows("paid", 100_000, 0)
	s.confirm(t, again, "pm_card_visa")
	shows("overpaid", 130_000, 0)
	c.want(t, http.StatusOK, http.MethodPost, path+"/cancel", `{"reason":"rain"}`)
	if due := read[paidBooking](t, c, path).Cancellation.RefundAmountDue; due == nil || due.Amount != 65_000 {
		t.Errorf("due %v", due)
	}
	shows("partially_refunded", 130_000, 65_000)
	c.insist(t, http.MethodPost, "/refunds", fmt.Sprintf(`{"booking_id":%q,"reason":"requested_by_customer"}`, booking), unique("refund"), http.StatusCreated)
	shows("refunded", 130_000, 130_000)
	if refunds := c.list(t, "/refunds?booking_id="+booking); len(refunds) != 2 {
		t.Errorf("%d refunds", len(refunds))
	}
	if payments := c.list(t, path+"/payments"); len(payments) != 3 {
		t.Errorf("%d payments", len(payments))
	}
}
