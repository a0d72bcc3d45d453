package consume_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/page"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// intent is a payment intent as it passes through its states.
type intent struct {
	id, booking, invoice, currency string
	version, received, refunded    int64
	disputed                       bool
}

func (w *till) intent(booking domain.BookingID) *intent {
	return &intent{id: newID("pi"), booking: booking.String(), currency: "USD"}
}

// nextEvent returns the next event of the intent.
func (w *till) nextEvent(i *intent, change func(i *intent)) kafkax.Message {
	w.T.Helper()
	change(i)
	i.version++
	kind, succeeded, invoice := "payment_intent.updated", "null", "null"
	if i.received > 0 {
		kind, succeeded = "payment.succeeded", `"2030-01-01T00:00:00Z"`
	}
	if i.invoice != "" {
		invoice = fmt.Sprintf("%q", i.invoice)
	}
	m := w.message(i.id, kind, i.version, fmt.Sprintf(
		`{"id":%q,"booking_id":%q,"invoice_id":%s,"currency":%q,"amount_received":%d,"amount_refunded":%d,"disputed":%v,"succeeded_at":%s,"receipt_email":"a secret"}`,
		i.id, i.booking, invoice, i.currency, i.received, i.refunded, i.disputed, succeeded))
	m.Topic = "payments"
	return m
}

func taken(amount int64) func(*intent)    { return func(i *intent) { i.received = amount } }
func returned(amount int64) func(*intent) { return func(i *intent) { i.refunded = amount } }
func disputed(is bool) func(*intent)      { return func(i *intent) { i.disputed = is } }

// TestPaymentStatesByCard checks that events of payment intents lead to each payment state of a booking, and that the list finds
// the booking by it.
func TestPaymentStatesByCard(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	for _, tc := range []struct {
		state    domain.PaymentStatus
		received []int64
		refunded []int64
	}{
		{domain.Unpaid, nil, nil},
		{domain.Unpaid, []int64{0}, nil}, // created but not paid
		{domain.PartiallyPaid, []int64{299}, nil},
		{domain.DepositPaid, []int64{300}, nil},
		{domain.DepositPaid, []int64{100, 200}, nil},
		{domain.Paid, []int64{300, 700}, nil},
		{domain.Overpaid, []int64{1000, 1000}, nil},
		{domain.PartiallyRefunded, []int64{1000}, []int64{1}},
		{domain.PartiallyRefunded, []int64{1000, 1000}, []int64{1000, 999}},
		{domain.Refunded, []int64{300}, []int64{300}},
		{domain.Refunded, []int64{1000, 1000}, []int64{1000, 1000}},
	} {
		id := w.book()
		for n, amount := range tc.received {
			i := w.intent(id)
			w.handle(w.nextEvent(i, taken(amount)))
			if n < len(tc.refunded) {
				w.handle(w.nextEvent(i, returned(tc.refunded[n])))
			}
		}
		if b := w.get(id); string(b.PaymentStatus) != string(tc.state) {
			t.Errorf("received %v, refunded %v: %s, want %s", tc.received, tc.refunded, b.PaymentStatus, tc.state)
		}
		found, err := store.Bookings(w.ctx, w.DB.App.Read(w.ctx), store.BookingFilter{PaymentStatus: []domain.PaymentStatus{tc.state}}, page.Request{Limit: 1})
		if err != nil || len(found.Items) != 1 || found.Items[0].ID != id {
			t.Errorf("the list of %s begins with %v, %v", tc.state, found.Items, err)
		}
	}
}

