package main

import (
	"slices"
	"sync"
	"testing"

	"github.com/stripe/stripe-go/v76"
)

func TestRefunds(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API, "charge.*", "refund.*")
	pi := s.pay(1000, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	p := &stripe.RefundParams{PaymentIntent: &pi.ID, Amount: stripe.Int64(300), Reason: stripe.String("requested_by_customer")}
	p.AddMetadata("refund_id", "rf_1")
	r, err := s.Refunds.New(p)
	if err != nil || r.Status != stripe.RefundStatusSucceeded || r.Amount != 300 || r.Charge.ID != pi.LatestCharge.ID || r.Metadata["refund_id"] != "rf_1" {
		t.Fatalf("%+v %v", r, err)
	}
	_, err = s.Refunds.New(&stripe.RefundParams{PaymentIntent: &pi.ID, Amount: stripe.Int64(701)})
	if e := refused(t, err, 400, ""); e.Param != "amount" {
		t.Errorf("%+v", e)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range 20 {
		wait.Go(func() {
			if _, err := s.Refunds.New(&stripe.RefundParams{PaymentIntent: &pi.ID, Amount: stripe.Int64(100)}); err == nil {
				mu.Lock()
				done++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if done != 7 {
		t.Errorf("%d refunds of 100, want 7", done)
	}
	_, err = s.Refunds.New(&stripe.RefundParams{PaymentIntent: &pi.ID})
	refused(t, err, 400, "charge_already_refunded")
	if c := s.charge(pi.ID); !c.Refunded || c.AmountRefunded != 1000 || len(c.Refunds.Data) != 8 || c.Refunds.Data[0].BalanceTransaction.Net != -100 {
		t.Errorf("%+v", c)
	}
	n := 0
	for it := s.Refunds.List(&stripe.RefundListParams{PaymentIntent: &pi.ID}); it.Next(); {
		n++
	}
	if n != 8 {
		t.Errorf("%d refunds listed", n)
	}
	until(t, "8 events of refunds", func() bool {
		return len(slices.DeleteFunc(events.types(t, pi.ID), func(kind string) bool { return kind != "charge.refunded" })) == 8
	})
}

// TestRefundsThatEndLater checks that the money of a refund that fails later returns to the balance, and that a pending refund
// succeeds.
func TestRefundsThatEndLater(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API, "charge.refund.updated")
	for method, want := range map[string][2]stripe.RefundStatus{
		"pm_card_refundFail":    {stripe.RefundStatusSucceeded, stripe.RefundStatusFailed},
		"pm_card_pendingRefund": {stripe.RefundStatusPending, stripe.RefundStatusSucceeded},
	} {
		pi := s.pay(1000, "eur", method, stripe.PaymentIntentStatusSucceeded)
		r, err := s.Refunds.New(&stripe.RefundParams{PaymentIntent: &pi.ID})
		if err != nil || r.Status != want[0] {
			t.Fatalf("%s: %+v %v", method, r, err)
		}
		until(t, method, func() bool {
			r, err = s.Refunds.Get(r.ID, nil)
			return err == nil && r.Status == want[1]
		})
		if failed := want[1] == stripe.RefundStatusFailed; failed != (r.FailureBalanceTransaction != nil) {
			t.Errorf("%s: %+v", method, r)
		}
		until(t, "its event", func() bool { return len(events.types(t, pi.ID)) == 1 })
	}
}

func TestDisputes(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config) { c.FeeDispute, c.FeeBasisPoints, c.FeeFixed = 1500, 290, 30 })
	events := s.receive(s.API, "charge.dispute.*")
	disputed := func() *stripe.Dispute {
		pi := s.pay(10000, "usd", "pm_card_createDispute", stripe.PaymentIntentStatusSucceeded)
		var d *stripe.Dispute
		until(t, "a dispute", func() bool {
			it := s.Disputes.List(&stripe.DisputeListParams{PaymentIntent: &pi.ID})
			if it.Next() {
				d = it.Dispute()
			}
			return d != nil
		})
		return d
	}
	d := disputed()
	if d.Status != "needs_response" || d.Amount != 10000 || len(d.BalanceTransactions) != 1 || d.BalanceTransactions[0].Net != -11500 {
		t.Errorf("%+v", d)
	}
	_, err := s.Refunds.New(&stripe.RefundParams{PaymentIntent: &d.PaymentIntent.ID})
	refused(t, err, 400, "charge_disputed")
	s.control("POST", "disputes/"+d.ID+"/close", map[string]string{"outcome": "won"}, nil)
	if d, err = s.Disputes.Get(d.ID, nil); err != nil || d.Status != "won" || len(d.BalanceTransactions) != 2 {
		t.Errorf("%+v %v", d, err)
	}
	want := []string{"charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.closed", "charge.dispute.funds_reinstated"}
	until(t, "the events", func() bool { return slices.Equal(events.types(t, d.PaymentIntent.ID), want) })
	if _, err := s.Refunds.New(&stripe.RefundParams{PaymentIntent: &d.PaymentIntent.ID}); err != nil {
		t.Errorf("a refund after a won dispute: %v", err)
	}

	d = disputed()
	s.control("POST", "disputes/"+d.ID+"/close", map[string]string{"outcome": "lost"}, nil)
	if d, err = s.Disputes.Get(d.ID, nil); err != nil || d.Status != "lost" {
		t.Errorf("%+v %v", d, err)
	}
	pi := s.pay(1000, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	c := s.charge(pi.ID)
	if c.BalanceTransaction.Type != "charge" || c.BalanceTransaction.Fee != 59 || c.BalanceTransaction.Net != 941 || c.BalanceTransaction.FeeDetails[0].Amount != 59 {
		t.Errorf("%+v", c.BalanceTransaction)
	}
	s.control("POST", "charges/"+c.ID+"/dispute", map[string]any{"amount": 400}, d)
	if d.Amount != 400 || d.BalanceTransactions[0].Net != -1900 {
		t.Errorf("%+v", d)
	}
}

// TestInquiriesAndDroppedEvents checks that an inquiry withdraws no money and does not appear in the charge, and that dropped
// events are not sent.
func TestInquiriesAndDroppedEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API, "charge.dispute.*")
	pi := s.pay(1000, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	var d stripe.Dispute
	s.control("POST", "charges/"+pi.LatestCharge.ID+"/dispute", map[string]any{"inquiry": true}, &d)
	if c := s.charge(pi.ID); d.Status != "warning_needs_response" || len(d.BalanceTransactions) != 0 || c.Disputed {
		t.Errorf("%+v %+v", d, c)
	}
	until(t, "the event", func() bool { return slices.Equal(events.types(t, pi.ID), []string{"charge.dispute.created"}) })
	s.control("POST", "events", map[string]any{"dropped": true}, nil)
	s.control("POST", "disputes/"+d.ID+"/close", map[string]string{"outcome": "warning_closed"}, &d)
	s.control("POST", "events", map[string]any{}, nil)
	second := s.pay(1000, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	s.control("POST", "charges/"+second.LatestCharge.ID+"/dispute", map[string]any{"inquiry": true}, nil)
	until(t, "the next event", func() bool { return len(events.types(t, second.ID)) == 1 })
	if got := events.types(t, pi.ID); d.Status != "warning_closed" || len(got) != 1 {
		t.Errorf("%+v, and the events %v", d, got)
	}
	list := s.Events.List(&stripe.EventListParams{Types: stripe.StringSlice([]string{"charge.dispute.closed"})})
	if !list.Next() || list.Event().Data.Object["id"] != d.ID {
		t.Errorf("the dropped event is not listed: %v", list.Err())
	}
}
