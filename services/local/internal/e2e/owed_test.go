package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// owing creates a merchant whose policy automatically refunds half of the paid amount.
func owing(t *testing.T) merchant {
	t.Helper()
	m := newMerchant(t, "USD")
	shared.identity(t, nil, "tenant", "update", m.slug, "--refund-rules", `[{"hours_before":24,"percent":50}]`, "--auto-refund", "true")
	return m
}

// cancelled returns a canceled booking with payments of 10.00. before runs after all payments and before the cancellation.
func (m merchant) cancelled(t *testing.T, payments int, before func(paid []intent)) (booking string, paid []intent) {
	t.Helper()
	booking = m.booking(t)
	for range payments {
		i := m.begin(t, booking, 1000, "")
		m.pay(t, i)
		paid = append(paid, i)
	}
	m.paid(t, booking, int64(payments)*1000)
	if before != nil {
		before(paid)
	}
	m.insist(t, http.MethodPost, "/bookings/"+booking+"/cancel", `{"reason":"rain"}`, unique("cancel"), http.StatusOK)
	return booking, paid
}

// returned returns the amount that the stand-in refunded for each intent.
func (m merchant) returned(t *testing.T) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, r := range m.holding(t).Refunds {
		if r.Status == "succeeded" {
			out[r.Intent] += r.Amount
		}
	}
	return out
}

// owed returns the owed refund of a booking: its state, the number of tries, and the code of the last failure.
func owed(t *testing.T, db *pgx.Conn, booking string) (state string, tries int, failure string) {
	t.Helper()
	err := db.QueryRow(t.Context(), `select state, tries, coalesce(failure ->> 'code', '') from automatic_refunds where cause = 'cancelled' and subject = $1`, booking).
		Scan(&state, &tries, &failure)
	if err != nil {
		return "", 0, err.Error()
	}
	return state, tries, failure
}

// isRefused waits until a try of an owed refund is refused for a reason. A try is counted when it begins, so isRefused also checks
// that its refund has ended.
func isRefused(t *testing.T, db *pgx.Conn, booking string, try int, reason string) {
	t.Helper()
	patient(t, fmt.Sprintf("try %d is refused", try), func() bool {
		var ended int
		if err := db.QueryRow(t.Context(), `select count(*) from refunds r join automatic_refunds o on o.tenant_id = r.tenant_id and o.livemode = r.livemode and o.id = r.owed_id
			where o.subject = $1 and r.status = 'refused'`, booking).Scan(&ended); err != nil {
			t.Fatal(err)
		}
		state, tries, failure := owed(t, db, booking)
		return state == "open" && tries == try && failure == reason && ended == try
	})
}

// nextDay ends the pause before the next try of an owed refund.
func nextDay(t *testing.T, db *pgx.Conn, booking string) {
	t.Helper()
	execute(t, db, `update automatic_refunds set retry_at = now(), due_at = now() where subject = $1`, booking)
}

// TestOwedRefundIsRetriedUntilTheDisputeEnds disputes a payment before the booking is canceled. It checks that the gateway refuses
// the refund on each day until the dispute is won, and then makes it once.
func TestOwedRefundIsRetriedUntilTheDisputeEnds(t *testing.T) {
	m := owing(t)
	db := shared.database(t, "payments")
	var dispute struct{ ID string }
	booking, paid := m.cancelled(t, 1, func(paid []intent) {
		for _, charge := range m.holding(t).Charges {
			if charge.Intent == paid[0].ID {
				m.control(t, http.MethodPost, "charges/"+charge.ID+"/dispute", map[string]any{}, &dispute)
			}
		}
	})
	for try := 1; try <= 3; try++ {
		isRefused(t, db, booking, try, "charge_disputed")
		time.Sleep(3 * time.Second) // during some runs of the worker
		if _, tries, _ := owed(t, db, booking); tries != try {
			t.Fatalf("%d tries within the pause of the first %d", tries, try)
		}
		if try < 3 {
			nextDay(t, db, booking)
		}
	}
	m.control(t, http.MethodPost, "disputes/"+dispute.ID+"/close", map[string]any{"outcome": "won"}, nil)
	nextDay(t, db, booking)
	patient(t, "the refund is created", func() bool {
		state, _, _ := owed(t, db, booking)
		return state == "done"
	})
	if got := m.returned(t)[paid[0].ID]; got != 500 {
		t.Errorf("%d are returned", got)
	}
	await(t, "the booking shows the refund", func() bool {
		return read[paidBooking](t, m.client, "/bookings/"+booking).AmountRefunded.Amount == 500
	})
}

