package app

import (
	"context"
	"errors"
	"fmt"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// maxMoves is how often a decision is made again because the account has moved.
const maxMoves = 10

// errMoving is the response if the account has moved each time.
var errMoving = apperr.ErrUnavailable.WithCause(errors.New("the account moves too often"))

// receipt records a payment outside the payment gateway. Begin decides on the view of the account and stores the payment. Call records it
// with payments, if the account still has the version of the view; otherwise the view is brought up to date and the decision is made
// again. Finish applies the account, from which the payment counts.
type receipt struct {
	*Accounts

	invoice domain.InvoiceID
	in      domain.PaymentInput
	match   patch.Precondition
	receipt domain.Receipt
	version int64           // of the view on which the decision rests
	account *domain.Account // nil: the payment was recorded before
}

// RecordPayment returns the operation that records money that was paid on an invoice outside the payment gateway.
func (a *Accounts) RecordPayment(id domain.InvoiceID, in domain.PaymentInput, match patch.Precondition) operation.Operation[domain.Invoice] {
	return &receipt{Accounts: a, invoice: id, in: in, match: match}
}

// Name implements operation.Operation.
func (o *receipt) Name() string { return o.receipt.ID.String() }

// Begin stores the payment, or takes over the one that the same request began before. done is true if payments has recorded it.
func (o *receipt) Begin(ctx context.Context, tx pg.Tx, begun string) (done bool, err error) {
	if begun == "" {
		return false, o.begin(ctx, tx)
	}
	id, err := ids.Parse[ids.PaymentPrefix](begun)
	if err != nil {
		return false, fmt.Errorf("operation %q: %w", begun, err)
	}
	return o.resume(ctx, tx, id)
}

func (o *receipt) begin(ctx context.Context, tx pg.Tx) error {
	r, err := o.decide(ctx, tx, ids.New[ids.PaymentPrefix]())
	if err != nil {
		return err
	}
	c := caller.FromContext(ctx)
	r.Calling = r.Calling.Begin(o.Invoices.Now(), c.RequestID, c.Actor())
	o.receipt = r
	store.InsertReceipt(tx, r)
	tx.AfterCommit(func() { failpoint.Here("receipt.begun") })
	return nil
}

// decide returns the payment if the invoice accepts it.
func (o *receipt) decide(ctx context.Context, tx pg.Tx, id domain.PaymentID) (domain.Receipt, error) {
	store.LockAccountOfInvoice(tx, o.invoice)
	account, err := store.AccountOfInvoice(ctx, tx, o.invoice)
	if err != nil {
		return domain.Receipt{}, err
	}
	o.version = account.Version
	current, err := store.Invoice(ctx, tx, o.invoice)
	if err != nil {
		return domain.Receipt{}, err
	}
	at, err := o.Invoices.DocumentContext(ctx)
	if err != nil {
		return domain.Receipt{}, err
	}
	return current.Accept(id, o.in, at, o.match)
}

// resume takes over the request to payments, unless another process holds it. The version on which the earlier attempt has decided is
// not stored, so Call makes the decision again if payments has not recorded the payment.
func (o *receipt) resume(ctx context.Context, tx pg.Tx, id domain.PaymentID) (done bool, err error) {
	if o.receipt, err = store.ReceiptForUpdate(ctx, tx, id); err != nil {
		return false, err
	}
	o.invoice = o.receipt.Invoice
	if !o.receipt.Calling.UnderWay() {
		return true, nil
	}
	real := o.Invoices.Now()
	if o.receipt.Calling.Held(real) {
		return false, operation.ErrUnderWay
	}
	o.receipt.Calling = o.receipt.Calling.Begin(real, "", "")
	store.PutReceiptCall(tx, o.receipt)
	o.version = domain.NoVersion
	return false, nil
}

// Call records the payment with payments. If the account has moved, it makes the decision again.
func (o *receipt) Call(ctx context.Context) error {
	for range maxMoves {
		account, err := o.Payments.RecordReceipt(ctx, o.receipt, o.version)
		failpoint.Here("receipt.recorded")
		switch {
		case err == nil:
			o.account, err = o.whole(ctx, account, o.version)
			return err
		case !errors.Is(err, domain.ErrAccountMoved):
			return refused(err)
		}
		if err := o.Refresh(ctx, o.receipt.Account); err != nil {
			return &operation.RefusedError{Err: err} // payments has not recorded it
		}
		if err := o.DB.Tx(ctx, o.again); err != nil {
			return &operation.RefusedError{Err: err}
		}
	}
	return &operation.RefusedError{Err: errMoving}
}

// whole returns an account of payments with the entries since a version. If it lacks entries, it applies all of them and returns nil.
func (a *Accounts) whole(ctx context.Context, account domain.Account, since int64) (*domain.Account, error) {
	if account.More || since == domain.NoVersion {
		return nil, a.Refresh(ctx, account.AccountRef)
	}
	return &account, nil
}

// refused returns an operation.RefusedError for a call that had no effect.
func refused(err error) error {
	if operation.Refused(err) {
		return &operation.RefusedError{Err: err}
	}
	return err
}

// again decides again whether the invoice accepts the payment. It returns an operation.UnderWay if another attempt has taken over or
// ended the payment.
func (o *receipt) again(ctx context.Context, tx pg.Tx) error {
	store.LockAccount(tx, o.receipt.Account)
	stored, err := store.ReceiptForUpdate(ctx, tx, o.receipt.ID)
	switch {
	case errors.Is(err, domain.ErrPaymentNotFound), err == nil && !stored.Calling.Is(o.receipt.Calling.Lease):
		return operation.ErrUnderWay
	case err != nil:
		return err
	case o.match != nil:
		_, err := o.decide(ctx, tx, o.receipt.ID)
		return err
	}
	current, err := store.Invoice(ctx, tx, o.invoice)
	if err != nil {
		return err
	}
	if o.version, err = store.AccountVersion(ctx, tx, o.receipt.Account); err != nil {
		return err
	}
	return current.Accepts(o.receipt.Amount)
}

// Finish applies the account of payments, in which the payment counts.
func (o *receipt) Finish(ctx context.Context, tx pg.Tx) (domain.Invoice, error) {
	tx.AfterCommit(func() { failpoint.Here("receipt.committed") })
	return o.finish(ctx, tx, o.invoice, o.account, o.version)
}

// finish applies an account of payments, unless it is nil, and returns an invoice.
func (a *Accounts) finish(ctx context.Context, tx pg.Tx, id domain.InvoiceID, account *domain.Account, since int64) (domain.Invoice, error) {
	if account != nil {
		if err := a.apply(ctx, tx, *account, since); err != nil {
			return domain.Invoice{}, err
		}
	}
	at, err := a.Invoices.DocumentContext(ctx)
	if err != nil {
		return domain.Invoice{}, err
	}
	v, err := store.Invoice(ctx, tx, id)
	return v.At(at), err
}

// Release deletes the payment, which payments has not recorded. It returns an operation.UnderWay if another attempt has taken over.
func (o *receipt) Release(ctx context.Context, tx pg.Tx) error {
	current, err := store.ReceiptForUpdate(ctx, tx, o.receipt.ID)
	switch {
	case errors.Is(err, domain.ErrPaymentNotFound): // the other attempt was refused too
		return nil
	case err != nil:
		return err
	case !current.Calling.Is(o.receipt.Calling.Lease):
		return operation.ErrUnderWay // read it again
	}
	return store.DeleteReceipt(ctx, tx, o.receipt.ID)
}

// reversal reverses a payment. Begin checks that the payment can be reversed, Call reverses it with payments, and Finish applies the
// account. Nothing is stored in between: payments reverses a payment once.
type reversal struct {
	*Accounts

	invoice domain.InvoiceID
	payment domain.PaymentID
	match   patch.Precondition
	named   bool
	of      domain.AccountRef
	charge  domain.PaymentID
	version int64
	account *domain.Account
}

// ReversePayment returns the operation that reverses a recorded payment.
func (a *Accounts) ReversePayment(id domain.InvoiceID, payment domain.PaymentID, match patch.Precondition) operation.Operation[domain.Invoice] {
	return &reversal{Accounts: a, invoice: id, payment: payment, match: match}
}

// Name implements operation.Operation.
func (o *reversal) Name() string {
	if !o.named {
		return ""
	}
	return "reversal of " + o.payment.String()
}

// Begin checks that the payment can be reversed. done is true if it is reversed already.
func (o *reversal) Begin(ctx context.Context, tx pg.Tx, begun string) (done bool, err error) {
	if begun != "" {
		o.match = anyVersion{} // the request was accepted before
	}
	store.LockAccountOfInvoice(tx, o.invoice)
	account, err := store.AccountOfInvoice(ctx, tx, o.invoice)
	if err != nil {
		return false, err
	}
	current, err := store.Invoice(ctx, tx, o.invoice)
	if err != nil {
		return false, err
	}
	p, err := current.Reversible(o.payment, o.match)
	if err != nil {
		return false, err
	}
	o.named, o.of, o.version = true, account.AccountRef, account.Version
	if err := o.charge.Scan(p.Part.Charge); err != nil {
		return false, err
	}
	r, err := store.ReceiptForUpdate(ctx, tx, o.charge) // the part of this invoice may have been put on another one
	return r.Amount == 0, err
}

// Call reverses the payment with payments.
func (o *reversal) Call(ctx context.Context) error {
	account, err := o.Payments.ReverseReceipt(ctx, o.of, o.charge, o.version)
	failpoint.Here("reversal.recorded")
	if err != nil {
		return refused(err)
	}
	o.account, err = o.whole(ctx, account, o.version)
	return err
}

// Finish applies the account of payments, in which the payment no longer counts.
func (o *reversal) Finish(ctx context.Context, tx pg.Tx) (domain.Invoice, error) {
	tx.AfterCommit(func() { failpoint.Here("reversal.committed") })
	return o.finish(ctx, tx, o.invoice, o.account, o.version)
}

// Release implements operation.Operation. Begin has stored nothing.
func (o *reversal) Release(context.Context, pg.Tx) error { return nil }

// anyVersion is a precondition that always holds.
type anyVersion struct{}

// Check implements patch.Precondition.
func (anyVersion) Check(int64) error { return nil }

// takeOver takes over the request to payments, unless it has ended or another process holds it.
func (o *receipt) takeOver(ctx context.Context, tx pg.Tx) error {
	done, err := o.resume(ctx, tx, o.receipt.ID)
	if done || errors.Is(err, domain.ErrPaymentNotFound) {
		return operation.ErrUnderWay
	}
	return err
}

func (o *receipt) began() (request, actor string) {
	return o.receipt.Calling.Request, o.receipt.Calling.Actor
}

func (o *receipt) repeat(ctx context.Context) error { return o.Call(ctx) }
