package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

// TestApply checks that the gateway's reports change an intent until it has ended, and that the received amount never decreases.
func TestApply(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	earlier := now.Add(-time.Hour)
	failure := &domain.Failure{Code: "x"}
	p := domain.Intent{Status: domain.RequiresCapture, Received: 5, Refunded: 3, Capturable: 7, EverDisputed: true}
	got := p.Apply(domain.Snapshot{Status: domain.Processing, Received: 4, Refunded: 2, Failure: failure, Capturable: 9}, now)
	if got.Received != 5 || got.Refunded != 3 || got.Status != domain.Processing || got.Capturable != 9 || got.Failure != failure || !got.EverDisputed {
		t.Errorf("open: %+v", got)
	}
	got = p.Apply(domain.Snapshot{Status: domain.Succeeded, Failure: failure, Capturable: 9}, now)
	if got.Failure != nil || got.Capturable != 0 {
		t.Errorf("succeeded: %+v", got)
	}
	if got = got.Apply(domain.Snapshot{Status: domain.Processing}, now); got.Status != domain.Succeeded {
		t.Errorf("after its end: %s", got.Status)
	}
	if got = p.Apply(domain.Snapshot{Status: domain.Canceled}, now); got.CanceledAt == nil || !got.CanceledAt.Equal(now) || got.Capturable != 0 {
		t.Errorf("cancelled: %+v", got)
	}
	if got = p.Apply(domain.Snapshot{Status: domain.Canceled, CanceledAt: &earlier}, now); got.CanceledAt != &earlier {
		t.Errorf("cancelled at %v", got.CanceledAt)
	}
	won, lost := []domain.Dispute{{Status: domain.DisputeWon}}, []domain.Dispute{{Status: domain.DisputeLost}}
	if got = (domain.Intent{}).Apply(domain.Snapshot{DisputesRead: true, Disputes: won}, now); got.Disputed || !got.EverDisputed {
		t.Errorf("won: %+v", got)
	}
	if got = (domain.Intent{Disputed: true}).Apply(domain.Snapshot{DisputesRead: true}, now); got.Disputed || got.EverDisputed {
		t.Errorf("no dispute: %+v", got)
	}
	if got = (domain.Intent{}).Apply(domain.Snapshot{Disputes: lost}, now); got.Disputed {
		t.Errorf("disputes that were not read: %+v", got)
	}
}

// TestApplyRead checks that a numbered read can decrease the refunded amount, and that a read that is continued later changes no
// state.
func TestApplyRead(t *testing.T) {
	t.Parallel()
	p := domain.Intent{Status: domain.Succeeded, Refunded: 9, RefundReserved: 2}
	walk := &domain.Walk{To: "x"}
	got := p.ApplyRead(domain.Snapshot{Status: domain.Succeeded, Refunded: 5, Charges: walk, Refunds: walk}, 4, time.Now())
	if got.Applied != 4 || got.Refunded != 5 || got.RefundedElsewhere != 3 || got.Charges != *walk || got.Refunds != *walk {
		t.Errorf("%+v", got)
	}
	if got = p.ApplyRead(domain.Snapshot{Refunded: 1}, 4, time.Now()); got.RefundedElsewhere != 0 {
		t.Errorf("less than is reserved: %+v", got)
	}
	if got = p.ApplyRead(domain.Snapshot{More: true, Refunded: 1, Charges: walk}, 4, time.Now()); got.Refunded != 9 || got.Charges != *walk || got.Refunds != (domain.Walk{}) {
		t.Errorf("more follows: %+v", got)
	}
}

