package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHangingAccount checks that an account for which Stripe does not respond does not delay other tenants. Its own clients get an
// error with the time to wait. Clients of other tenants are served in the meantime, and each started operation takes effect once.
func TestHangingAccount(t *testing.T) {
	dead, well := newMerchant(t, "USD"), newMerchant(t, "USD")
	booking := dead.booking(t)
	var rule struct {
		ID int `json:"id"`
	}
	dead.control(t, http.MethodPost, "faults", map[string]any{
		"action": "hold_after", "method": "POST", "path": "/v1/payment_intents", "account": dead.account, "times": 0,
	}, &rule)
	stop := sync.OnceFunc(func() { dead.control(t, http.MethodDelete, "faults/"+strconv.Itoa(rule.ID), nil, nil) })
	defer stop()
	const creates = 30 // more failures than open a circuit breaker of the gateway
	body := fmt.Sprintf(`{"booking_id":%q,"amount_minor":100}`, booking)
	keys := make([]string, creates)
	var hanging sync.WaitGroup
	for n := range keys {
		keys[n] = unique("hanging")
		hanging.Go(func() {
			a, err := dead.try(t, http.MethodPost, "/payment-intents", body, keys[n])
			if err != nil || a.Status != http.StatusBadGateway || !strings.Contains(string(a.Body), `"payment_intent_failed"`) || a.Header.Get("Retry-After") == "" {
				t.Errorf("%v %d %q %s", err, a.Status, a.Header.Get("Retry-After"), a.Body)
			}
		})
	}
	ended := make(chan struct{})
	go func() { hanging.Wait(); close(ended) }()
	served := 0
	for waiting := true; waiting; served++ {
		var created intent
		well.insist(t, http.MethodPost, "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"amount_minor":100}`, well.booking(t)), unique("well"), http.StatusCreated).decode(t, &created)
		well.want(t, http.StatusOK, http.MethodGet, "/payment-intents/"+created.ID, "")
		dead.want(t, http.StatusOK, http.MethodGet, "/payment-intents", "")
		select {
		case <-ended:
			waiting = false
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.Logf("%d payments of another tenant meanwhile", served)
	stop()
	ids := map[string]bool{}
	for _, key := range keys {
		var created intent
		dead.beginWith(t, booking, 100, "", key, &created)
		ids[created.ID] = true
	}
	holds := dead.holding(t)
	if len(ids) != creates || len(holds.Intents) != creates {
		t.Errorf("%d intents, and %d at Stripe, want %d", len(ids), len(holds.Intents), creates)
	}
}

// reconciled awaits the effect of an event. If the event does not arrive within 20 seconds, because it repeatedly reached a
// crashed process, the reconciler must produce the effect.
func reconciled(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Logf("left to the reconciler: %s", what)
	await(t, what, comparing(t, ok))
}

// comparing returns a function that calls ok and makes a reconciliation with the gateway due every five seconds. A reconciliation
// that is already running might have passed the payment, and postpones the next one when it ends.
func comparing(t *testing.T, ok func() bool) func() bool {
	t.Helper()
	payments, next := shared.database(t, "payments"), time.Time{}
	return func() bool {
		if now := time.Now(); now.After(next) {
			execute(t, payments, `update gateway_reconciliations set due_at = now()`)
			next = now.Add(5 * time.Second)
		}
		return ok()
	}
}

// paidOrReconciled waits until each booking shows the paid amount. An event that repeatedly reached a crashed process arrives only
// hours later. The reconciler exists for such events and processes those that did not arrive within a minute. The test logs which
// events were missing.
func (m merchant) paidOrReconciled(t *testing.T, want map[string]int64) {
	t.Helper()
	late := maps.Clone(want)
	for end := time.Now().Add(time.Minute); len(late) > 0 && time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		maps.DeleteFunc(late, func(booking string, amount int64) bool {
			return read[chainBooking](t, m.client, "/bookings/"+booking).Paid.Amount == amount
		})
	}
	if len(late) == 0 {
		return
	}
	payments := shared.database(t, "payments")
	for booking := range late {
		for _, i := range m.list(t, "/payment-intents?limit=100&booking_id="+booking) {
			if i["status"] != "succeeded" {
				t.Logf("%s of %s is %s; its events: %q", i["id"], booking, i["status"], rows(t, payments,
					`select type || ' ' || coalesce(due_at::text, 'worked off') || ' ' || tries from gateway_events where intent = $1`, i["id"]))
			}
		}
	}
	for booking, amount := range late {
		patient(t, fmt.Sprintf("the booking %s shows %d", booking, amount), comparing(t, func() bool {
			return read[chainBooking](t, m.client, "/bookings/"+booking).Paid.Amount == amount
		}))
	}
}
