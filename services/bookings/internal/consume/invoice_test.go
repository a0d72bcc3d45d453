package consume_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/api"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/consume"
	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
	"holdfast.dev/services/bookings/migrations"
)

// till contains a database with bookings, and the handlers of their payments.
type till struct {
	*apitest.Env
	ctx      context.Context
	bookings *app.Bookings
	h        consume.Handlers
	log      strings.Builder
	ahead    time.Duration
}

func newTill(t *testing.T, mode caller.Mode) *till {
	t.Helper()
	w := &till{Env: apitest.New(t, "bookings", migrations.FS), ctx: pgtest.Ctx(t, mode)}
	pgtest.Scoped(t, w.DB)
	bookings := &app.Bookings{DB: w.DB.App, Wake: func() {}, Now: func() time.Time { return time.Now().Add(w.ahead) }}
	w.bookings = bookings
	w.h = consume.New(&app.Customers{DB: w.DB.App}, &app.Payments{Bookings: bookings, Log: slog.New(slog.NewTextHandler(&w.log, nil))}, nil, nil)
	return w
}

// book creates a pending booking of 1000 with a deposit of 300.
func (w *till) book(change ...func(*domain.Booking)) domain.BookingID {
	w.T.Helper()
	b := domain.Booking{
		ID: domain.NewBookingID(), Status: domain.Pending, Loc: time.UTC, Version: 1, Policy: &domain.Policy{ConfirmOnDeposit: true},
		Schedule: domain.Schedule{Day: civil.Date{Year: 2030, Month: 1, Day: 1}}, Amounts: domain.NoMoney("USD"),
	}
	b.Number, b.Total.Minor, b.Deposit.Minor = b.ID.String(), 1000, 300
	for _, f := range change {
		f(&b)
	}
	err := w.DB.App.Tx(w.ctx, func(_ context.Context, tx pg.Tx) error {
		_, err := store.InsertBooking(tx, b, nil, time.Now())
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return b.ID
}

// get returns the booking as a client reads it.
func (w *till) get(id domain.BookingID) api.Booking {
	w.T.Helper()
	b, err := store.Booking(w.ctx, w.DB.App.Read(w.ctx), id)
	if err != nil {
		w.T.Fatal(err)
	}
	return view.Booking(b.At(time.Now().Add(w.ahead)), api.Mode(caller.FromContext(w.ctx).Mode))
}

// is checks what a client reads of a booking.
func (w *till) is(id domain.BookingID, status string, paid int64, payment string, version int64) {
	w.T.Helper()
	b := w.get(id)
	if string(b.Status) != status || b.AmountPaid.Amount != paid || string(b.PaymentStatus) != payment || b.Version != version {
		w.T.Errorf("%s, paid %d, %s, version %d; want %s, %d, %s, %d",
			b.Status, b.AmountPaid.Amount, b.PaymentStatus, b.Version, status, paid, payment, version)
	}
}

func (w *till) handle(m kafkax.Message) {
	w.T.Helper()
	if err := w.h.Handle(w.T.Context(), m); err != nil {
		w.T.Error(err)
	}
}

// bill is an invoice as it passes through its states.
type bill struct {
	id, booking string
	version     int64
	payments    []map[string]any
}

func (w *till) bill(booking domain.BookingID) *bill {
	return &bill{id: newID("inv"), booking: booking.String()}
}

// newID creates an id of the customers service.
func newID(prefix string) string {
	return prefix + strings.TrimPrefix(ids.New[ids.EventPrefix]().String(), "evt")
}

func (i *bill) pay(amount int64) {
	i.payments = append(i.payments, map[string]any{
		"id": newID("pay"), "amount": map[string]any{"amount": amount, "currency": "USD"}, "method": "cash", "source": "manual",
		"paid_at": "2030-01-01T00:00:00Z", "reference": "a secret", "reversed_at": nil,
	})
}

func (i *bill) reverse(n int) {
	was := i.payments[n]
	is := map[string]any{}
	for k, v := range was {
		is[k] = v
	}
	is["reversed_at"] = "2030-01-02T00:00:00Z"
	i.payments = append(append(append([]map[string]any{}, i.payments[:n]...), is), i.payments[n+1:]...)
}

// event returns the next event of the invoice.
func (w *till) event(i *bill) kafkax.Message {
	w.T.Helper()
	i.version++
	var booking any = i.booking
	if i.booking == "" {
		booking = nil
	}
	body, err := json.Marshal(map[string]any{
		"id": i.id, "booking_id": booking, "payments": i.payments, "notes": "a secret", "billing": map[string]string{"name": "a secret"},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	kind := "invoice.updated"
	if i.version == 1 {
		kind = "invoice.created"
	}
	return w.message(i.id, kind, i.version, string(body))
}

func (w *till) message(object, kind string, version int64, body string) kafkax.Message {
	w.T.Helper()
	c := caller.FromContext(w.ctx)
	raw, err := proto.Marshal(&eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: kind, TenantId: c.Tenant.String(), Livemode: c.Live(), ObjectId: object,
		ResourceVersion: version, CreatedAt: timestamppb.New(time.Unix(0, 0)), RequestId: "req_1", Object: []byte(body),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return kafkax.Message{Topic: "customers", Key: object, Value: raw}
}

// TestPaymentsOfInvoices checks that each payment counts once, that the invoices of a booking are added up, and that each
// change has one version and one event. A new invoice has neither.
func TestPaymentsOfInvoices(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	deposit, rest := w.bill(id), w.bill(id)
	w.handle(w.event(deposit))
	w.handle(w.event(rest))
	w.is(id, "pending", 0, "unpaid", 1)
	if got := w.get(id); len(got.InvoiceIds) != 2 || got.InvoiceIds[0] != deposit.id || got.InvoiceIds[1] != rest.id || w.Types() != "" {
		t.Errorf("invoices %v, events %q", got.InvoiceIds, w.Types())
	}
	deposit.pay(100)
	w.handle(w.event(deposit))
	w.is(id, "pending", 100, "partially_paid", 2)
	deposit.pay(200)
	paid := w.event(deposit)
	w.handle(paid)
	w.handle(paid)
	w.is(id, "confirmed", 300, "deposit_paid", 3)
	rest.pay(700)
	w.handle(w.event(rest))
	w.is(id, "confirmed", 1000, "paid", 4)
	w.handle(w.event(rest)) // only the notes have changed
	rest.pay(1)
	w.handle(w.event(rest))
	w.is(id, "confirmed", 1001, "overpaid", 5)
	deposit.reverse(0)
	w.handle(w.event(deposit))
	w.is(id, "confirmed", 901, "deposit_paid", 6)
	events := w.Events()
	if w.Types() != "updated updated updated updated updated" {
		t.Fatalf("events %s", w.Types())
	}
	var body api.Booking
	for i, e := range events {
		if err := json.Unmarshal(e.GetObject(), &body); err != nil {
			t.Fatal(err)
		}
		if e.GetObjectId() != id.String() || e.GetResourceVersion() != int64(i+2) || body.Version != int64(i+2) || len(body.InvoiceIds) != 2 || e.GetRequestId() != "req_1" {
			t.Errorf("event %d: %v", i, e)
		}
		if previous := string(e.GetPreviousAttributes()); !strings.Contains(previous, `"amount_paid"`) || strings.Contains(previous, `"status":"pending"`) != (i == 1) || strings.Contains(previous, "invoice_ids") {
			t.Errorf("event %d says that this changed: %s", i, previous)
		}
		if strings.Contains(e.String(), "secret") {
			t.Errorf("event %d holds what is personal", i)
		}
	}
	if n := w.Count(`select count(*) from booking_payments where booking_payments::text like '%secret%'`) + w.Count(`select count(*) from booking_invoices where booking_invoices::text like '%secret%'`); n != 0 {
		t.Error("a payment holds what is personal")
	}
}

// TestPaymentsInAnyOrder checks that the final sum is the same for any order and any number of deliveries of the events. A payment
// that was first reported as reversed stays reversed.
func TestPaymentsInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Live)
	for round := range 20 {
		id := w.book(func(b *domain.Booking) { b.Policy.ConfirmOnDeposit = false })
		i := w.bill(id)
		all := []kafkax.Message{w.event(i)}
		for _, step := range []func(){func() { i.pay(500) }, func() { i.reverse(0) }, func() { i.pay(300) }, func() { i.pay(40) }, func() { i.reverse(1) }, func() { i.pay(2) }} {
			step()
			all = append(all, w.event(i))
		}
		all = append(all, all...)
		rand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		for _, m := range all {
			w.handle(m)
		}
		if b := w.get(id); b.AmountPaid.Amount != 42 || b.Status != "pending" || len(b.InvoiceIds) != 1 {
			t.Errorf("round %d: paid %d, %s", round, b.AmountPaid.Amount, b.Status)
		}
		events := 0
		for _, e := range w.Events() {
			if e.GetObjectId() == id.String() {
				events++
			}
		}
		if b := w.get(id); int64(events) != b.Version-1 {
			t.Errorf("round %d: %d events, version %d", round, events, b.Version)
		}
	}
}

// TestParallelPayments checks that none of forty parallel payments of four invoices of one booking is lost, if each is delivered
// twice during other writes of the booking.
func TestParallelPayments(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	var all []kafkax.Message
	for range 4 {
		i := w.bill(id)
		all = append(all, w.event(i))
		for range 10 {
			i.pay(25)
			m := w.event(i)
			all = append(all, m, m)
		}
	}
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
	if b.AmountPaid.Amount != 1000 || b.Status != "confirmed" || b.PaymentStatus != "paid" || len(b.InvoiceIds) != 4 {
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
		{"not priced", []func(*domain.Booking){func(b *domain.Booking) { b.Total.Minor, b.Deposit.Minor = 0, 0 }}, false, 1, "confirmed", "paid", 2},
		{"without a deposit", []func(*domain.Booking){func(b *domain.Booking) { b.Deposit.Minor = 0 }}, false, 999, "pending", "partially_paid", 2},
		{"expired", []func(*domain.Booking){in(domain.Expired)}, false, 300, "expired", "deposit_paid", 2},
		{"cancelled", []func(*domain.Booking){in(domain.Cancelled)}, false, 300, "cancelled", "deposit_paid", 2},
		{"confirmed", []func(*domain.Booking){in(domain.Confirmed)}, false, 300, "confirmed", "deposit_paid", 2},
		{"completed", []func(*domain.Booking){in(domain.Completed)}, false, 300, "completed", "deposit_paid", 2},
		{"no show", []func(*domain.Booking){in(domain.NoShow)}, false, 300, "no_show", "deposit_paid", 2},
	} {
		id := w.book(tc.change...)
		i := w.bill(id)
		i.pay(tc.paid)
		if tc.late {
			w.ahead = 2 * time.Hour
		}
		w.handle(w.event(i))
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
		i := w.bill(id)
		i.pay(300)
		w.handle(w.event(i))
	}
	if b := w.get(inTime); b.Status != "confirmed" || !b.ConfirmedAt.MustGet().Equal(hold.Add(-time.Hour)) {
		t.Errorf("in time: %s", b.Status)
	}
	if b := w.get(late); b.Status != "expired" || b.AmountPaid.Amount != 300 || b.Version != 3 {
		t.Errorf("late: %s", b.Status)
	}
}

// TestInvoicesOfABooking checks that a draft can change or lose its booking, and that an older event does not restore the
// booking. A booking shows its first 100 invoices.
func TestInvoicesOfABooking(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	one, two := w.book(), w.book()
	i := w.bill(one)
	first := w.event(i)
	w.handle(first)
	i.booking = two.String()
	w.handle(w.event(i))
	late := w.event(&bill{id: i.id, booking: one.String()})
	w.handle(late)
	if a, b := w.get(one).InvoiceIds, w.get(two).InvoiceIds; len(a) != 0 || len(b) != 1 {
		t.Errorf("moved: %v, %v", a, b)
	}
	i.booking = ""
	w.handle(w.event(i))
	other := w.bill(one)
	other.version, other.booking = 1, ""
	w.handle(w.event(other)) // the second version arrives first
	w.handle(w.event(&bill{id: other.id, booking: one.String()}))
	if a, b := w.get(one).InvoiceIds, w.get(two).InvoiceIds; len(a) != 0 || len(b) != 0 {
		t.Errorf("let go: %v, %v", a, b)
	}
	for range 101 {
		w.handle(w.event(w.bill(two)))
	}
	if got := w.get(two).InvoiceIds; len(got) != 100 {
		t.Errorf("%d invoices", len(got))
	}
	if w.Types() != "" || w.get(two).Version != 1 {
		t.Errorf("events %q", w.Types())
	}
}

// TestPaidInvoiceWithoutABooking checks that an invoice without a booking can be paid like any other, and that its money counts for
// no booking.
func TestPaidInvoiceWithoutABooking(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	i := w.bill(id)
	i.booking = ""
	i.pay(300)
	w.handle(w.event(i))
	i.reverse(0)
	w.handle(w.event(i))
	w.is(id, "pending", 0, "unpaid", 1)
	if payments, invoices := w.Count(`select count(*) from booking_payments`), w.Count(`select count(*) from booking_invoices`); payments != 0 || invoices != 1 {
		t.Errorf("%d payments, %d invoices", payments, invoices)
	}
}

// TestPaymentAfterAFailure checks that a payment whose write failed does not count as processed. Its event counts when it is
// delivered again.
func TestPaymentAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	i := w.bill(id)
	i.pay(300)
	paid := w.event(i)
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
	i := w.bill(id)
	i.pay(300)
	paid := w.event(i)
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

// TestPaymentInAnotherCurrency checks that money in a currency other than the booking's is stored but not added.
func TestPaymentInAnotherCurrency(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book(func(b *domain.Booking) {
		b.Total.Currency, b.Deposit.Currency, b.Paid.Currency, b.Refunded.Currency = "JPY", "JPY", "JPY", "JPY"
	})
	i := w.bill(id)
	i.pay(1000)
	w.handle(w.event(i))
	w.is(id, "pending", 0, "unpaid", 1)
	if n := w.Count(`select count(*) from booking_payments`); n != 1 {
		t.Errorf("%d payments", n)
	}
}

// TestOtherEventsOfInvoices checks that an invoice of a booking that does not exist in the tenant and mode changes nothing and is
// logged. A message that cannot be read is a poison message. Event types of the topic that are not about money are ignored.
func TestOtherEventsOfInvoices(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	i := w.bill(id)
	i.pay(300)
	for _, who := range []context.Context{pg.OtherMode(w.ctx), pgtest.Ctx(t, caller.Test)} {
		foreign := &till{Env: w.Env, ctx: who, h: w.h}
		foreign.handle(foreign.event(i))
	}
	w.is(id, "pending", 0, "unpaid", 1)
	if n := w.Count(`select count(*) from booking_payments`) + w.Count(`select count(*) from booking_invoices`); n != 0 || strings.Count(w.log.String(), "level=WARN") != 2 {
		t.Errorf("%d rows; %s", n, &w.log)
	}
	for name, body := range map[string]string{
		"no JSON": `{`, "another id": `{"id":"inv_2"}`, "a booking's id": fmt.Sprintf(`{"id":%q,"booking_id":"x"}`, i.id),
		"no payment":        fmt.Sprintf(`{"id":%q,"booking_id":%q,"payments":[{"id":"pay_1"}]}`, i.id, id),
		"less than nothing": fmt.Sprintf(`{"id":%q,"booking_id":%q,"payments":[{"id":"pay_1","amount":{"amount":-1,"currency":"USD"}}]}`, i.id, id),
	} {
		if err := w.h.Handle(t.Context(), w.message(i.id, "invoice.paid", 9, body)); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.handle(w.message(newID("ld"), "lead.created", 1, `{}`))
	w.handle(w.message(newID("qt"), "quote.accepted", 1, `{}`))
	twice := fmt.Sprintf(`{"id":%q,"booking_id":%q,"payments":[
		{"id":"pay_1","amount":{"amount":5,"currency":"USD"},"reversed_at":null},
		{"id":"pay_1","amount":{"amount":5,"currency":"USD"},"reversed_at":"2030-01-01T00:00:00Z"},
		{"id":"pay_2","amount":{"amount":7,"currency":"USD"},"reversed_at":null}]}`, i.id, id)
	w.handle(w.message(i.id, "invoice.paid", 10, twice))
	w.is(id, "pending", 7, "partially_paid", 2)
}

// TestManualRefundOfACreditNote checks that a manual refund counts once as refunded on the booking, in any order with the payment, and
// that other credit notes change nothing.
func TestManualRefundOfACreditNote(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"payment", "refund"} {
		w := newTill(t, caller.Test)
		id := w.book()
		paid := w.bill(id)
		paid.pay(1000)
		note := func(refund string, amount int64) kafkax.Message {
			n := newID("cn")
			return w.message(n, "credit_note.updated", 1, fmt.Sprintf(
				`{"id":%q,"invoice_id":%q,"booking_id":%q,"refund":%q,"refund_amount":{"amount":%d,"currency":"USD"}}`, n, paid.id, id, refund, amount))
		}
		payment, refund := w.event(paid), note("manual", 400)
		list := []kafkax.Message{payment, refund}
		if first == "refund" {
			slices.Reverse(list)
		}
		for _, m := range append(list, refund, note("gateway", 300), note("none", 0), note("manual", 0)) {
			w.handle(m)
		}
		b, err := store.Booking(w.ctx, w.DB.App.Read(w.ctx), id)
		if err != nil {
			t.Fatal(err)
		}
		if b.Paid.Minor != 1000 || b.Refunded.Minor != 400 || b.Due().Minor != 0 || b.Amounts.Status() != domain.PartiallyRefunded {
			t.Errorf("%s first: paid %d, refunded %d, due %d, %s", first, b.Paid.Minor, b.Refunded.Minor, b.Due().Minor, b.Amounts.Status())
		}
	}
}
