package api_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
)

// manyObjects returns how many charges or refunds an intent has in these tests.
func manyObjects() int {
	if os.Getenv("TEST_SCALE") == "full" {
		return 5000
	}
	return 1030
}

// interrupted is a gateway that counts reads. Every fifth read fails, as if a process crashed.
type interrupted struct {
	app.Gateway

	reads atomic.Int64
}

func (g *interrupted) Read(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	if g.reads.Add(1)%5 == 0 {
		return domain.Snapshot{}, errors.New("the process has crashed")
	}
	return g.Gateway.Read(ctx, a, p)
}

// slowly makes each call of the stand-in take 30 ms, and limits a call to 300 ms, so that fewer than 10 pages fit into one.
func (w *world) slowly() *interrupted {
	w.T.Helper()
	gateway := &interrupted{}
	w.standIn.control("latency", map[string]any{"latency": "30ms"}, nil)
	w.standIn.stripe = peers.NewStripe(w.standIn.url, 300*time.Millisecond, 64)
	w.around = func(g app.Gateway) app.Gateway {
		gateway.Gateway = g
		return gateway
	}
	w.engine = w.serve(w.DB.App)
	return gateway
}

// readAll reads an intent repeatedly until that succeeds, and returns the number of reads of the gateway.
func (w *world) readAll(ctx context.Context, account domain.Account, gateway *interrupted, id string) (reads int64) {
	w.T.Helper()
	before := gateway.reads.Load()
	for range 100 {
		_, err := w.intents.Refresh(ctx, account, w.intent(ctx, id))
		if err == nil {
			return gateway.reads.Load() - before
		}
		w.T.Log(err)
	}
	w.T.Fatalf("%s cannot be read", id)
	return 0
}

// TestThousandsOfFailedCharges checks an intent with thousands of failed charges whose events were lost. They are read page by
// page, each page once even if reads are interrupted, and their events are in order. Later charges cost no more than usual.
func TestThousandsOfFailedCharges(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	n := manyObjects()
	declines := []struct{ method, failure string }{
		{"pm_card_chargeDeclinedExpiredCard", "expired_card "},
		{"pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc "},
		{"pm_card_chargeDeclinedProcessingError", "processing_error "},
	}
	p := w.post(ctx, w.booked(ctx, 10_000)).is(201).intent()
	confirm := func(method string) {
		t.Helper()
		form := url.Values{"payment_method": {method}, "return_url": {"https://example.com"}}
		if status := w.standIn.call("POST", "/v1/payment_intents/"+p.ID+"/confirm", form, nil); status != 200 && status != 402 {
			t.Fatalf("%d", status)
		}
	}
	for i := range n {
		confirm(declines[i%7%3].method)
	}
	gateway := w.slowly()
	pages := int64(n+99) / 100
	if reads := w.readAll(ctx, account, gateway, p.ID); reads > 2*(2*pages+1) {
		t.Errorf("%d reads for %d pages", reads, pages)
	}
	check := func(n int) {
		t.Helper()
		failures := w.failures(p.ID)
		if len(failures) != n {
			t.Fatalf("%d events of failures, want %d", len(failures), n)
		}
		for i, one := range failures {
			if want := "requires_payment_method " + declines[i%7%3].failure; one != want {
				t.Fatalf("failure %d is %q, want %q", i, one, want)
			}
		}
	}
	check(n)
	confirm(declines[n%7%3].method)
	if reads := w.readAll(ctx, account, gateway, p.ID); reads > 2 {
		t.Errorf("%d reads for one more charge", reads)
	}
	check(n + 1)
	confirm("pm_card_visa")
	if reads := w.readAll(ctx, account, gateway, p.ID); reads > 2 {
		t.Errorf("%d reads for a payment", reads)
	}
	w.standIn.control("latency", map[string]any{"latency": "0s"}, nil)
	if got := w.intent(ctx, p.ID); got.Status != domain.Succeeded || got.Received != 10_000 {
		t.Errorf("%+v", got)
	}
	if err := w.balances(ctx, account); err != nil {
		t.Error(err)
	}
}

// TestThousandsOfRefunds checks an intent with thousands of refunds that another program created. All of them are written to the
// ledger, and each page is read once even if reads are interrupted. A further refund, or the failure of one that was read long ago,
// costs no more than usual. A refund of this platform is searched for among those created since its attempt.
func TestThousandsOfRefunds(t *testing.T) {
	t.Parallel()
	w, ctx, account := withStandIn(t)
	n := manyObjects()
	p, _ := w.payAt(ctx, "USD", 10_000, "", "pm_card_refundFail")
	var created []string
	refund := func() {
		t.Helper()
		var r struct{ ID string }
		if status := w.standIn.call("POST", "/v1/refunds", url.Values{"payment_intent": {p.ID}, "amount": {"1"}}, &r); status != 200 {
			t.Fatalf("%d", status)
		}
		created = append(created, r.ID)
	}
	for range n {
		refund()
	}
	gateway := w.slowly()
	pages := int64(n+99) / 100
	if reads := w.readAll(ctx, account, gateway, p.ID); reads > 2*(2*pages+1) {
		t.Errorf("%d reads for %d pages", reads, pages)
	}
	agree := func() {
		t.Helper()
		w.standIn.control("latency", map[string]any{"latency": "0s"}, nil)
		if err := w.balances(ctx, account); err != nil {
			t.Error(err)
		}
		w.standIn.control("latency", map[string]any{"latency": "30ms"}, nil)
	}
	agree()
	refund()
	if reads := w.readAll(ctx, account, gateway, p.ID); reads > 2 {
		t.Errorf("%d reads for one more refund", reads)
	}
	agree()
	w.standIn.control("refunds/"+created[3]+"/finish", map[string]any{"outcome": "failed"}, nil)
	before := gateway.reads.Load()
	w.deliver(account, p, "charge.refund.updated "+created[3])
	w.ahead.Add(int64(time.Hour)) // an interrupted read is due again
	w.work()
	if reads := gateway.reads.Load() - before; reads > 4 {
		t.Errorf("%d reads for a refund that has failed", reads)
	}
	agree()
	if got := w.intent(ctx, p.ID); got.Refunded != int64(n) {
		t.Errorf("%d refunded, want %d", got.Refunded, n)
	}
	part := domain.Allocation{ID: ids.New[domain.AllocationPrefix](), Intent: domain.GatewayID(p.ID)}
	if found, err := w.standIn.stripe.FindRefund(ctx, account, part, time.Now().Add(-time.Hour)); err != nil || found != nil {
		t.Errorf("%+v, %v", found, err)
	}
	form := url.Values{"payment_intent": {p.ID}, "amount": {"1"}, "metadata[holdfast_refund]": {part.ID.String()}}
	w.standIn.call("POST", "/v1/refunds", form, nil)
	found, err := w.standIn.stripe.FindRefund(ctx, account, part, time.Now())
	if err != nil || found == nil || found.Row != part.ID.String() {
		t.Errorf("%+v, %v", found, err)
	}
}