// TestRefundedAndDisputed checks that refunds and disputes are stored with the booking, increment its version once, and emit one
// event.
func TestRefundedAndDisputed(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	i := w.intent(id)
	w.handle(w.nextEvent(i, taken(1000)))
	w.is(id, "confirmed", 1000, "paid", 2)
	w.handle(w.nextEvent(i, returned(400)))
	w.is(id, "confirmed", 1000, "partially_refunded", 3)
	w.handle(w.nextEvent(i, returned(400))) // only data that bookings does not show has changed
	w.is(id, "confirmed", 1000, "partially_refunded", 3)
	late := *i
	w.handle(w.nextEvent(i, disputed(true)))
	w.is(id, "confirmed", 1000, "partially_refunded", 4)
	if b := w.get(id); !b.Disputed || b.AmountRefunded.Amount != 400 {
		t.Errorf("disputed %v, refunded %d", b.Disputed, b.AmountRefunded.Amount)
	}
	late.version = 1
	w.handle(w.nextEvent(&late, returned(0))) // version 2 again, and late
	other := w.intent(id)
	w.handle(w.nextEvent(other, taken(5)))
	if b := w.get(id); !b.Disputed || b.AmountRefunded.Amount != 400 || b.AmountPaid.Amount != 1005 {
		t.Errorf("an older event came through: %+v", b)
	}
	w.handle(w.nextEvent(i, disputed(false)))
	if b := w.get(id); b.Disputed || b.Version != 6 {
		t.Errorf("disputed %v, version %d", b.Disputed, b.Version)
	}
	if got := w.Types(); got != "updated updated updated updated updated" {
		t.Errorf("events %s", got)
	}
	for n, e := range w.Events() {
		if shows := strings.Contains(string(e.GetPreviousAttributes()), `"disputed"`); shows != (n == 2 || n == 4) {
			t.Errorf("event %d: %s", n, e.GetPreviousAttributes())
		}
	}
}

// TestPaymentOfAnotherCurrency checks that a payment in a currency other than the booking's is listed, and counts neither as paid
// nor as disputed.
func TestPaymentOfAnotherCurrency(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	i := w.intent(id)
	i.currency = "EUR"
	w.handle(w.nextEvent(i, func(i *intent) { i.received, i.disputed = 1000, true }))
	w.is(id, "pending", 0, "unpaid", 1)
	if list := w.payments(id); len(list) != 1 || list[0].Amount.Currency != "EUR" || !list[0].Disputed {
		t.Errorf("%+v", list)
	}
}

