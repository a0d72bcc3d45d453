package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// Accounts are the view of the ledger of payments: which payment has paid which invoice, and what was refunded.
type Accounts struct {
	DB       *pg.DB
	Invoices *Invoices
	Payments PaymentService
	Tenants  TenantService
}

// ApplyEvent applies the state of an account that an event reports, unless it is known. The context carries the event's tenant and mode.
func (a *Accounts) ApplyEvent(ctx context.Context, account domain.Account) error {
	from := caller.FromContext(ctx)
	known, err := store.AccountVersion(ctx, a.DB.Read(ctx), account.AccountRef)
	if err != nil || account.Version <= known {
		return err
	}
	acting, err := a.Tenants.Acting(ctx, from.Tenant, from.Mode)
	if err != nil {
		return err
	}
	acting.RequestID = from.RequestID
	err = operation.RetryTx(caller.With(ctx, acting), a.DB, func(ctx context.Context, tx pg.Tx) error {
		return a.apply(ctx, tx, account, account.Version-1)
	})
	if err != nil {
		return fmt.Errorf("apply account %s: %w", account.ID(), err)
	}
	return nil
}

// Refresh reads the account from payments, and applies what has changed since the view.
func (a *Accounts) Refresh(ctx context.Context, of domain.AccountRef) error {
	for {
		since, err := store.AccountVersion(ctx, a.DB.Read(ctx), of)
		if err != nil {
			return err
		}
		account, err := a.Payments.Account(ctx, of, since)
		if err != nil || account.Version <= since {
			return err
		}
		err = operation.RetryTx(ctx, a.DB, func(ctx context.Context, tx pg.Tx) error { return a.apply(ctx, tx, account, since) })
		if err != nil || !account.More {
			return err
		}
	}
}

// Fresh is an account whose view was brought up to date since the request began.
type Fresh struct{ of domain.AccountRef }

// current holds the money of an invoice, and reads its account as of a version that is not older than the request.
func (a *Accounts) current(ctx context.Context, tx pg.Tx, id domain.InvoiceID, f *Fresh) (store.InvoiceAccount, error) {
	store.LockAccountOfInvoice(tx, id)
	account, err := store.AccountOfInvoice(ctx, tx, id)
	if err == nil && f.of != account.AccountRef {
		err = &operation.Again{Why: "account " + account.ID() + " may have moved", Fetch: func(ctx context.Context) error {
			f.of = account.AccountRef
			return a.Refresh(ctx, account.AccountRef)
		}}
	}
	return account, err
}

// Open is Invoices.Open with everything that was paid for the booking until now.
func (a *Accounts) Open(ctx context.Context, tx pg.Tx, id domain.InvoiceID, info *Opening, match patch.Precondition) (domain.Invoice, error) {
	if _, err := a.current(ctx, tx, id, &info.Fresh); err != nil {
		return domain.Invoice{}, err
	}
	return a.Invoices.Open(ctx, tx, id, info, match)
}

// Prepare returns the account of an invoice before it is read.
func (a *Accounts) Prepare(context.Context) (*Fresh, error) { return &Fresh{}, nil }

// Void is Invoices.Void of an invoice that is not paid until now.
func (a *Accounts) Void(ctx context.Context, tx pg.Tx, id domain.InvoiceID, f *Fresh, match patch.Precondition) (domain.Invoice, error) {
	account, err := a.current(ctx, tx, id, f)
	if err != nil {
		return domain.Invoice{}, err
	}
	if account.Calling {
		return domain.Invoice{}, operation.ErrUnderWay
	}
	return a.Invoices.Void(ctx, tx, id, match)
}

// MarkUncollectible is Invoices.MarkUncollectible of an invoice that is not paid until now.
func (a *Accounts) MarkUncollectible(ctx context.Context, tx pg.Tx, id domain.InvoiceID, f *Fresh, match patch.Precondition) (domain.Invoice, error) {
	if _, err := a.current(ctx, tx, id, f); err != nil {
		return domain.Invoice{}, err
	}
	return a.Invoices.MarkUncollectible(ctx, tx, id, match)
}

// Dues returns what is due on the invoices of an account, as of a version of it or a later one.
func (a *Accounts) Dues(ctx context.Context, of domain.AccountRef, version int64, named domain.InvoiceID) (domain.Dues, error) {
	dues, err := store.Dues(ctx, a.DB.Read(ctx), of, named)
	if err != nil || dues.Version >= version {
		return dues, err
	}
	if err := a.Refresh(ctx, of); err != nil {
		return domain.Dues{}, err
	}
	return store.Dues(ctx, a.DB.Read(ctx), of, named)
}

