package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// paymentFailpoints are the steps at which payments crashes in TestPaymentsCrashAtEachStep, with the operation that includes the
// step, and whether the operation takes effect without another request from the client.
var paymentFailpoints = []struct {
	name, operation string
	completed       bool
}{
	{"intent.begun", "create", true},
	{"intent.requested", "create", true},
	{"intent.written", "create", true},
	{"intent.committed", "create", true},
	{"action.begun", "capture", false},
	{"action.requested", "capture", true}, // an event of Stripe reports it
	{"action.committed", "capture", true},
	{"action.begun", "cancel", false},
	{"action.requested", "cancel", true},
	{"action.committed", "cancel", true},
	{"refund.begun", "refund", true},
	{"refund.called", "refund", true},
	{"refund.committed", "refund", true},
	{"handback.written", "cash refund", false},
	{"handback.committed", "cash refund", true},
	{"event.stored", "event", true},
}

// cardStep is one request during which a process of payments crashes.
type cardStep struct {
	failpoint, operation string
	completed            bool

	booking, path, body, key string
	intent                   intent
}

func (s *cardStep) String() string { return s.operation + ", killed at " + s.failpoint }

// TestPaymentsCrashAtEachStep crashes payments at each step of a creation, a capture, a cancellation, a refund to the card and in cash, and the receipt of
// an event, while another process of payments keeps running. It checks that each operation takes effect at Stripe once: after the
// client's retry and, where possible, without one. Afterwards payments shows the state of Stripe.
func TestPaymentsCrashAtEachStep(t *testing.T) {
	m := newMerchant(t, "USD")
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	payments := newReplica(t, "payments", filepath.Join(bin, "failpoints", "payments"))
	gateway := newReplica(t, "gateway", filepath.Join(bin, "gateway"), "UPSTREAM_PAYMENTS_URL=http://"+payments.address)
	defer payments.stop()
	defer gateway.stop()
	gateway.start(t, shared)
	dying := shared.with(t, m.key)
	public := strings.TrimPrefix(shared.env["BASE_URL"], "http://")
	dying.base = strings.Replace(m.base, public, gateway.address+"/api/v1", 1)
	host, _, _ := strings.Cut(public, "/")

	steps := make([]*cardStep, len(paymentFailpoints))
	for n, f := range paymentFailpoints {
		s := &cardStep{failpoint: f.name, operation: f.operation, completed: f.completed, key: unique("step")}
		s.prepare(t, m)
		payments.start(t, shared, "FAILPOINT="+f.name)
		if s.operation == "event" {
			m.control(t, http.MethodPost, "events", map[string]any{"account": m.account, "dropped": true}, nil)
			m.pay(t, s.intent)
			body := fmt.Sprintf(`{"id":"evt_%s","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":%q}}}`, s.key, s.intent.ID)
			address := strings.Replace(m.webhooks, host, gateway.address, 1)
			if status := m.send(t, address, strings.NewReader(body), signature(m.signing, time.Now(), body)); status == http.StatusOK {
				t.Errorf("%v: responded before the process crashed", s)
			}
			m.control(t, http.MethodPost, "events", map[string]any{"account": m.account}, nil)
		} else if a, err := dying.try(t, http.MethodPost, s.path, s.body, s.key); err == nil && a.Status < 300 {
			t.Errorf("%v: responded %d before its process crashed", s, a.Status)
		}
		payments.killed(t)
		steps[n] = s
	}
	db := shared.database(t, "payments")
	for _, table := range []string{"payment_intents", "refunds"} { // ends the leases of the crashed processes
		execute(t, db, `update `+table+` set leased_until = now() where leased_until is not null`)
	}
	for _, s := range steps {
		if s.completed {
			patient(t, s.String()+": completed", func() bool { return s.done(t, m) })
		} else if s.done(t, m) {
			t.Errorf("%v: done, without a request", s)
		}
	}
	for _, s := range steps {
		if s.operation != "event" {
			m.insist(t, http.MethodPost, s.path, s.body, s.key, http.StatusOK, http.StatusCreated)
			again := m.insist(t, http.MethodPost, s.path, s.body, s.key, http.StatusOK, http.StatusCreated)
			if again.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%v: the response is not repeated", s)
			}
		}
		if !s.done(t, m) {
			t.Errorf("%v: repeated, and not done", s)
		}
	}
	holds := m.holding(t)
	bookings, charges := holds.taken()
	intents, refunds := map[string]int{}, map[string][]int64{}
	for _, i := range holds.Intents {
		intents[i.Metadata["booking_id"]]++
	}
	for _, r := range holds.Refunds {
		refunds[r.Intent] = append(refunds[r.Intent], r.Amount)
	}
	for _, s := range steps {
		want := map[string]int64{"capture": 600, "refund": 1000, "cash refund": 1000, "event": 1000}[s.operation]
		wantRefunds := "[]"
		if s.operation == "refund" || s.operation == "capture" { // the amount that is not captured is released as a refund
			wantRefunds = "[400]"
		}
		if intents[s.booking] != 1 || bookings[s.booking] != want || charges[s.intent.ID] > 1 || fmt.Sprint(refunds[s.intent.ID]) != wantRefunds {
			t.Errorf("%v: %d intents, %d charged %d times, refunds %v", s, intents[s.booking], bookings[s.booking], charges[s.intent.ID], refunds[s.intent.ID])
		}
		m.paid(t, s.booking, want)
	}
}