// TestPaymentOfARunOutHold checks a payment for a lapsed hold that arrives at the same moment as its expiry. A lock of the
// booking forces each order. In both orders the booking is expired, never confirmed, and shows the money as late. If the payment
// comes first, its transaction expires the booking, and the expiry finds nothing to do.
func TestPaymentOfARunOutHold(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	w.ahead = 2 * time.Hour
	soon := time.Now().Add(time.Hour)
	for _, tc := range []struct {
		paidFirst    bool
		transactions int
	}{{true, 1}, {false, 2}} {
		id := w.book(func(b *domain.Booking) { b.HoldExpiresAt = &soon })
		i := w.intent(id)
		paid := w.nextEvent(i, taken(300))
		pay, expire := func() error { return w.h.Handle(w.ctx, paid) }, func() error { return w.bookings.ExpireAll(w.ctx) }
		sides := []func() error{expire, pay}
		if tc.paidFirst {
			sides = []func() error{pay, expire}
		}
		release, done := w.Hold(`select from bookings where id = $1 for update`, id), make(chan error, 2)
		for n, waiting := range []string{"transactionid", "transactionid tuple"} {
			go func() { done <- sides[n]() }()
			w.Waiting(waiting)
		}
		release()
		for range sides {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.is(id, "expired", 300, "deposit_paid", 3)
		if n := w.Count(`select count(distinct xmin::text) from outbox where aggregate_id = $1`, id.String()); n != tc.transactions {
			t.Errorf("paid first %v: events of %d transactions, want %d", tc.paidFirst, n, tc.transactions)
		}
		if s, err := store.Settlement(w.ctx, w.DB.App.Read(w.ctx), id); err != nil || len(s.Payments) != 1 || !s.Payments[0].Late {
			t.Errorf("paid first %v: %+v, %v", tc.paidFirst, s, err)
		}
		w.handle(w.nextEvent(i, returned(300)))
		w.is(id, "expired", 300, "refunded", 4)
		if b := w.get(id); !b.ConfirmedAt.IsNull() {
			t.Errorf("paid first %v: confirmed at %v", tc.paidFirst, b.ConfirmedAt)
		}
	}
}

// TestLatePayments checks that a payment is late if its booking was canceled or had expired before the payment was first counted.
// This does not change afterwards.
func TestLatePayments(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	soon := time.Now().Add(time.Hour)
	late := func(id domain.BookingID) (list []bool) {
		t.Helper()
		s, err := store.Settlement(w.ctx, w.DB.App.Read(w.ctx), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Payments {
			list = append(list, p.Late)
		}
		return list
	}
	for _, tc := range []struct {
		change func(*domain.Booking)
		ahead  time.Duration
		want   bool
	}{
		{func(b *domain.Booking) { b.Status = domain.Cancelled }, 0, true},
		{func(b *domain.Booking) { b.Status = domain.Expired }, 0, true},
		{func(b *domain.Booking) { b.HoldExpiresAt = &soon }, 2 * time.Hour, true},
		{func(b *domain.Booking) { b.HoldExpiresAt = &soon }, 0, false},
		{func(b *domain.Booking) { b.Status = domain.Completed }, 0, false},
	} {
		id := w.book(tc.change)
		i := w.intent(id)
		w.ahead = tc.ahead
		w.handle(w.nextEvent(i, taken(300)))
		w.ahead = 0
		if got := late(id); len(got) != 1 || got[0] != tc.want {
			t.Errorf("late %v, want %v", got, tc.want)
		}
		w.Exec(`update bookings set status = case when $1 then 'confirmed' else 'cancelled' end`, tc.want)
		w.handle(w.nextEvent(i, returned(1)))
		if got := late(id); got[0] != tc.want {
			t.Errorf("after its next event: late %v, want %v", got, tc.want)
		}
	}
}

// TestPaymentsListed checks that the list of payments contains what the events reported, newest first, regardless of the order of
// the events.
func TestPaymentsListed(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Live)
	id := w.book()
	bill, card := w.bill(id), w.intent(id)
	card.invoice = bill.id
	bill.pay(100)
	bill.pay(50)
	first := w.event(bill)
	bill.reverse(0)
	all := []kafkax.Message{first, w.event(bill), w.nextEvent(card, taken(500)), w.nextEvent(card, returned(20)), w.nextEvent(card, disputed(true))}
	all = append(all, all...)
	rand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	for _, m := range all {
		w.handle(m)
	}
	list := w.payments(id)
	if len(list) != 3 {
		t.Fatalf("%d payments", len(list))
	}
	for n, p := range list {
		if n > 0 && p.CreatedAt.After(list[n-1].CreatedAt) {
			t.Error("not the newest first")
		}
		if p.InvoiceID != bill.id || p.PaidAt == nil || !p.PaidAt.Equal(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%+v", p)
		}
		switch p.ID {
		case card.id:
			if p.Source != "gateway" || p.Amount.Minor != 500 || p.Refunded != 20 || !p.Disputed || p.ReversedAt != nil {
				t.Errorf("by card: %+v", p)
			}
		case bill.payments[0]["id"]:
			if p.Source != "manual" || p.Amount.Minor != 100 || p.ReversedAt == nil {
				t.Errorf("reversed: %+v", p)
			}
		default:
			if p.Source != "manual" || p.Amount.Minor != 50 || p.Refunded != 0 || p.Disputed || p.ReversedAt != nil {
				t.Errorf("by hand: %+v", p)
			}
		}
	}
}

func (w *till) payments(id domain.BookingID) []domain.BookingPayment {
	w.T.Helper()
	rows, err := store.Payments(w.ctx, w.DB.App.Read(w.ctx), id, page.Request{Limit: 100})
	if err != nil {
		w.T.Fatal(err)
	}
	return rows.Items
}
