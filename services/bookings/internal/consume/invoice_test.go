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
	b.Number, b.Total.Minor, b.Gross.Minor, b.Deposit.Minor = b.ID.String(), 1000, 1000, 300
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

// bill is an invoice as it passes through its states. due is what is left of total.
type bill struct {
	id, booking, currency, status, kind string
	version, total, paid, credited      int64
}

func (w *till) bill(booking domain.BookingID) *bill {
	return &bill{id: newID("inv"), booking: booking.String(), currency: "USD", status: "draft", kind: "full"}
}

// newID creates an id of the customers service.
func newID(prefix string) string {
	return prefix + strings.TrimPrefix(ids.New[ids.EventPrefix]().String(), "evt")
}

// open opens the invoice with a total.
func (i *bill) open(total int64) { i.status, i.total = "open", total }

// event returns the next event of the invoice.
func (w *till) event(i *bill) kafkax.Message {
	w.T.Helper()
	i.version++
	var booking any = i.booking
	if i.booking == "" {
		booking = nil
	}
	sum := func(minor int64) map[string]any { return map[string]any{"amount": minor, "currency": i.currency} }
	body, err := json.Marshal(map[string]any{
		"id": i.id, "booking_id": booking, "status": i.status, "kind": i.kind, "total_amount": sum(i.total), "amount_paid": sum(i.paid),
		"amount_credited": sum(i.credited), "amount_due": sum(max(0, i.total-i.paid-i.credited)), "notes": "a secret", "billing": map[string]string{"name": "a secret"},
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

// TestDueByInvoices checks that what is due, and the payment status, follow the invoices, their credit notes and the account of a
// booking of 1000 with a deposit of 300, in any order of the events, and that a change that a client cannot see has neither a version
// nor an event.
func TestDueByInvoices(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	type sum struct {
		kind                  string
		status                string
		total, paid, credited int64
	}
	for name, tc := range map[string]struct {
		invoices           []sum
		received, returned int64
		due, credited      int64
		state              string
		status             string
	}{
		"a draft":                       {[]sum{{"full", "draft", 500, 0, 0}}, 0, 0, 1000, 0, "unpaid", "pending"},
		"an open invoice":               {[]sum{{"full", "open", 1000, 0, 0}}, 0, 0, 1000, 0, "unpaid", "pending"},
		"a void invoice":                {[]sum{{"full", "void", 2000, 0, 0}}, 0, 0, 1000, 0, "unpaid", "pending"},
		"paid":                          {[]sum{{"full", "paid", 1000, 1000, 0}}, 1000, 0, 0, 0, "paid", "confirmed"},
		"the deposit":                   {[]sum{{"deposit", "paid", 300, 300, 0}, {"balance", "open", 700, 0, 0}}, 300, 0, 700, 0, "deposit_paid", "confirmed"},
		"a part of the deposit":         {[]sum{{"deposit", "partially_paid", 300, 200, 0}}, 200, 0, 800, 0, "partially_paid", "pending"},
		"a part, and the rest credited": {[]sum{{"deposit", "paid", 300, 200, 100}}, 200, 0, 700, 100, "deposit_paid", "confirmed"},
		"a credited deposit":            {[]sum{{"deposit", "credited", 300, 0, 300}}, 0, 0, 700, 300, "deposit_paid", "confirmed"},
		"one of two deposits":           {[]sum{{"deposit", "paid", 200, 200, 0}, {"deposit", "open", 200, 0, 0}}, 200, 0, 800, 0, "partially_paid", ""},
		"paid after a credit note":      {[]sum{{"full", "paid", 1000, 600, 400}}, 600, 0, 0, 400, "paid", "confirmed"},
		"all credited":                  {[]sum{{"full", "credited", 1000, 0, 1000}}, 0, 0, 0, 1000, "credited", "pending"},
		"all credited, with a deposit":  {[]sum{{"deposit", "credited", 300, 0, 300}, {"balance", "credited", 700, 0, 700}}, 0, 0, 0, 1000, "credited", "confirmed"},
		"credited, and invoiced again":  {[]sum{{"full", "credited", 1000, 0, 1000}, {"full", "open", 900, 0, 0}}, 0, 0, 900, 1000, "unpaid", "pending"},
		"the credit note is refunded":   {[]sum{{"full", "paid", 1000, 600, 400}}, 1000, 400, 0, 400, "partially_refunded", ""},
		"more is invoiced":              {[]sum{{"full", "paid", 1200, 1200, 0}}, 1200, 0, 0, 0, "paid", "confirmed"},
		"more is paid than invoiced":    {[]sum{{"full", "paid", 1200, 1200, 0}}, 1300, 0, 0, 0, "overpaid", "confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			id := w.book()
			money := w.ledger(id)
			var all []kafkax.Message
			for _, one := range tc.invoices {
				i := w.bill(id)
				i.kind = one.kind
				all = append(all, w.event(i))
				i.status, i.total, i.paid, i.credited = one.status, one.total, one.paid, one.credited
				all = append(all, w.event(i))
			}
			if tc.received > 0 {
				one := money.receipt(tc.received)
				all = append(all, w.account(money, one))
			}
			if tc.returned > 0 {
				all = append(all, w.account(money, money.handBack(tc.returned)))
			}
			all = append(all, all...)
			rand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
			for _, m := range all {
				w.handle(m)
			}
			b := w.get(id)
			if b.AmountDue.Amount != tc.due || b.AmountCredited.Amount != tc.credited || string(b.PaymentStatus) != tc.state || b.AmountPaid.Amount != tc.received {
				t.Errorf("due %d, credited %d, %s, paid %d", b.AmountDue.Amount, b.AmountCredited.Amount, b.PaymentStatus, b.AmountPaid.Amount)
			}
			if status := string(b.Status); status != tc.status && tc.status != "" { // "": it depends on the order
				t.Errorf("%s, want %s", status, tc.status)
			}
			if events := w.eventsOf(id); int64(events) != b.Version-1 {
				t.Errorf("%d events, version %d", events, b.Version)
			}
		})
	}
}

// eventsOf returns the number of events of a booking.
func (w *till) eventsOf(id domain.BookingID) (n int) {
	for _, e := range w.Events() {
		if e.GetObjectId() == id.String() {
			n++
		}
	}
	return n
}

// TestPaymentIsOneChange checks that a payment on an invoice changes the booking once, whether its account or its invoice is reported
// first, and that a new invoice changes nothing that a client can see except its ID.
func TestPaymentIsOneChange(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	for _, invoiceFirst := range []bool{true, false} {
		id := w.book()
		i, money := w.bill(id), w.ledger(id)
		w.handle(w.event(i))
		i.open(1000)
		w.handle(w.event(i))
		w.is(id, "pending", 0, "unpaid", 1)
		if got := w.get(id); len(got.InvoiceIds) != 1 || got.InvoiceIds[0] != i.id {
			t.Errorf("invoices %v", got.InvoiceIds)
		}
		received := w.account(money, money.receipt(1000))
		i.status, i.paid = "paid", 1000
		list := []kafkax.Message{received, w.event(i)}
		if invoiceFirst {
			slices.Reverse(list)
		}
		for _, m := range list {
			w.handle(m)
		}
		w.is(id, "confirmed", 1000, "paid", 2)
		if n := w.eventsOf(id); n != 1 {
			t.Errorf("invoice first %v: %d events", invoiceFirst, n)
		}
	}
	for _, e := range w.Events() {
		if previous := string(e.GetPreviousAttributes()); !strings.Contains(previous, `"amount_paid"`) || strings.Contains(previous, "invoice_ids") {
			t.Errorf("this has changed: %s", previous)
		}
		if strings.Contains(e.String(), "secret") {
			t.Error("an event holds personal data")
		}
	}
	if n := w.Count(`select count(*) from booking_invoices where booking_invoices::text like '%secret%'`); n != 0 {
		t.Error("an invoice holds personal data")
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
	late := w.event(&bill{id: i.id, booking: one.String(), currency: "USD"})
	w.handle(late)
	if a, b := w.get(one).InvoiceIds, w.get(two).InvoiceIds; len(a) != 0 || len(b) != 1 {
		t.Errorf("moved: %v, %v", a, b)
	}
	i.booking = ""
	w.handle(w.event(i))
	other := w.bill(one)
	other.version, other.booking = 1, ""
	w.handle(w.event(other)) // the second version arrives first
	w.handle(w.event(&bill{id: other.id, booking: one.String(), currency: "USD"}))
	if a, b := w.get(one).InvoiceIds, w.get(two).InvoiceIds; len(a) != 0 || len(b) != 0 {
		t.Errorf("let go: %v, %v", a, b)
	}
	draft := w.bill(one)
	created := w.event(draft)
	w.handle(created)
	for i, body := range []string{`{"erased":true}`, `{"erased":true,"deleted":true}`} { // of its customer, and the draft itself
		w.handle(w.message(draft.id, "invoice.erased", int64(i+2), body))
		if got := w.get(one).InvoiceIds; len(got) != 1-i {
			t.Errorf("after %s: %v", body, got)
		}
	}
	w.handle(w.event(&bill{id: draft.id, booking: one.String(), currency: "USD", version: 1})) // late
	if got := w.get(one).InvoiceIds; len(got) != 0 {
		t.Errorf("a deleted draft is back: %v", got)
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

// TestInvoiceInAnotherCurrency checks that an invoice in a currency other than the booking's is listed and does not count, and that an
// invoice without a booking counts for none.
func TestInvoiceInAnotherCurrency(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	i, none := w.bill(id), w.bill(id)
	i.currency, none.booking = "EUR", ""
	for _, one := range []*bill{i, none} {
		one.open(1000)
		one.credited = 1000
		w.handle(w.event(one))
	}
	w.is(id, "pending", 0, "unpaid", 1)
	if b := w.get(id); b.AmountCredited.Amount != 0 || b.AmountDue.Amount != 1000 || len(b.InvoiceIds) != 1 {
		t.Errorf("%+v", b)
	}
}

// TestOtherEventsOfInvoices checks that an invoice of a booking that does not exist in the tenant and mode changes nothing and is
// logged. A message that cannot be read is a poison message. Event types of the topic that are not about money are ignored.
func TestOtherEventsOfInvoices(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	i := w.bill(id)
	i.open(500)
	i.credited = 500
	for _, who := range []context.Context{pg.OtherMode(w.ctx), pgtest.Ctx(t, caller.Test)} {
		foreign := &till{Env: w.Env, ctx: who, h: w.h}
		foreign.handle(foreign.event(i))
	}
	w.is(id, "pending", 0, "unpaid", 1)
	if n := w.Count(`select count(*) from booking_invoices`); n != 0 || strings.Count(w.log.String(), "level=WARN") != 2 {
		t.Errorf("%d rows; %s", n, &w.log)
	}
	for name, body := range map[string]string{
		"no JSON": `{`, "another id": `{"id":"inv_2"}`, "a booking's id": fmt.Sprintf(`{"id":%q,"booking_id":"x"}`, i.id),
		"no amounts":        fmt.Sprintf(`{"id":%q,"booking_id":%q}`, i.id, id),
		"less than nothing": fmt.Sprintf(`{"id":%q,"booking_id":%q,"total_amount":{"amount":5,"currency":"USD"},"amount_due":{"amount":-1,"currency":"USD"}}`, i.id, id),
	} {
		if err := w.h.Handle(t.Context(), w.message(i.id, "invoice.paid", 9, body)); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.handle(w.message(newID("ld"), "lead.created", 1, `{}`))
}
