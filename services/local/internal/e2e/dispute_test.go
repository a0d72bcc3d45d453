package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// control calls the control API of the stand-in for Stripe.
func (p *platform) control(t *testing.T, path string, body map[string]any) {
	t.Helper()
	text := &bytes.Buffer{}
	if err := json.NewEncoder(text).Encode(body); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, p.env["STRIPE_URL"]+"/_control/"+path, text)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+settingOf(t, p.path("services", "stripe.env"), "LOCAL_STRIPE_CONTROL_TOKEN"))
	res, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if got, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, res.StatusCode, got, err)
	}
}

// deposit creates an intent for a new booking's deposit.
func deposit(t *testing.T, c *client) (created intent, booking string) {
	t.Helper()
	accepted := payable(t, c)
	c.insist(t, http.MethodPost, "/payment-intents", fmt.Sprintf(`{"booking_id":%q,"amount_minor":20000}`, accepted.BookingID), unique("pay"),
		http.StatusCreated).decode(t, &created)
	return created, accepted.BookingID
}

// TestDisputeIsShownAndAudited checks that the intent, the booking, and the invoice show a payer's dispute until the operator wins
// it, and that the audit log describes both events in plain language.
func TestDisputeIsShownAndAudited(t *testing.T) {
	s, c := shared.stripe(t), shared.as(t, "DEMO_TEST_KEY")
	created, booking := deposit(t, c)
	s.confirm(t, created, "pm_card_createDispute")
	shown := func() bool {
		return read[struct{ Disputed bool }](t, c, "/payment-intents/"+created.ID).Disputed
	}
	await(t, "the intent is disputed", shown)
	everywhere := func(disputed bool) func() bool {
		return func() bool {
			invoices := c.list(t, "/invoices?booking_id="+booking)
			return read[struct{ Disputed bool }](t, c, "/bookings/"+booking).Disputed == disputed &&
				len(invoices) == 1 && invoices[0]["disputed"] == disputed
		}
	}
	await(t, "the booking and its invoice are disputed", everywhere(true))
	payments, identity := shared.database(t, "payments"), shared.database(t, "identity")
	dispute := rows(t, payments, `select d.id from disputes d join payment_intents p on p.id = d.intent_id where p.gateway_id = $1`, created.ID)
	if len(dispute) != 1 {
		t.Fatalf("disputes %q", dispute)
	}
	shared.control(t, "disputes/"+dispute[0]+"/close", map[string]any{"outcome": "won"})
	await(t, "the dispute is won", func() bool { return !shown() })
	await(t, "the booking and its invoice are not disputed any more", everywhere(false))
	var records []string
	await(t, "both are audited", func() bool {
		records = rows(t, identity, `select action || ': ' || (after->>'summary') from audit_log where object = $1 order by seq`, dispute[0])
		return len(records) == 2
	})
	if !strings.HasPrefix(records[0], "dispute.opened: The payer disputes 200.00 USD of payment intent "+created.ID+": fraudulent. You can respond") ||
		records[1] != "dispute.closed: The dispute of 200.00 USD of payment intent "+created.ID+" is won: the money stays." {
		t.Errorf("%q", records)
	}
	out, err := shared.command("identity", "audit", "list", "--tenant", "demo", "--object", dispute[0]).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "The payer disputes 200.00 USD") {
		t.Errorf("%v: %s", err, out)
	}
	ledger := rows(t, payments, `select l.kind || ' ' || l.amount from ledger_entries l join payment_intents p on p.id = l.intent_id
		where p.gateway_id = $1 and l.ledger_account = 'gateway_balance' order by l.amount desc, l.kind`, created.ID)
	if want := []string{"charge 20000", "dispute_reversed 20000", "dispute -20000"}; !slices.Equal(ledger, want) {
		t.Errorf("%q", ledger)
	}
}

// TestLostWebhookIsReconciled checks that if Stripe's events of a payment never arrive, the next reconciliation finds the payment.
// The booking is then paid, and the ledger contains the payment.
func TestLostWebhookIsReconciled(t *testing.T) {
	s, c := shared.stripe(t), shared.as(t, "DEMO_TEST_KEY")
	payments := shared.database(t, "payments")
	created, booking := deposit(t, c)
	shared.control(t, "events", map[string]any{"dropped": true})
	t.Cleanup(func() { shared.control(t, "events", map[string]any{}) })
	s.confirm(t, created, "pm_card_visa")
	if got := read[intent](t, c, "/payment-intents/"+created.ID); got.Status != "requires_payment_method" {
		t.Errorf("without an event: %+v", got)
	}
	begun := time.Now()
	execute(t, payments, `update gateway_reconciliations set due_at = now()`) // as if the hour were over
	await(t, "the intent has succeeded", func() bool {
		return read[intent](t, c, "/payment-intents/"+created.ID).Status == "succeeded"
	})
	await(t, "the booking is paid", func() bool {
		return read[chainBooking](t, c, "/bookings/"+booking).Paid.Amount == 20_000
	})
	ledger := rows(t, payments, `select l.kind || ' ' || l.amount from ledger_entries l join payment_intents p on p.id = l.intent_id
		where p.gateway_id = $1 and l.ledger_account = 'gateway_balance'`, created.ID)
	if !slices.Equal(ledger, []string{"charge 20000"}) {
		t.Errorf("%q", ledger)
	}
	await(t, "the comparison has ended", func() bool {
		return len(rows(t, payments, `select account_id::text from gateway_reconciliations where finished_at <= $1`, begun)) == 0
	})
}
