package domain_test

import (
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/services/payments/internal/domain"
)

// TestEntriesBalance checks that the entries of a movement add up to 0 in each currency, regardless of its fees and conversion. The
// gateway's balance increases by the amount after the fee, and the payer's side is the paid amount. No two entries have the same
// account and currency.
func TestEntriesBalance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]string{"USD", "EUR", "KWD"})
		m := domain.Movement{
			Amount: rapid.Int64Range(-1e11, 1e11).Draw(t, "amount"), Fee: rapid.Int64Range(-1e6, 1e6).Draw(t, "fee"), Currency: code.Draw(t, "currency"),
			Paid: rapid.Int64Range(-1e11, 1e11).Draw(t, "paid"), PaidCurrency: code.Draw(t, "paid currency"),
		}
		if m.Currency == m.PaidCurrency {
			m.Paid = m.Amount
		}
		sums, seen := map[string]int64{}, map[domain.Entry]bool{}
		for _, e := range m.Entries() {
			sums[e.Currency] += e.Amount
			key := domain.Entry{Account: e.Account, Currency: e.Currency}
			if seen[key] {
				t.Errorf("two entries of %v", key)
			}
			seen[key] = true
			switch {
			case e.Account == domain.GatewayBalance && (e.Amount != m.Amount-m.Fee || e.Currency != m.Currency):
				t.Errorf("balance %v of %+v", e, m)
			case e.Account == domain.Payments && (e.Amount != -m.Paid || e.Currency != m.PaidCurrency):
				t.Errorf("payments %v of %+v", e, m)
			}
		}
		for code, sum := range sums {
			if sum != 0 {
				t.Errorf("%s: %d of %+v", code, sum, m)
			}
		}
	})
}

func TestDisputeStates(t *testing.T) {
	t.Parallel()
	for status, want := range map[domain.DisputeStatus]struct {
		open, holds bool
		outcome     string
	}{
		"warning_needs_response": {true, true, ""}, "warning_under_review": {true, true, ""}, "needs_response": {true, true, ""},
		"under_review": {true, true, ""}, "won": {false, false, "won"}, "lost": {false, true, "lost"},
		"warning_closed": {false, false, "withdrawn"}, "charge_refunded": {false, false, "withdrawn"}, "prevented": {false, false, "withdrawn"},
	} {
		if status.Open() != want.open || status.Holds() != want.holds || status.Outcome() != want.outcome {
			t.Errorf("%s: %v %v %q", status, status.Open(), status.Holds(), status.Outcome())
		}
	}
}
