package consume_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/api"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/consume"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/peers/peerstest"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
	"holdfast.dev/services/customers/migrations"
)

// ledger contains a database with the invoices of one booking, and the handler of their card payments.
type ledger struct {
	*apitest.Env
	ctx      context.Context
	h        consume.Handlers
	booking  domain.BookingID
	customer domain.CustomerID
	notes    *app.CreditNotes
	accounts *app.Accounts
	payments *peerstest.Payments
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	w := &ledger{Env: apitest.New(t, "customers", migrations.FS), ctx: pgtest.Ctx(t, caller.Test)}
	pgtest.Scoped(t, w.DB)
	tenants := &peerstest.Tenants{}
	invoices := &app.Invoices{Tenants: tenants, Wake: func() {}, Now: time.Now}
	w.payments = &peerstest.Payments{}
	w.accounts = &app.Accounts{DB: w.DB.App, Invoices: invoices, Payments: w.payments, Tenants: tenants}
	w.notes = &app.CreditNotes{DB: w.DB.App, Invoices: invoices, Accounts: w.accounts, Payments: w.payments, Tenants: tenants}
	w.h = consume.New(&app.Catalogue{DB: w.DB.App}, &app.BookingProjection{Worker: w.DB.Worker}, w.accounts, w.notes, nil)
	w.booking, w.customer = ids.New[ids.BookingPrefix](), ids.New[ids.CustomerPrefix]()
	w.in(func(ctx context.Context, tx pg.Tx) error {
		_, err := store.InsertCustomer(ctx, tx, domain.Customer{ID: w.customer, FirstName: "Ada", Email: "ada@example.com"})
		return err
	})
	return w
}

func (w *ledger) in(do func(ctx context.Context, tx pg.Tx) error) {
	w.T.Helper()
	if err := w.DB.App.Tx(w.ctx, do); err != nil {
		w.T.Fatal(err)
	}
}

// open creates an open invoice of the booking.
func (w *ledger) open(kind domain.InvoiceKind, total int64) domain.InvoiceID {
	w.T.Helper()
	v := domain.Invoice{
		ID: ids.New[ids.InvoicePrefix](), Status: domain.InvoiceOpen, Kind: kind, CustomerID: w.customer, BookingID: w.booking,
		Lines: []domain.Line{{Description: "d", Quantity: 1, UnitAmount: total}}, Paid: money.Amount{Currency: "USD"}, Version: 1,
	}
	var err error
	if v.Lines, v.Totals, err = domain.Price(v.Lines, domain.NoTerms("USD")); err != nil {
		w.T.Fatal(err)
	}
	w.in(func(ctx context.Context, tx pg.Tx) error {
		_, err := store.InsertOpened(ctx, tx, v, "INV-")
		return err
	})
	return v.ID
}

func (w *ledger) get(id domain.InvoiceID) api.Invoice {
	w.T.Helper()
	v, err := store.Invoice(w.ctx, w.DB.App.Read(w.ctx), id)
	if err != nil {
		w.T.Fatal(err)
	}
	return view.Invoice(v, api.Mode(caller.Test))
}

// shows checks what an invoice shows of its card payments.
func (w *ledger) shows(id domain.InvoiceID, paid, refunded int64, disputed bool, status string) {
	w.T.Helper()
	v := w.get(id)
	sum := int64(0)
	for _, p := range v.Payments {
		sum += p.AmountRefunded.Amount
	}
	if v.AmountPaid.Amount != paid || v.AmountRefunded.Amount != refunded || sum != refunded || v.Disputed != disputed ||
		string(v.Status) != status || v.AmountDue.Amount != v.TotalAmount.Amount-paid {
		w.T.Errorf("paid %d, refunded %d (of the payments %d), disputed %v, %s, due %d; want %d, %d, %v, %s", v.AmountPaid.Amount,
			v.AmountRefunded.Amount, sum, v.Disputed, v.Status, v.AmountDue.Amount, paid, refunded, disputed, status)
	}
}