func TestFailedCharges(t *testing.T) {
	t.Parallel()
	failure, read := &domain.Failure{Code: "x"}, []domain.FailedCharge{{ID: "ch_1"}, {ID: "ch_2"}}
	for name, c := range map[string]struct {
		snapshot domain.Snapshot
		want     int
	}{
		"the last one":          {domain.Snapshot{FailedCharge: "ch_1", Failure: failure, Failed: read}, 1},
		"without a charge":      {domain.Snapshot{Failure: failure, Failed: read}, 2},
		"without a failure":     {domain.Snapshot{FailedCharge: "ch_1", Failed: read}, 2},
		"the charges were read": {domain.Snapshot{FailedCharge: "ch_1", Failure: failure, Charges: &domain.Walk{}, Failed: read}, 2},
	} {
		if got := c.snapshot.FailedCharges(); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	charge := domain.FailedCharge{ID: "ch_1"}
	if p := (domain.Intent{Status: domain.Processing, Capturable: 5}).Fail(charge); p.Status != domain.RequiresPaymentMethod || p.Capturable != 0 {
		t.Errorf("open: %+v", p)
	}
	if p := (domain.Intent{Status: domain.Succeeded}).Fail(charge); p.Status != domain.Succeeded || p.FailedCharge != "ch_1" {
		t.Errorf("succeeded: %+v", p)
	}
}

func TestTimesOfACall(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	c := domain.Call{}.Begin(now)
	until := now.Add(30 * time.Second)
	if c.Attempt != 1 || !c.Since.Equal(now) || !c.Held(until.Add(-1)) || c.Held(until) || (domain.Call{}).Held(now) {
		t.Errorf("first attempt: %+v", c)
	}
	if again := c.Begin(now.Add(time.Hour)); again.Attempt != 2 || !again.Since.Equal(now) || !again.AttemptedAt.Equal(now.Add(time.Hour)) {
		t.Errorf("second attempt: %+v", again)
	}
	if again := c.Resume(until); !again.Held(until.Add(30*time.Second - 1)) {
		t.Errorf("resumed: %+v", again)
	}
	if at := now.Add(23 * time.Hour); c.Forgotten(at.Add(-1)) || !c.Forgotten(at) {
		t.Error("the gateway may have forgotten a call after 23 hours")
	}
	if at := now.Add(72 * time.Hour); c.ShouldGiveUp(at.Add(-1)) || !c.ShouldGiveUp(at) {
		t.Error("a call is given up after three days")
	}
	for age, want := range map[time.Duration]time.Duration{0: time.Second, 10 * time.Second: 5 * time.Second, time.Hour: time.Minute} {
		if got := domain.Pause(now.Add(-age), now); got != want {
			t.Errorf("pause after %v: %v", age, got)
		}
	}
	a := domain.Allocation{AttemptedAt: now}
	if at := now.Add(23 * time.Hour); a.Forgotten(at.Add(-1)) || !a.Forgotten(at) {
		t.Error("the gateway may have forgotten a refund after 23 hours")
	}
	r := domain.Refund{}.Resume(now)
	if !r.Lease.Held(until.Add(-1)) || r.Lease.Held(until) || (domain.Refund{}).Lease.Held(now) {
		t.Errorf("refund: %v", r.Lease.Until)
	}
}

// TestAmountOfAnIntent checks that the amount of an intent is at most the amount due. A booking without a price requires an amount.
func TestAmountOfAnIntent(t *testing.T) {
	t.Parallel()
	id := ids.New[ids.BookingPrefix]()
	for name, c := range map[string]struct{ total, due, amount, want int64 }{
		"what is due":             {300, 200, 0, 200},
		"exactly what is due":     {300, 200, 200, 200},
		"more than is due":        {300, 200, 201, 0},
		"paid":                    {300, 0, 1, 0},
		"no price, no amount":     {0, 0, 0, 0},
		"no price, an amount":     {0, 0, 5, 5},
		"the largest":             {1e9, domain.MaxAmount, 0, domain.MaxAmount},
		"more than one can take":  {1e9, domain.MaxAmount + 1, 0, 0},
		"a part of what is large": {1e9, domain.MaxAmount + 1, domain.MaxAmount, domain.MaxAmount},
	} {
		in := domain.IntentInput{}
		if c.amount > 0 {
			in.Amount = &c.amount
		}
		p, err := domain.NewIntent(in, domain.Booking{
			ID: id, Status: "confirmed", Total: money.Amount{Minor: c.total, Currency: "USD"}, Due: money.Amount{Minor: c.due, Currency: "USD"},
		}, nil)
		if p.Amount.Minor != c.want || (err == nil) != (c.want > 0) || err == nil && p.CaptureMethod != domain.CaptureAutomatic {
			t.Errorf("%s: %+v, %v", name, p.Amount, err)
		}
	}
	p := domain.Intent{Capturable: 20, Amount: money.Amount{Currency: "KWD"}}
	if p.CheckCapture(20) != nil || p.CheckCapture(30) == nil || p.CheckCapture(15) == nil {
		t.Error("a capture is of what is authorised, in units of the gateway")
	}
}

// TestSameDispute checks that two reports of a dispute are the same if everything that the gateway reports is equal, with times
// compared as instants.
func TestSameDispute(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	same, other := now.In(time.FixedZone("", 3600)), now.Add(1)
	d := domain.Dispute{Charge: "ch_1", Amount: money.Amount{Minor: 1}, Reason: "x", Status: "won", DueBy: &now}
	change := func(f func(*domain.Dispute)) domain.Dispute {
		o := d
		f(&o)
		return o
	}
	if !d.Same(change(func(d *domain.Dispute) { d.DueBy = &same })) || !(domain.Dispute{}).Same(domain.Dispute{}) {
		t.Error("the same dispute differs")
	}
	for _, o := range []domain.Dispute{
		change(func(d *domain.Dispute) { d.Charge = "" }), change(func(d *domain.Dispute) { d.Amount.Minor = 2 }), change(func(d *domain.Dispute) { d.Reason = "" }),
		change(func(d *domain.Dispute) { d.Status = "lost" }), change(func(d *domain.Dispute) { d.DueBy = nil }), change(func(d *domain.Dispute) { d.DueBy = &other }),
	} {
		if d.Same(o) || o.Same(d) {
			t.Errorf("%+v is the same", o)
		}
	}
}