// apply brings the view of an account up to a state of payments, with the entries that changed after the version since, and allocates its
// money. It does nothing if the view is as new. If the view is older than since, it returns an operation.Again that reads the account.
func (a *Accounts) apply(ctx context.Context, tx pg.Tx, account domain.Account, since int64) error {
	charges := make([]string, len(account.Entries))
	for i, e := range account.Entries {
		charges[i] = e.Charge(account.AccountRef).ID
	}
	version, known, err := store.AccountForUpdate(ctx, tx, account.AccountRef, charges)
	if err != nil || account.Applied() <= version {
		return err
	}
	if since > version {
		return &operation.Again{Why: "entries of account " + account.ID() + " are missing", Fetch: func(ctx context.Context) error {
			return a.Refresh(ctx, account.AccountRef)
		}}
	}
	store.PutAccount(tx, account)
	entries := slices.DeleteFunc(slices.Clone(account.Entries), func(e domain.Entry) bool { return e.Version <= version })
	slices.SortStableFunc(entries, func(x, y domain.Entry) int { return x.At.Compare(y.At) }) // as if each payment had arrived at its time
	for _, e := range entries {
		c := e.Charge(account.AccountRef)
		was, stored := known[c.ID]
		if e.Kind == domain.ReturnEntry || c.Amount.Minor == 0 || e.ReversedAt != nil && !stored || stored && was.Recorded {
			continue
		}
		c.Reference = was.Reference
		if err := a.enter(ctx, tx, c); err != nil {
			return err
		}
		known[c.ID] = store.StoredCharge{Amount: c.Amount.Minor, Version: e.Version, Recorded: true}
	}
	returned := int64(0)
	for _, e := range entries {
		if err := a.update(ctx, tx, e, account.AccountRef, known); err != nil {
			return err
		}
		if e.Kind == domain.ReturnEntry && e.Note.IsZero() && e.ReversedAt == nil {
			returned += e.Amount
		}
	}
	return a.handBack(ctx, tx, account.AccountRef, returned)
}

// handBack stores how much of an amount that was handed back was money on no invoice.
func (a *Accounts) handBack(ctx context.Context, tx pg.Tx, of domain.AccountRef, amount int64) error {
	if amount == 0 {
		return nil
	}
	back, err := store.HandedBack(ctx, tx, of)
	if err != nil {
		return err
	}
	if free := back.More(amount); free > 0 {
		store.AddReturnedFree(tx, of, free)
	}
	return nil
}

// enter stores a new charge, and allocates it to invoices, regardless of its refunds.
func (a *Accounts) enter(ctx context.Context, tx pg.Tx, c domain.Charge) error {
	rest := c.Amount.Minor
	if !c.Invoice.IsZero() {
		taken, err := a.Invoices.payWith(ctx, tx, c.Invoice, c.Account, c.Unallocated())
		if err != nil && !errors.Is(err, domain.ErrInvoiceNotFound) {
			return err
		}
		rest -= taken
	}
	c.Refunded, c.Disputed = 0, false
	store.PutCharge(tx, c, rest)
	if rest == 0 {
		return nil
	}
	_, err := a.Invoices.allocate(ctx, tx, c.Account, c.Invoice)
	return err
}

// update applies the state of an entry whose charge is stored.
func (a *Accounts) update(ctx context.Context, tx pg.Tx, e domain.Entry, of domain.AccountRef, known map[string]store.StoredCharge) error {
	c := e.Charge(of)
	was, stored := known[c.ID]
	switch {
	case e.Kind == domain.ReturnEntry && !e.Note.IsZero():
		store.EndManualRefund(tx, e.Note)
		return nil
	case e.Kind == domain.ReceiptEntry && e.ReversedAt != nil && stored && was.Amount > 0:
		return a.reverse(ctx, tx, c)
	case e.Kind == domain.ReceiptEntry && stored && was.Recorded && was.Version == 0: // LedgerSync has recorded it
		return store.PutChargeState(ctx, tx, c)
	case e.Kind != domain.CardEntry, !stored, c.Refunded == was.Refunded && c.Directed == was.Directed && c.Disputed == was.Disputed && c.Amount.Minor <= was.Amount:
		return nil
	}
	if err := store.PutChargeState(ctx, tx, c); err != nil {
		return err
	}
	if err := a.Invoices.copyRefunds(ctx, tx, of, c.ID); err != nil {
		return err
	}
	_, err := a.Invoices.allocate(ctx, tx, of, c.Invoice) // a failed refund frees money
	return err
}

// reverse takes a reversed payment from the invoices that it has paid. Other money of the account then pays them.
func (a *Accounts) reverse(ctx context.Context, tx pg.Tx, c domain.Charge) error {
	list, err := store.ChargedInvoices(ctx, tx, c.Account, c.ID)
	if err != nil {
		return err
	}
	for _, p := range list { // the first change of an invoice reverses all parts on it
		_, err := a.Invoices.change(ctx, tx, p.Invoice, func(current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error) {
			return current.Reversed(c.ID, at)
		}, store.ReducePayments)
		if err != nil {
			return err
		}
	}
	store.ClearCharge(tx, c.ID)
	_, err = a.Invoices.allocate(ctx, tx, c.Account, domain.InvoiceID{})
	return err
}
