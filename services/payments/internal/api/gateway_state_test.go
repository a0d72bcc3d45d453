package api_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

func disputeOf(id string, status domain.DisputeStatus) domain.Dispute {
	return domain.Dispute{
		ID: "dp_" + id, Charge: "ch_1", Amount: money.Amount{Minor: 500, Currency: "USD"}, Reason: "fraudulent", Status: status,
		OpenedAt: time.Unix(1_700_000_000, 0).UTC(),
	}
}

// TestWaysOfADispute checks that each course of a dispute has one event for each beginning and each end, and none for changes in
// between. A dispute that ended before it was read has both events, and its intent is read with its disputes from then on.
func TestWaysOfADispute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for name, c := range map[string]struct{ statuses, want []string }{
		"under review":   {[]string{"needs_response", "under_review", "won"}, []string{"opened needs_response ", "closed won won"}},
		"ended unread":   {[]string{"won"}, []string{"opened needs_response ", "closed won won"}},
		"inquiry unread": {[]string{"warning_closed"}, []string{"opened needs_response ", "closed warning_closed withdrawn"}},
		"escalated": {
			[]string{"warning_needs_response", "warning_closed", "needs_response", "lost"},
			[]string{"opened warning_needs_response ", "closed warning_closed withdrawn", "opened needs_response ", "closed lost lost"},
		},
		"changed at its end": {[]string{"needs_response", "won", "won", "lost"}, []string{"opened needs_response ", "closed won won", "closed lost lost"}},
	} {
		p := w.paid(ctx, 1000)
		for i, status := range c.statuses {
			w.gateway.Change(p.ID, func(s *domain.Snapshot) {
				d := disputeOf(p.ID, domain.DisputeStatus(status))
				d.Amount.Minor += int64(i)
				s.DisputesRead, s.Disputes = true, []domain.Dispute{d}
			})
			w.refresh(ctx, p.ID)
		}
		var got []string
		for _, e := range w.Events() {
			var d struct{ Status, Outcome string }
			if kind, ok := strings.CutPrefix(e.GetType(), "dispute."); ok && e.GetObjectId() == "dp_"+p.ID {
				if err := json.Unmarshal(e.GetObject(), &d); err != nil {
					t.Fatal(err)
				}
				got = append(got, kind+" "+d.Status+" "+d.Outcome)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if !w.intent(ctx, p.ID).EverDisputed {
			t.Errorf("%s: its disputes are not read again", name)
		}
	}
}

// TestFailureAfterTheEnd checks that a failure that the gateway reports after the intent has ended has its event. The intent does
// not show it, nor do later events.
func TestFailureAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	declined := domain.Failure{Code: "card_declined", Message: "Your card was declined."}
	for name, report := range map[string]func(s *domain.Snapshot){
		"as the last state": func(s *domain.Snapshot) { s.Failure, s.FailedCharge = &declined, "ch_1" },
		"as an earlier one": func(s *domain.Snapshot) { s.Failed = []domain.FailedCharge{{ID: "ch_2", Failure: declined}} },
	} {
		p := w.post(ctx, w.booked(ctx, 100)).is(201).intent()
		w.do(ctx, "POST", "/payment-intents/"+p.ID+"/cancel", "").is(200)
		w.gateway.Change(p.ID, report)
		w.refresh(ctx, p.ID)
		if got := w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(200).intent(); got.Status != "canceled" || got.Failure != nil || got.Version != 3 {
			t.Errorf("%s: %+v", name, got)
		}
		last := w.Events()[len(w.Events())-1]
		var body struct {
			Status  string
			Failure *struct{ Code string }
		}
		if err := json.Unmarshal(last.GetObject(), &body); err != nil {
			t.Fatal(err)
		}
		if last.GetType() != "payment.failed" || body.Status != "canceled" || body.Failure == nil || body.Failure.Code != "card_declined" {
			t.Errorf("%s: %v", name, last)
		}
	}
}

// TestFailuresOfOneRead checks that the events of failures found in one read of the intent contain what each failure has changed.
func TestFailuresOfOneRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.post(ctx, w.booked(ctx, 100)).is(201).intent()
	first, second := domain.Failure{Code: "expired_card", Message: "Expired."}, domain.Failure{Code: "incorrect_cvc", Message: "Incorrect."}
	w.gateway.Change(p.ID, func(s *domain.Snapshot) {
		s.Charges, s.Failed = &domain.Walk{To: "ch_2"}, []domain.FailedCharge{{ID: "ch_1", Failure: first}, {ID: "ch_2", Failure: second}}
		s.Failure, s.FailedCharge = &second, "ch_2"
	})
	w.refresh(ctx, p.ID)
	var got []string
	for _, e := range w.emitted() {
		if e.GetType() == "payment.failed" {
			got = append(got, string(e.GetPreviousAttributes()))
		}
	}
	want := []string{`{"failure":null}`, `{"failure":{"code":"expired_card","decline_code":null,"message":"Expired."}}`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRefundElsewhereBehindAReserve checks that a refund by another program counts as soon as a refund of this platform releases
// its reserved amount, though the intent looks the same.
func TestRefundElsewhereBehindAReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	w.gateway.Dashboard(p.ID, 300)
	w.gateway.Before = func(_ context.Context, call string) error {
		if call == "refund" {
			w.refresh(ctx, p.ID) // the reserved 400 hide the 300
			return &domain.RefusedError{Failure: domain.Failure{Code: "charge_disputed", Message: "No."}}
		}
		return nil
	}
	w.refund(ctx, refundOf(p, `,"amount_minor":400`), key("a")).is(422, "payment_disputed")
	w.gateway.Before = nil
	w.refresh(ctx, p.ID)
	w.refund(ctx, refundOf(p, `,"amount_minor":500`), key("b")).is(201)
	w.refund(ctx, refundOf(p, `,"amount_minor":201`), key("c")).is(422)
	w.refund(ctx, refundOf(p, `,"amount_minor":200`), key("d")).is(201)
}

// TestStateAfterARefusedAction checks that an intent stays open if the gateway refuses an action and then does not report the state
// of the intent. The service's own error is returned unchanged.
func TestStateAfterARefusedAction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.post(ctx, w.booked(ctx, 100)).is(201).intent()
	w.gateway.Before = func(_ context.Context, call string) error {
		if call == "read" {
			return apperr.ErrUnavailable
		}
		return &domain.RefusedError{Failure: domain.Failure{Code: "payment_intent_unexpected_state", Message: "No."}}
	}
	w.do(ctx, "POST", "/payment-intents/"+p.ID+"/cancel", "").is(503)
	w.gateway.Before = nil
	if got := w.do(ctx, "GET", "/payment-intents/"+p.ID, "").is(200).intent(); got.Status != p.Status {
		t.Errorf("the intent is %s, and was %s", got.Status, p.Status)
	}
}

// TestRefusalWithADeclineCode checks that a refusal contains the bank's reason for the decline.
func TestRefusalWithADeclineCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	code := "do_not_honor"
	w.gateway.Before = func(context.Context, string) error {
		return &domain.RefusedError{Failure: domain.Failure{Code: "card_declined", DeclineCode: &code, Message: "Your card was declined."}}
	}
	if a := w.post(ctx, w.booked(ctx, 100)).is(502, "payment_intent_failed"); !strings.Contains(string(a.Body), "Your card was declined. (do_not_honor)") {
		t.Errorf("%s", a.Body)
	}
}