// prepare creates the resources for the step.
func (s *cardStep) prepare(t *testing.T, m merchant) {
	t.Helper()
	s.booking = m.booking(t)
	if s.operation == "create" {
		s.path, s.body = "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"amount_minor":1000}`, s.booking)
		return
	}
	more := ""
	if s.operation == "capture" {
		more = `,"capture_method":"manual"`
	}
	s.intent = m.begin(t, s.booking, 1000, more)
	switch s.operation {
	case "capture":
		m.pay(t, s.intent)
		await(t, s.String()+": authorised", func() bool { return s.read(t, m).Status == "requires_capture" })
		s.path, s.body = "/payment-intents/"+s.intent.ID+"/capture", `{"amount_minor":600}`
	case "cancel":
		s.path, s.body = "/payment-intents/"+s.intent.ID+"/cancel", `{}`
	case "refund", "cash refund":
		m.pay(t, s.intent)
		await(t, s.String()+": paid", func() bool { return s.read(t, m).Status == "succeeded" })
		s.path, s.body = "/refunds", fmt.Sprintf(`{"payment_intent_id":%q,"amount_minor":400,"reason":"duplicate"}`, s.intent.ID)
		if s.operation == "cash refund" {
			s.body = fmt.Sprintf(`{"booking_id":%q,"amount_minor":400,"reason":"duplicate","method":"cash"}`, s.booking)
		}
	}
}

// cardState contains the fields of an intent in payments.
type cardState struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Received int64  `json:"amount_received"`
	Refunded int64  `json:"amount_refunded"`
}

func (s *cardStep) read(t *testing.T, m merchant) cardState {
	t.Helper()
	return read[cardState](t, m.client, "/payment-intents/"+s.intent.ID)
}

// done reports whether the operation took effect and payments shows it.
func (s *cardStep) done(t *testing.T, m merchant) bool {
	t.Helper()
	switch s.operation {
	case "create":
		return len(m.list(t, "/payment-intents?booking_id="+s.booking)) == 1
	case "capture":
		got := s.read(t, m)
		return got.Status == "succeeded" && got.Received == 600
	case "cancel":
		return s.read(t, m).Status == "canceled"
	case "refund":
		return s.read(t, m).Refunded == 400 && len(m.list(t, "/refunds?payment_intent_id="+s.intent.ID)) == 1
	case "cash refund":
		return len(m.list(t, "/refunds?booking_id="+s.booking)) == 1
	default:
		return s.read(t, m).Status == "succeeded"
	}
}
