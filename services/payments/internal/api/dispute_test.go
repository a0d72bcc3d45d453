package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
)

// disputeEvents returns the emitted events of disputes, as type, status and outcome.
func (w *world) disputeEvents() (list []string) {
	w.T.Helper()
	for _, e := range w.Events() {
		if !strings.HasPrefix(e.GetType(), "dispute.") {
			continue
		}
		var d internalapi.Dispute
		if err := json.Unmarshal(e.GetObject(), &d); err != nil || d.ID != e.GetObjectId() || !e.GetInternal() {
			w.T.Errorf("%v, %v", e, err)
		}
		list = append(list, fmt.Sprintf("%s v%d %s %s %d %s", e.GetType(), e.GetResourceVersion(), d.Status, d.Outcome, d.Amount, d.Currency))
	}
	return list
}

// disputed returns the values of disputed in the events of an intent, in order.
func (w *world) disputed(id string) (list []bool) {
	w.T.Helper()
	for _, e := range w.Events() {
		if e.GetObjectId() == id {
			var body struct{ Disputed bool }
			if err := json.Unmarshal(e.GetObject(), &body); err != nil {
				w.T.Fatal(err)
			}
			list = append(list, body.Disputed)
		}
	}
	return slices.Compact(list)
}

// TestDisputes checks that an intent shows a dispute while it is open, and permanently after it is lost. It shows an inquiry until
// the inquiry is closed. Each has an event when it begins and one when it ends, and is counted once, however often the gateway
// reports it.
func TestDisputes(t *testing.T) {
	t.Parallel()
	for outcome, c := range map[string]struct {
		inquiry bool
		shown   []bool
		events  []string
	}{
		"won": {shown: []bool{false, true, false}, events: []string{
			"dispute.opened v1 needs_response  7000 KWD", "dispute.closed v2 won won 7000 KWD",
		}},
		"lost": {shown: []bool{false, true}, events: []string{
			"dispute.opened v1 needs_response  7000 KWD", "dispute.closed v2 lost lost 7000 KWD",
		}},
		"warning_closed": {inquiry: true, shown: []bool{false, true, false}, events: []string{
			"dispute.opened v1 warning_needs_response  7000 KWD", "dispute.closed v2 warning_closed withdrawn 7000 KWD",
		}},
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			w, ctx, account := withStandIn(t)
			p, charge := w.payAt(ctx, "KWD", 10_000, "", "pm_card_visa")
			w.deliver(account, p, "payment_intent.succeeded")
			var d struct{ ID string }
			w.standIn.control("charges/"+charge+"/dispute", map[string]any{"reason": "fraudulent", "amount": 7000, "inquiry": c.inquiry}, &d)
			w.deliver(account, p, "charge.dispute.created dp", "charge.dispute.updated dp")
			w.deliver(account, p, "payment_intent.succeeded") // later events without a dispute do not hide it
			w.standIn.control("disputes/"+d.ID+"/close", map[string]any{"outcome": outcome}, nil)
			for _, events := range [][]string{{"charge.updated ch"}, {"charge.dispute.closed dp", "charge.dispute.created dp"}} { // any read finds the end of the dispute
				w.deliver(account, p, events...)
				if got := w.disputeEvents(); !slices.Equal(got, c.events) {
					t.Errorf("%q", got)
				}
			}
			if got := w.disputed(p.ID); !slices.Equal(got, c.shown) {
				t.Errorf("%v", got)
			}
			want := "# HELP payment_disputes_opened_total Disputes opened by payers.\n# TYPE payment_disputes_opened_total counter\npayment_disputes_opened_total 1\n" +
				"# HELP payment_disputes_closed_total Closed disputes, by outcome: won, lost or withdrawn.\n# TYPE payment_disputes_closed_total counter\n"
			for _, one := range domain.DisputeOutcomes {
				n := 0
				if one == domain.DisputeStatus(outcome).Outcome() {
					n = 1
				}
				want += fmt.Sprintf("payment_disputes_closed_total{outcome=%q} %d\n", one, n)
			}
			if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(want), "payment_disputes_opened_total", "payment_disputes_closed_total"); err != nil {
				t.Error(err)
			}
			if n := w.Count(`select count(*) from disputes where closed_at is not null and status = '` + outcome + `'`); n != 1 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

// TestDisputeThatHasEnded checks that a dispute that ended before its first event is read has an opening event and a closing event.
func TestDisputeThatHasEnded(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, charge := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa")
	var d struct{ ID string }
	w.standIn.control("charges/"+charge+"/dispute", map[string]any{}, &d)
	w.standIn.control("disputes/"+d.ID+"/close", map[string]any{"outcome": "lost"}, nil)
	w.deliver(account, p, "charge.dispute.created dp", "payment_intent.succeeded", "charge.dispute.closed dp")
	want := []string{"dispute.opened v1 needs_response  10000 USD", "dispute.closed v2 lost lost 10000 USD"}
	if got := w.disputeEvents(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
}

// failures returns the events payment.failed of an intent: the code of their failure, and their version.
func (w *world) failures(id string) (list []string) {
	w.T.Helper()
	last := int64(0)
	for _, e := range w.Events() {
		if e.GetObjectId() != id {
			continue
		}
		if e.GetResourceVersion() <= last {
			w.T.Errorf("version %d comes after %d", e.GetResourceVersion(), last)
		}
		last = e.GetResourceVersion()
		var body struct {
			Status  string
			Failure *struct {
				Code        string
				DeclineCode string `json:"decline_code"`
			}
		}
		if err := json.Unmarshal(e.GetObject(), &body); err != nil {
			w.T.Fatal(err)
		}
		if e.GetType() == "payment.failed" {
			list = append(list, body.Status+" "+body.Failure.Code+" "+body.Failure.DeclineCode)
		} else if e.GetType() == "payment.succeeded" {
			list = append(list, body.Status)
		}
	}
	return list
}

// TestEachFailedChargeIsReported checks that each failed charge emits one payment.failed with its own reason, in order, including
// charges that failed between two reads.
func TestEachFailedChargeIsReported(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_visa_chargeDeclinedInsufficientFunds")
	w.standIn.confirm(p.ID, "pm_card_visa_chargeDeclinedExpiredCard")
	w.deliver(account, p, "payment_intent.payment_failed", "charge.failed ch")
	want := []string{"requires_payment_method card_declined insufficient_funds", "requires_payment_method expired_card "}
	if got := w.failures(p.ID); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	w.standIn.confirm(p.ID, "pm_card_visa_chargeDeclinedLostCard")
	w.standIn.confirm(p.ID, "pm_card_visa_chargeDeclinedLostCard")
	w.standIn.confirm(p.ID, "pm_card_visa")
	atOnce(4, func(int) {
		row, err := storeIntent(ctx, w, p.ID)
		if err == nil {
			_, err = w.intents.Refresh(ctx, account, row)
		}
		if err != nil {
			t.Error(err)
		}
	})
	w.deliver(account, p, "payment_intent.payment_failed", "charge.failed ch", "payment_intent.succeeded")
	want = append(want, "requires_payment_method card_declined lost_card", "requires_payment_method card_declined lost_card", "succeeded")
	if got := w.failures(p.ID); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
}