// account returns the account of the booking.
func (w *ledger) account() domain.AccountRef {
	return domain.AccountRef{Booking: w.booking, Currency: "USD"}
}

// card changes a card payment, and returns the event about it.
func (w *ledger) card(charge string, received, refunded int64, disputed bool) kafkax.Message {
	w.T.Helper()
	w.payments.Card(domain.Charge{
		ID: charge, Account: w.account(), Amount: money.Amount{Minor: received, Currency: "USD"}, ChargeState: domain.ChargeState{Refunded: refunded, Disputed: disputed},
	})
	return w.event(w.payments.Event(w.account()))
}

// event returns the event about a state of an account.
func (w *ledger) event(a domain.Account) kafkax.Message {
	w.T.Helper()
	body := internalapi.Account{ID: a.ID(), Currency: a.Currency, Received: a.Received, Returned: a.Returned, Version: a.Version, Entries: []internalapi.AccountEntry{}}
	for _, e := range a.Entries {
		entry := internalapi.AccountEntry{
			ID: e.ID, Kind: e.Kind, Method: e.Method, Amount: e.Amount, Returned: e.Returned, Disputed: e.Disputed, At: e.At, ReversedAt: e.ReversedAt, Version: e.Version,
		}
		if !e.Invoice.IsZero() {
			entry.InvoiceID = new(e.Invoice.String())
		}
		body.Entries = append(body.Entries, entry)
	}
	object, err := json.Marshal(body)
	if err != nil {
		w.T.Fatal(err)
	}
	c := caller.FromContext(w.ctx)
	raw, err := proto.Marshal(&eventsv1.Event{
		Id: ids.New[ids.EventPrefix]().String(), Type: "account.updated", TenantId: c.Tenant.String(), Livemode: c.Live(), ObjectId: body.ID,
		ResourceVersion: a.Version, CreatedAt: timestamppb.New(time.Unix(0, 0)), Object: object, Internal: true,
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return kafkax.Message{Topic: "payments", Key: body.ID, Value: raw}
}

func (w *ledger) handle(list ...kafkax.Message) {
	w.T.Helper()
	for _, m := range list {
		if err := w.h.Handle(w.T.Context(), m); err != nil {
			w.T.Error(err)
		}
	}
}

// TestRefundsOfACharge checks a refund of a charge that paid three invoices and left a rest. The refund first reduces the rest, and
// then the invoice that was paid last. No invoice is opened again, and each change emits one internal event.
func TestRefundsOfACharge(t *testing.T) {
	t.Parallel()
	w := newLedger(t)
	deposit, balance, full := w.open(domain.DepositInvoice, 100), w.open(domain.BalanceInvoice, 200), w.open(domain.FullInvoice, 30) // oldest first
	w.handle(w.card("pi_1", 340, 0, false))
	w.shows(deposit, 100, 0, false, "paid")
	w.shows(full, 30, 0, false, "paid")
	before := len(w.Events())
	for _, step := range []struct{ refunded, ofFull, ofBalance, ofDeposit int64 }{
		{10, 0, 0, 0}, {25, 15, 0, 0}, {40, 30, 0, 0}, {41, 30, 1, 0}, {240, 30, 200, 0}, {330, 30, 200, 90}, {340, 30, 200, 100}, {20, 10, 0, 0},
	} {
		w.handle(w.card("pi_1", 340, step.refunded, false))
		w.shows(full, 30, step.ofFull, false, "paid")
		w.shows(balance, 200, step.ofBalance, false, "paid")
		w.shows(deposit, 100, step.ofDeposit, false, "paid")
	}
	events := w.Events()[before:]
	for _, e := range events {
		if e.GetType() != "invoice.updated" || !e.GetInternal() {
			t.Errorf("%s, internal %v", e.GetType(), e.GetInternal())
		}
	}
	if want := 1 + 1 + 1 + 1 + 1 + 1 + 3; len(events) != want {
		t.Errorf("%d events, want %d: one for each invoice that changes", len(events), want)
	}
	v := w.get(balance)
	w.handle(w.card("pi_1", 340, 20, true))
	w.shows(balance, 200, 0, true, "paid")
	w.shows(full, 30, 10, true, "paid")
	w.handle(w.card("pi_1", 340, 20, false))
	w.shows(balance, 200, 0, false, "paid")
	if got := w.get(balance); got.Version != v.Version+2 {
		t.Errorf("version %d after two changes, was %d", got.Version, v.Version)
	}
}

// TestRefundAfterErasure checks that erasing the customer removes the references of payments, and that a later refund still finds
// its invoice.
func TestRefundAfterErasure(t *testing.T) {
	t.Parallel()
	w := newLedger(t)
	full := w.open(domain.FullInvoice, 100)
	w.handle(w.card("pi_1", 100, 0, false))
	w.in(func(ctx context.Context, tx pg.Tx) error {
		list, err := store.EraseInvoices(ctx, tx, w.customer, store.Erased{})
		if len(list) != 1 {
			t.Errorf("erased %d", len(list))
		}
		return err
	})
	if p := w.get(full).Payments[0]; !p.Reference.IsNull() {
		t.Fatal("the reference is still there")
	}
	w.handle(w.card("pi_1", 100, 60, false))
	w.shows(full, 100, 60, false, "paid")
}

// TestEventsInAnyOrder checks that the invoices show the same in the end for any order and any number of repetitions of the events of two
// card payments and a payment that was recorded and reversed.
func TestEventsInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newLedger(t)
	for round := range 15 {
		w.booking = ids.New[ids.BookingPrefix]()
		deposit, full := w.open(domain.DepositInvoice, 100), w.open(domain.FullInvoice, 900)
		one, two := fmt.Sprintf("pi_%da", round), fmt.Sprintf("pi_%db", round)
		all := []kafkax.Message{w.card(one, 500, 0, false), w.card(two, 500, 0, false)}
		for _, charge := range []string{one, two} {
			all = append(all, w.card(charge, 500, 120, false), w.card(charge, 500, 120, true), w.card(charge, 500, 420, charge == two))
		}
		cash := domain.Receipt{ID: ids.New[ids.PaymentPrefix](), Account: w.account(), Invoice: full, Amount: 30, Method: "cash", PaidAt: time.Now()}
		if _, err := w.payments.RecordReceipt(w.ctx, cash, -1); err != nil {
			t.Fatal(err)
		}
		all = append(all, w.event(w.payments.Event(w.account())))
		if _, err := w.payments.ReverseReceipt(w.ctx, w.account(), cash.ID, -1); err != nil {
			t.Fatal(err)
		}
		all = append(all, w.event(w.payments.Event(w.account())))
		all = append(all, all...)
		rand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		w.payments.Page = round % 3
		var done sync.WaitGroup
		for part := range 3 {
			done.Go(func() {
				for n := part; n < len(all); n += 3 {
					if err := w.h.Handle(t.Context(), all[n]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		// The first card payment paid the deposit and 400 of the rest; the other one paid the remaining part. 420 of each is refunded.
		d, f := w.get(deposit), w.get(full)
		if d.AmountRefunded.Amount != 20 || f.AmountRefunded.Amount != 820 || d.Status != "paid" || f.Status != "paid" || !f.Disputed {
			t.Errorf("round %d: refunded %d and %d, %s and %s, disputed %v", round, d.AmountRefunded.Amount, f.AmountRefunded.Amount, d.Status, f.Status, f.Disputed)
		}
	}
}

// TestRefundOfWhatNoInvoiceTook checks that a charge that is refunded before an invoice exists is not allocated to any invoice.
func TestRefundOfWhatNoInvoiceTook(t *testing.T) {
	t.Parallel()
	w := newLedger(t)
	w.handle(w.card("pi_1", 100, 100, false))
	full := w.open(domain.FullInvoice, 100)
	w.handle(w.card("pi_1", 100, 100, true))
	w.shows(full, 0, 0, false, "open")
	if n := w.Count(`select count(*) from charges where refunded = 100 and unapplied = 100 and disputed`); n != 1 {
		t.Error("the charge is not as the newest event says")
	}
}
