package consume_test

import (
	"context"
	"testing"
	"time"

	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/peers/peerstest"
	"holdfast.dev/services/customers/internal/store"
)

// anyVersion is a precondition that always holds.
type anyVersion struct{}

// Check implements patch.Precondition.
func (anyVersion) Check(int64) error { return nil }

// use runs a use case in a transaction, without a stored response.
func (w *ledger) use(use func(ctx context.Context, tx pg.Tx) (domain.Invoice, error)) {
	w.T.Helper()
	err := operation.RetryTx(w.ctx, w.DB.App, func(ctx context.Context, tx pg.Tx) error {
		_, err := use(ctx, tx)
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// draft creates a draft invoice of the booking.
func (w *ledger) draft(total int64) (id domain.InvoiceID) {
	w.T.Helper()
	v := domain.Invoice{
		ID: ids.New[ids.InvoicePrefix](), Status: domain.InvoiceDraft, Kind: domain.FullInvoice, CustomerID: w.customer, BookingID: w.booking,
		Lines: []domain.Line{{Description: "d", Quantity: 1, UnitAmount: total}}, Version: 1,
	}
	v.Paid.Currency = "USD"
	var err error
	if v.Lines, v.Totals, err = domain.Price(v.Lines, domain.NoTerms("USD")); err != nil {
		w.T.Fatal(err)
	}
	w.in(func(ctx context.Context, tx pg.Tx) error {
		_, err := store.InsertInvoice(ctx, tx, v)
		return err
	})
	return v.ID
}

func (w *ledger) invoices() *app.Invoices {
	return &app.Invoices{Bookings: &peerstest.Bookings{}, Tenants: &peerstest.Tenants{Info: domain.Invoicing{Prefix: "INV-"}}, Wake: func() {}, Now: time.Now}
}

// TestMoneyBeforeAnInvoice checks that a card deposit from before any invoice is allocated to the next invoice that is opened,
// without its refunded part.
func TestMoneyBeforeAnInvoice(t *testing.T) {
	t.Parallel()
	w := newLedger(t)
	pgtest.Scoped(t, w.DB)
	w.handle(w.card("pi_1", 300, 0, false), w.card("pi_1", 300, 50, false))
	first, second := w.draft(200), w.draft(100)
	for _, id := range []domain.InvoiceID{first, second} {
		info, err := w.invoices().PrepareOpen(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.use(func(ctx context.Context, tx pg.Tx) (domain.Invoice, error) {
			return w.invoices().Open(ctx, tx, id, info, anyVersion{})
		})
	}
	w.shows(first, 200, 0, false, "paid")
	w.shows(second, 50, 0, false, "partially_paid")
	w.handle(w.card("pi_1", 300, 0, false)) // the refund failed
	w.shows(second, 100, 0, false, "paid")
}

// TestMoneyAfterAReversal checks that unallocated card money replaces a cash payment that is reversed.
func TestMoneyAfterAReversal(t *testing.T) {
	t.Parallel()
	w := newLedger(t)
	pgtest.Scoped(t, w.DB)
	id := w.open(domain.FullInvoice, 100)
	in := domain.PaymentInput{Method: "cash"}
	in.Amount.Minor, in.Amount.Currency = 100, "USD"
	runner := operation.Runner{DB: w.DB.App, Keys: &idemstore.Store{DB: w.DB.App, Now: time.Now}}
	if err := operation.Resume(w.ctx, runner, w.accounts.RecordPayment(id, in, anyVersion{})); err != nil {
		t.Fatal(err)
	}
	w.handle(w.card("pi_1", 100, 0, false))
	v, err := store.Invoice(w.ctx, w.DB.App.Read(w.ctx), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := operation.Resume(w.ctx, runner, w.accounts.ReversePayment(id, v.Payments[0].ID, anyVersion{})); err != nil {
		t.Fatal(err)
	}
	w.shows(id, 100, 0, false, "paid")
	if n := w.Count(`select count(*) from charges where method = 'card' and unapplied = 0`); n != 1 {
		t.Error("the charge lies on no invoice")
	}
}
