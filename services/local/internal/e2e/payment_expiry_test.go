package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHoldEndsWhileItIsPaid checks a hold that expires while the deposit is being paid. The booking stays expired. The payment
// stays and is shown. A payment that the gateway captured after the hold expired is refunded once if the tenant's policy requires it, one
// that is only reported afterwards is not. A payment that arrives first confirms the booking. If both happen at the same time, one of the two
// applies.
func TestHoldEndsWhileItIsPaid(t *testing.T) {
	for _, refunds := range []bool{false, true} {
		t.Run(fmt.Sprintf("refund_late_payments %t", refunds), func(t *testing.T) { holdEnds(t, refunds) })
	}
}

// paidLate waits until payments has settled a payment of an expired booking. It reports whether the gateway captured the payment after the
// hold expired.
func paidLate(t *testing.T, i intent) bool {
	t.Helper()
	db := shared.database(t, "payments")
	await(t, "payments has decided", func() bool {
		return rows(t, db, `select settled::text from payment_intents where gateway_id = $1`, i.ID)[0] == "true"
	})
	id := rows(t, db, `select booking_id::text from payment_intents where gateway_id = $1`, i.ID)[0]
	ended := rows(t, shared.database(t, "bookings"), `select expired_at::text from bookings where id = $1::uuid`, id)[0]
	return rows(t, db, `select (succeeded_at > $2::text::timestamptz)::text from payment_intents where gateway_id = $1`, i.ID, ended)[0] == "true"
}

func holdEnds(t *testing.T, refunds bool) {
	m, db := newMerchant(t, "USD"), shared.database(t, "payments")
	shared.identity(t, nil, "tenant", "update", m.slug, "--refund-late-payments", fmt.Sprint(refunds))
	service := m.want(t, http.StatusCreated, http.MethodPost, "/services", `{"name":"Tour","duration_minutes":60}`).id(t)
	pack := m.want(t, http.StatusCreated, http.MethodPost, "/packages", fmt.Sprintf(
		`{"service_id":%q,"name":"P","base_price":{"amount":1000,"currency":"USD"},"deposit_type":"percentage","deposit_value":10000}`, service)).id(t)
	now := time.Now().Add(time.Hour)
	later := func(by time.Duration) {
		now = now.Add(by)
		m.want(t, http.StatusOK, http.MethodPost, "/test-clock", fmt.Sprintf(`{"now":%q}`, now.UTC().Format(time.RFC3339)))
	}
	held := func() (booking string, i intent) {
		booking = m.insist(t, http.MethodPost, "/bookings", fmt.Sprintf(`{"event_date":"2090-05-01","package_id":%q,"hold_minutes":5}`, pack), unique("held"),
			http.StatusCreated).id(t)
		return booking, m.begin(t, booking, 1000, "")
	}
	state := func(booking string) paidBooking { return read[paidBooking](t, m.client, "/bookings/"+booking) }
	settled := func(booking string, i intent, allowed ...string) (late bool) {
		t.Helper()
		await(t, "the booking shows the payment", func() bool { return state(booking).AmountPaid.Amount == 1000 })
		status := state(booking).Status
		if !slices.Contains(allowed, status) {
			t.Fatalf("the booking is %s", status)
		}
		returned := int64(0)
		if status == "expired" {
			if late = paidLate(t, i); late && refunds {
				returned = 1000
			}
		}
		await(t, fmt.Sprintf("%d are returned", returned), func() bool { return state(booking).AmountRefunded.Amount == returned })
		if sum := m.returned(t)[i.ID]; sum != returned || len(m.list(t, "/refunds?booking_id="+booking)) != int(returned/1000) {
			t.Errorf("%s: the stand-in has returned %d, want %d", status, sum, returned)
		}
		return late
	}
	later(0)

	booking, i := held()
	// Nothing reports the payment before the hold ends: neither an event nor a comparison with the gateway.
	await(t, "no comparison runs or begins", func() bool {
		execute(t, db, `update gateway_reconciliations set due_at = now() + interval '1 hour' where started_at is null`)
		return rows(t, db, `select count(*)::text from gateway_accounts a join gateway_reconciliations r on r.account_id = a.id
			where a.account = $1 and r.started_at is null and r.due_at > now() + interval '30 minutes'`, m.account)[0] == "1"
	})
	m.control(t, http.MethodPost, "events", map[string]any{"account": m.account, "stopped": true}, nil)
	m.pay(t, i)
	later(10 * time.Minute)
	await(t, "the hold has ended", func() bool { return state(booking).Status == "expired" })
	await(t, "payments knows it", func() bool {
		return read[struct {
			Status string `json:"booking_status"`
		}](t, m.client, "/payment-intents/"+i.ID).Status == "expired"
	})
	m.control(t, http.MethodPost, "events", map[string]any{"account": m.account}, nil)
	if settled(booking, i, "expired") {
		t.Error("a payment from before the end of the hold is late")
	}
	var events []map[string]any
	await(t, "the event says so", func() bool {
		events = m.list(t, "/events?type=payment.succeeded&object_id="+i.ID)
		return len(events) > 0
	})
	if text := fmt.Sprint(events); len(events) != 1 || !strings.Contains(text, "booking_status:expired") {
		t.Errorf("%s", text)
	}

	booking, i = held()
	resume := shared.withoutConsumer(t, "payments") // so that the intent stays open
	defer resume()
	later(10 * time.Minute)
	await(t, "the hold has ended", func() bool { return state(booking).Status == "expired" })
	time.Sleep(time.Second) // the gateway reports whole seconds
	m.pay(t, i)
	resume()
	if !settled(booking, i, "expired") {
		t.Error("a payment from after the end of the hold is in time")
	}

	booking, i = held()
	m.pay(t, i)
	await(t, "the booking is confirmed", func() bool { return state(booking).Status == "confirmed" })
	later(10 * time.Minute)
	settled(booking, i, "confirmed")

	outcomes := map[string]int{}
	for range rounds(3) {
		booking, i := held()
		var both sync.WaitGroup
		both.Go(func() { m.pay(t, i) })
		both.Go(func() {
			time.Sleep(rand.N(150 * time.Millisecond)) // approximately the time until the payment reaches the booking
			later(10 * time.Minute)
		})
		both.Wait()
		settled(booking, i, "confirmed", "expired")
		outcomes[state(booking).Status]++
	}
	t.Logf("%v", outcomes)
}
