package main

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/stripe/stripe-go/v76"
)

// held contains the relevant fields of a snapshot.
type held struct {
	Intents   []stripe.PaymentIntent      `json:"payment_intents"`
	Charges   []stripe.Charge             `json:"charges"`
	Refunds   []stripe.Refund             `json:"refunds"`
	Disputes  []stripe.Dispute            `json:"disputes"`
	Movements []stripe.BalanceTransaction `json:"balance_transactions"`
}

// TestBalanceIsCapturedLessRefundedLessDisputed checks that after any operations, the balance is the captured amount minus the
// refunded, disputed, and lost amounts.
func TestBalanceIsCapturedLessRefundedLessDisputed(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config) { c.FeeBasisPoints, c.FeeFixed, c.FeeDispute = 290, 30, 1500 })
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			s.step(r)
		}
		s.checkBalance(r)
	})
}

// step runs one random operation. A refusal is a valid result.
func (s *standIn) step(r *rapid.T) {
	methods := []string{
		"pm_card_visa", "pm_card_chargeDeclined", "pm_card_refundFail", "pm_card_pendingRefund", "pm_card_createDispute",
		"pm_usBankAccount_success", "pm_usBankAccount_noAccount",
	}
	all := s.held(r)
	action := rapid.IntRange(0, 6).Draw(r, "action")
	if action > 1 && len(all.Charges) == 0 || action == 5 && len(all.Disputes) == 0 || action == 6 && len(all.Refunds) == 0 {
		action = 0
	}
	switch action {
	case 0:
		_, _ = s.try(intent(rapid.Int64Range(100, 9000).Draw(r, "amount"), "usd"), rapid.SampledFrom(methods).Draw(r, "method"))
	case 1:
		p := intent(rapid.Int64Range(100, 9000).Draw(r, "amount"), "eur")
		p.CaptureMethod = stripe.String("manual")
		_, _ = s.try(p, "pm_card_visa")
	case 2:
		id := rapid.SampledFrom(all.Intents).Draw(r, "intent").ID
		_, _ = s.PaymentIntents.Capture(id, &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(rapid.Int64Range(50, 9000).Draw(r, "capture"))})
	case 3:
		id := rapid.SampledFrom(all.Intents).Draw(r, "intent").ID
		_, _ = s.Refunds.New(&stripe.RefundParams{PaymentIntent: &id, Amount: stripe.Int64(rapid.Int64Range(1, 3000).Draw(r, "refund"))})
	case 4:
		s.tryControl("charges/"+rapid.SampledFrom(all.Charges).Draw(r, "charge").ID+"/dispute", map[string]any{})
	case 5:
		id := rapid.SampledFrom(all.Disputes).Draw(r, "dispute").ID
		s.tryControl("disputes/"+id+"/close", map[string]any{"outcome": rapid.SampledFrom([]string{"won", "lost"}).Draw(r, "outcome")})
	case 6:
		id := rapid.SampledFrom(all.Refunds).Draw(r, "refund").ID
		s.tryControl("refunds/"+id+"/finish", map[string]any{"outcome": "failed"})
	}
}

// tryControl calls the control API and ignores a refusal.
func (s *standIn) tryControl(path string, body any) {
	text, _ := json.Marshal(body)
	s.send("POST", controlToken, "/_control/"+path, string(text), "Content-Type", "application/json")
}

func (s *standIn) held(rapid.TB) held {
	var all held
	s.control("GET", "accounts/"+demoAccount+"/snapshot", nil, &all)
	return all
}

func (s *standIn) checkBalance(r *rapid.T) {
	all := s.held(r)
	want, got := map[stripe.Currency]int64{}, map[stripe.Currency]int64{}
	captured, refunded, released := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, c := range all.Charges {
		if c.Status == "succeeded" && c.Captured {
			want[c.Currency] += c.AmountCaptured
			captured[c.ID] = c.AmountCaptured
		}
	}
	for _, x := range all.Refunds {
		switch {
		case x.BalanceTransaction == nil:
			released[x.Charge.ID] += x.Amount
		case x.Status != stripe.RefundStatusFailed:
			want[x.Currency] -= x.Amount
			refunded[x.Charge.ID] += x.Amount
		}
	}
	for _, c := range all.Charges {
		if c.AmountRefunded != released[c.ID]+refunded[c.ID] {
			r.Errorf("%s: amount_refunded %d, refunds %d and released %d", c.ID, c.AmountRefunded, refunded[c.ID], released[c.ID])
		}
		if c.Captured && c.Status == "succeeded" && released[c.ID] != c.Amount-c.AmountCaptured {
			r.Errorf("%s: released %d of %d, captured %d", c.ID, released[c.ID], c.Amount, c.AmountCaptured)
		}
	}
	for _, d := range all.Disputes {
		if d.Status != "won" {
			want[d.Currency] -= d.Amount
		}
	}
	for _, m := range all.Movements {
		got[m.Currency] += m.Amount
		if m.Net != m.Amount-m.Fee {
			r.Errorf("%s: net %d of %d with the fee %d", m.ID, m.Net, m.Amount, m.Fee)
		}
	}
	for currency, sum := range want {
		if got[currency] != sum {
			r.Errorf("the balance in %s is %d, want %d", currency, got[currency], sum)
		}
	}
	for id, sum := range refunded {
		if sum > captured[id] {
			r.Errorf("%s: %d refunded of %d", id, sum, captured[id])
		}
	}
}