// TestOwedRefundIsRetriedUntilTheBalanceCoversIt checks that the gateway refuses an owed refund with a reason while the account's
// balance does not cover it, and makes it once on the day on which the balance does.
func TestOwedRefundIsRetriedUntilTheBalanceCoversIt(t *testing.T) {
	m := owing(t)
	db := shared.database(t, "payments")
	var low struct{ ID int }
	booking, paid := m.cancelled(t, 1, func([]intent) {
		m.control(t, http.MethodPost, "faults", map[string]any{
			"action": "refuse", "method": "POST", "path": "/v1/refunds", "account": m.account, "code": "balance_insufficient",
		}, &low)
	})
	for try := 1; try <= 2; try++ {
		isRefused(t, db, booking, try, "balance_insufficient")
		if try == 2 {
			m.control(t, http.MethodDelete, fmt.Sprintf("faults/%d", low.ID), nil, nil)
		}
		nextDay(t, db, booking)
	}
	patient(t, "the refund is created", func() bool {
		state, _, _ := owed(t, db, booking)
		return state == "done"
	})
	if got := m.returned(t)[paid[0].ID]; got != 500 {
		t.Errorf("%d are returned", got)
	}
	await(t, "the booking shows the refund", func() bool {
		return read[paidBooking](t, m.client, "/bookings/"+booking).AmountRefunded.Amount == 500
	})
}

// TestOwedRefundOverManyPayments checks that an owed refund can span more payments than a single refund can contain.
func TestOwedRefundOverManyPayments(t *testing.T) {
	const payments = 45
	m := owing(t)
	booking, paid := m.cancelled(t, payments, nil)
	db := shared.database(t, "payments")
	patient(t, "half of what was paid is returned", func() bool {
		state, _, _ := owed(t, db, booking)
		return state == "done"
	})
	var sum int64
	for _, i := range paid {
		got := m.returned(t)[i.ID]
		if sum += got; got > 1000 {
			t.Errorf("%d are returned of %s", got, i.ID)
		}
	}
	if sum != payments*500 {
		t.Errorf("%d are returned", sum)
	}
}

// TestOwedRefundIsCreatedOnceWhenPaymentsCrashes crashes payments after it stores the refund and before it calls the gateway. It
// checks that another process creates the refund once.
func TestOwedRefundIsCreatedOnceWhenPaymentsCrashes(t *testing.T) {
	m := owing(t)
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	payments := newReplica(t, "payments", filepath.Join(bin, "failpoints", "payments"))
	payments.start(t, shared, "FAILPOINT=owed.begun")
	defer payments.stop()
	db := shared.database(t, "payments")
	bookings := map[string]intent{}
	for round, end := 1, time.Now().Add(3*time.Minute); !payments.dead(); round++ { // the process of `local up` can process a booking first
		if round%8 == 0 { // that process might always poll a moment earlier: a restart changes the polling times
			payments.stop()
			payments.start(t, shared, "FAILPOINT=owed.begun")
		}
		if time.Now().After(end) {
			t.Fatalf("the process has begun no refund\n%s", payments.log)
		}
		booking, paid := m.cancelled(t, 1, nil)
		bookings[booking] = paid[0]
		for wait := time.Now().Add(5 * time.Second); !payments.dead() && time.Now().Before(wait); time.Sleep(100 * time.Millisecond) {
			if state, _, _ := owed(t, db, booking); state == "done" {
				break
			}
		}
	}
	payments.killed(t)
	execute(t, db, `update refunds set leased_until = now() where leased_until is not null`) // ends the lease of the crashed process
	execute(t, db, `update automatic_refunds set due_at = now() where state = 'open'`)
	for booking, i := range bookings {
		patient(t, "the refund of "+booking, func() bool {
			state, _, _ := owed(t, db, booking)
			return state == "done"
		})
		if got := m.returned(t)[i.ID]; got != 500 {
			t.Errorf("%d are returned of %s", got, booking)
		}
	}
	if n := len(m.holding(t).Refunds); n != len(bookings) {
		t.Errorf("%d refunds of %d bookings", n, len(bookings))
	}
}
