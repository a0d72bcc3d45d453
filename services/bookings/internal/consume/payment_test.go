package consume_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/repair"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// ledger is the account of a booking at payments. Each event contains the entries that have changed.
type ledger struct {
	booking, currency string
	version           int64
	entries           []*internalapi.AccountEntry
}

func (w *till) ledger(booking domain.BookingID) *ledger {
	return &ledger{booking: booking.String(), currency: "USD"}
}

func (l *ledger) add(prefix, kind, method string, amount int64) *internalapi.AccountEntry {
	e := &internalapi.AccountEntry{ID: newID(prefix), Kind: kind, Method: method, Amount: amount, At: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	l.entries = append(l.entries, e)
	return e
}

func (l *ledger) card(amount int64) *internalapi.AccountEntry {
	return l.add("pi", "card", "card", amount)
}

func (l *ledger) receipt(amount int64) *internalapi.AccountEntry {
	return l.add("pay", "receipt", "cash", amount)
}

func (l *ledger) handBack(amount int64) *internalapi.AccountEntry {
	return l.add("cn", "return", "cash", amount)
}

// account returns the next event of the account after a change of entries.
func (w *till) account(l *ledger, changed ...*internalapi.AccountEntry) kafkax.Message {
	w.T.Helper()
	l.version++
	body := internalapi.Account{ID: l.booking, Currency: l.currency, Version: l.version}
	for _, e := range changed {
		e.Version = l.version
		body.Entries = append(body.Entries, *e)
	}
	for _, e := range l.entries {
		switch {
		case e.ReversedAt != nil, e.Version == 0: // not reported yet
		case e.Kind == "return":
			body.Returned += e.Amount
		default:
			body.Received, body.Returned, body.Disputed = body.Received+e.Amount, body.Returned+e.Returned, body.Disputed || e.Disputed
		}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		w.T.Fatal(err)
	}
	m := w.message(l.booking, "account.updated", l.version, string(raw))
	m.Topic = "payments"
	return m
}

// ended returns when a booking ended.
func (w *till) ended(id domain.BookingID) *time.Time {
	w.T.Helper()
	b, err := store.Booking(w.ctx, w.DB.App.Read(w.ctx), id)
	if err != nil {
		w.T.Fatal(err)
	}
	return b.At(time.Now().Add(w.ahead)).EndedAt()
}

// TestPaymentStates checks that events of accounts lead to each payment state of a booking, and that the list finds the booking by it.
func TestPaymentStates(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	for _, tc := range []struct {
		state    domain.PaymentStatus
		received []int64
		refunded []int64
	}{
		{domain.Unpaid, nil, nil},
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
		l := w.ledger(id)
		for n, amount := range tc.received {
			card := l.card(amount)
			w.handle(w.account(l, card))
			if n < len(tc.refunded) {
				card.Returned = tc.refunded[n]
				w.handle(w.account(l, card))
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
// event. A change that a client cannot see does neither, and an older event has no effect.
func TestRefundedAndDisputed(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	l := w.ledger(id)
	card := l.card(1000)
	taken := w.account(l, card)
	w.handle(taken)
	w.is(id, "confirmed", 1000, "paid", 2)
	card.Returned = 400
	w.handle(w.account(l, card))
	w.is(id, "confirmed", 1000, "partially_refunded", 3)
	w.handle(w.account(l)) // a refund has begun
	w.is(id, "confirmed", 1000, "partially_refunded", 3)
	card.Disputed = true
	w.handle(w.account(l, card))
	w.is(id, "confirmed", 1000, "partially_refunded", 4)
	if b := w.get(id); !b.Disputed || b.AmountRefunded.Amount != 400 {
		t.Errorf("disputed %v, refunded %d", b.Disputed, b.AmountRefunded.Amount)
	}
	late := *l
	late.version = 1
	w.handle(w.account(&late)) // version 2 again, and late
	w.handle(w.account(l, l.receipt(5)))
	if b := w.get(id); !b.Disputed || b.AmountRefunded.Amount != 400 || b.AmountPaid.Amount != 1005 {
		t.Errorf("an older event came through: %+v", b)
	}
	card.Disputed = false
	w.handle(w.account(l, card))
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

// TestPaymentInAnotherCurrency checks that a payment in a currency other than the booking's is listed, is a copy for a repair, and counts
// neither as paid nor as disputed.
func TestPaymentInAnotherCurrency(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	l := w.ledger(id)
	l.currency = "EUR"
	card := l.card(1000)
	card.Disputed = true
	w.handle(w.account(l, card))
	w.is(id, "pending", 0, "unpaid", 1)
	var copies bytes.Buffer
	if err := repair.WriteCopies(t.Context(), w.DB.OwnerURL, "bookings", app.Repair().Copies, time.Now(), &copies); err != nil ||
		!strings.Contains(copies.String(), `:EUR","version":0}`) {
		t.Errorf("%v, the account is not among the copies: %s", err, copies.String())
	}
	if list := w.payments(id); len(list) != 1 || list[0].Amount.Currency != "EUR" || !list[0].Disputed {
		t.Errorf("%+v", list)
	}
}

// TestPaymentsInAnyOrder checks that the final amounts and the list are the same for any order and any number of deliveries of the
// events.
func TestPaymentsInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Live)
	for round := range 20 {
		id := w.book(func(b *domain.Booking) { b.Policy.ConfirmOnDeposit = false })
		l, now := w.ledger(id), time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
		wrong, card := l.receipt(500), l.card(40)
		all := []kafkax.Message{w.account(l, wrong), w.account(l, card)}
		wrong.ReversedAt = &now
		all = append(all, w.account(l, wrong))
		card.Returned, card.Disputed = 20, true
		all = append(all, w.account(l, card), w.account(l, l.receipt(2)), w.account(l, l.handBack(1)))
		all = append(all, all...)
		rand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		for _, m := range all {
			w.handle(m)
		}
		b := w.get(id)
		if b.AmountPaid.Amount != 42 || b.AmountRefunded.Amount != 21 || !b.Disputed || b.Status != "pending" {
			t.Errorf("round %d: paid %d, refunded %d, %s", round, b.AmountPaid.Amount, b.AmountRefunded.Amount, b.Status)
		}
		if n := w.eventsOf(id); int64(n) != b.Version-1 {
			t.Errorf("round %d: %d events, version %d", round, n, b.Version)
		}
		var paid, refunded int64
		list := w.payments(id)
		for n, p := range list {
			if n > 0 && p.CreatedAt.After(list[n-1].CreatedAt) {
				t.Error("not the newest first")
			}
			if p.ReversedAt == nil {
				paid, refunded = paid+p.Amount.Minor, refunded+p.Refunded
			}
			if source := map[bool]string{true: "gateway", false: "manual"}[p.ID == card.ID]; p.Source != source || p.Disputed != (p.ID == card.ID) || p.PaidAt == nil {
				t.Errorf("%+v", p)
			}
		}
		if len(list) != 4 || paid != 42 || refunded != 21 {
			t.Errorf("round %d: %d payments, %d paid, %d refunded", round, len(list), paid, refunded)
		}
	}
}

// TestParallelPayments checks that none of forty payments is lost, if their events and those of an invoice are processed at the same
// time, each twice.
func TestParallelPayments(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	var all []kafkax.Message
	l, i := w.ledger(id), w.bill(id)
	i.open(1000)
	for range 40 {
		all = append(all, w.account(l, l.receipt(25)))
		i.paid += 25
		all = append(all, w.event(i))
	}
	all = append(all, all...)
	rand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	var done sync.WaitGroup
	for part := range 8 {
		done.Go(func() {
			for n := part; n < len(all); n += 8 {
				w.handle(all[n])
			}
		})
	}
	done.Wait()
	b := w.get(id)
	if b.AmountPaid.Amount != 1000 || b.Status != "confirmed" || b.PaymentStatus != "paid" || len(w.payments(id)) != 40 {
		t.Errorf("paid %d, %s", b.AmountPaid.Amount, b.Status)
	}
	if events := w.Events(); int64(len(events)) != b.Version-1 {
		t.Errorf("%d events, version %d", len(events), b.Version)
	}
}

// TestConfirmOnDeposit checks that a deposit confirms a pending booking if the booking's own policy requires this. A booking whose
// hold has lapsed and a booking in a final state keep their state and show the money.
func TestConfirmOnDeposit(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	soon := time.Now().Add(time.Hour)
	held := func(b *domain.Booking) { b.HoldExpiresAt = &soon }
	off := func(b *domain.Booking) { b.Policy.ConfirmOnDeposit = false }
	in := func(s domain.Status) func(*domain.Booking) { return func(b *domain.Booking) { b.Status = s } }
	for _, tc := range []struct {
		name    string
		change  []func(*domain.Booking)
		late    bool
		paid    int64
		status  string
		payment string
		version int64
	}{
		{"part of the deposit", nil, false, 299, "pending", "partially_paid", 2},
		{"the deposit", nil, false, 300, "confirmed", "deposit_paid", 2},
		{"all", nil, false, 1000, "confirmed", "paid", 2},
		{"more than all", nil, false, 1001, "confirmed", "overpaid", 2},
		{"the policy is off", []func(*domain.Booking){off}, false, 1000, "pending", "paid", 2},
		{"no policy is known", []func(*domain.Booking){func(b *domain.Booking) { b.Policy = nil }}, false, 1000, "pending", "paid", 2},
		{"a hold", []func(*domain.Booking){held}, false, 300, "confirmed", "deposit_paid", 2},
		{"a hold that has run out", []func(*domain.Booking){held}, true, 300, "expired", "deposit_paid", 3},
		{"it has run out, and the policy is off", []func(*domain.Booking){held, off}, true, 300, "expired", "deposit_paid", 3},
		{"not priced", []func(*domain.Booking){func(b *domain.Booking) { b.Total.Minor, b.Gross.Minor, b.Deposit.Minor = 0, 0, 0 }}, false, 1, "confirmed", "paid", 2},
		{"without a deposit", []func(*domain.Booking){func(b *domain.Booking) { b.Deposit.Minor = 0 }}, false, 999, "pending", "partially_paid", 2},
		{"expired", []func(*domain.Booking){in(domain.Expired)}, false, 300, "expired", "deposit_paid", 2},
		{"cancelled", []func(*domain.Booking){in(domain.Cancelled)}, false, 300, "cancelled", "deposit_paid", 2},
		{"confirmed", []func(*domain.Booking){in(domain.Confirmed)}, false, 300, "confirmed", "deposit_paid", 2},
		{"completed", []func(*domain.Booking){in(domain.Completed)}, false, 300, "completed", "deposit_paid", 2},
		{"no show", []func(*domain.Booking){in(domain.NoShow)}, false, 300, "no_show", "deposit_paid", 2},
	} {
		id := w.book(tc.change...)
		l := w.ledger(id)
		paid := w.account(l, l.receipt(tc.paid))
		if tc.late {
			w.ahead = 2 * time.Hour
		}
		w.handle(paid)
		t.Log(tc.name)
		w.is(id, tc.status, tc.paid, tc.payment, tc.version)
		b := w.get(id)
		if confirmed := tc.status == "confirmed" && tc.name != "confirmed"; b.ConfirmedAt.IsNull() == confirmed || confirmed && !b.HoldExpiresAt.IsNull() {
			t.Errorf("confirmed at %v, hold until %v", b.ConfirmedAt, b.HoldExpiresAt)
		}
		w.ahead = 0
	}
}

// TestPaymentGoesByTheTestClock checks that a hold follows the test clock of its tenant, which no event carries.
func TestPaymentGoesByTheTestClock(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	hold := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	held := func(b *domain.Booking) { b.HoldExpiresAt = &hold }
	inTime, late := w.book(held), w.book(held)
	for at, id := range map[time.Time]domain.BookingID{hold.Add(-time.Hour): inTime, hold: late} {
		w.Exec(`delete from test_clocks`)
		w.Exec(`insert into test_clocks values ($1, false, $2, 2)`, caller.FromContext(w.ctx).Tenant, at)
		l := w.ledger(id)
		w.handle(w.account(l, l.card(300)))
	}
	if b := w.get(inTime); b.Status != "confirmed" || !b.ConfirmedAt.MustGet().Equal(hold.Add(-time.Hour)) {
		t.Errorf("in time: %s", b.Status)
	}
	if b := w.get(late); b.Status != "expired" || b.AmountPaid.Amount != 300 || b.Version != 3 {
		t.Errorf("late: %s", b.Status)
	}
}

// TestPaymentAfterAFailure checks that a payment whose write failed does not count as processed. Its event counts when it is
// delivered again.
func TestPaymentAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	l := w.ledger(id)
	paid := w.account(l, l.card(300))
	w.Exec(`alter table booking_payments rename column amount to missing`)
	if err := w.h.Handle(t.Context(), paid); err == nil || errors.Is(err, kafkax.ErrPoison) {
		t.Errorf("without the column: %v", err)
	}
	w.Exec(`alter table booking_payments rename column missing to amount`)
	w.is(id, "pending", 0, "unpaid", 1)
	w.handle(paid)
	w.is(id, "confirmed", 300, "deposit_paid", 2)
}

// TestPaymentOfABookingThatMoves checks that a payment follows a booking that moves to another unit between the read and the
// lock.
func TestPaymentOfABookingThatMoves(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	var from, to domain.UnitID
	for _, unit := range []*domain.UnitID{&from, &to} {
		*unit = ids.New[ids.UnitPrefix]()
		w.Exec(`insert into units (tenant_id, livemode, id, name) values ($1, false, $2, 'A unit')`, caller.FromContext(w.ctx).Tenant, *unit)
	}
	id := w.book(func(b *domain.Booking) { b.UnitID = from })
	l := w.ledger(id)
	paid := w.account(l, l.card(300))
	mover, err := w.Owner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mover.Exec(t.Context(), `update bookings set unit_id = $1`, to); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- w.h.Handle(t.Context(), paid) }()
	for w.Count(`select count(*) from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := mover.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.is(id, "confirmed", 300, "deposit_paid", 2)
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
		l := w.ledger(id)
		card := l.card(300)
		paid := w.account(l, card)
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
		card.Returned = 300
		w.handle(w.account(l, card))
		w.is(id, "expired", 300, "refunded", 4)
		if b := w.get(id); !b.ConfirmedAt.IsNull() {
			t.Errorf("paid first %v: confirmed at %v", tc.paidFirst, b.ConfirmedAt)
		}
	}
}

// TestEndOfABooking checks that a booking ends when its hold expires, before and after the expiry is written. If a test clock ends the hold,
// the booking ends in real time.
func TestEndOfABooking(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	soon := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	held := func(b *domain.Booking) { b.HoldExpiresAt = &soon }
	id, frozen := w.book(held), w.book(held)
	if got := w.ended(id); got != nil {
		t.Errorf("a pending booking ended at %v", got)
	}
	w.ahead = 2 * time.Hour
	for range 2 {
		if got := w.ended(id); got == nil || !got.Equal(soon) {
			t.Errorf("it ended at %v, want %v", got, soon)
		}
		l := w.ledger(id)
		w.handle(w.account(l, l.card(300)))
		w.is(id, "expired", 300, "deposit_paid", 3)
	}
	w.ahead = 0
	w.Exec(`insert into test_clocks values ($1, false, $2, 2)`, caller.FromContext(w.ctx).Tenant, soon.Add(time.Hour))
	before := time.Now()
	l := w.ledger(frozen)
	w.handle(w.account(l, l.card(300)))
	w.is(frozen, "expired", 300, "deposit_paid", 3)
	if got := w.ended(frozen); got == nil || got.Before(before.Truncate(time.Microsecond)) || got.After(time.Now()) {
		t.Errorf("the test clock ended it at %v, after %v", got, before)
	}
}

// TestOtherEventsOfPayments checks that the account of a booking that does not exist in the tenant and mode changes nothing, that a
// message that cannot be read is a poison message, and that other events of the topic are ignored.
func TestOtherEventsOfPayments(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	other := &till{Env: w.Env, ctx: w.ctx, h: w.h}
	l := other.ledger(ids.New[ids.BookingPrefix]())
	other.handle(other.account(l, l.card(300)))
	of := func(object, kind, body string) error {
		m := w.message(object, kind, 9, body)
		m.Topic = "payments"
		return w.h.Handle(t.Context(), m)
	}
	for name, body := range map[string]string{
		"no JSON": `{`, "another id": `{"id":"bk_2","currency":"USD"}`, "no currency": fmt.Sprintf(`{"id":%q}`, id),
		"less than nothing": fmt.Sprintf(`{"id":%q,"currency":"USD","received":-1}`, id),
		"no entry":          fmt.Sprintf(`{"id":%q,"currency":"USD","entries":[{"id":""}]}`, id),
	} {
		if err := of(id.String(), "account.updated", body); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for object, kind := range map[string]string{newID("inv"): "account.updated", newID("pi"): "payment.succeeded"} {
		if err := of(object, kind, `{`); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	w.is(id, "pending", 0, "unpaid", 1)
	if n := w.Count(`select count(*) from booking_payments`); n != 0 {
		t.Errorf("%d payments", n)
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
