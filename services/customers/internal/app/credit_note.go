package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// CreditNotes are the use cases of a credit note.
type CreditNotes struct {
	DB       *pg.DB
	Invoices *Invoices
	Accounts *Accounts
	Payments PaymentService
	Tenants  TenantService
}

// creditNote creates a credit note, and requests its refund from payments. Before, it brings the view of the account up to date. Begin
// writes the credit note with its number and the credited invoice. Call requests the refund, which payments creates only once; if the
// account has moved, it computes the refund again. Finish writes the state of the refund. The credit note stays, whatever becomes of its
// refund.
type creditNote struct {
	*CreditNotes

	invoice domain.InvoiceID
	in      domain.CreditNoteInput
	match   patch.Precondition
	info    domain.Invoicing
	note    domain.CreditNote
	fresh   Fresh
	version int64              // of the view on which the refund rests
	refund  *domain.NoteRefund // nil: unknown, or no refund through the gateway is requested
	account *domain.Account    // nil: unknown, or no manual refund is requested
}

// Create returns the operation that creates a credit note of an invoice. If the tenant is not known, only the language of the line that
// the platform writes depends on it: a credit note does not fail.
func (a *CreditNotes) Create(
	ctx context.Context, invoice domain.InvoiceID, in domain.CreditNoteInput, match patch.Precondition,
) operation.Operation[domain.CreditNote] {
	info, _ := a.Tenants.Invoicing(ctx)
	return &creditNote{CreditNotes: a, invoice: invoice, in: in, match: match, info: info}
}

// Name implements operation.Operation.
func (o *creditNote) Name() string { return o.note.ID.String() }

// Begin writes the credit note, or takes over the request to payments of the credit note that the same request began before.
func (o *creditNote) Begin(ctx context.Context, tx pg.Tx, begun string) (done bool, err error) {
	if begun == "" {
		account, err := o.Accounts.current(ctx, tx, o.invoice, &o.fresh)
		if err != nil {
			return false, err
		}
		if account.Calling {
			return false, operation.ErrUnderWay
		}
		o.version = account.Version
		o.note, err = o.issue(ctx, tx, account.AccountRef)
		return false, err
	}
	id, err := ids.Parse[ids.CreditNotePrefix](begun)
	if err != nil {
		return false, fmt.Errorf("operation %q: %w", begun, err)
	}
	if o.note, err = store.CreditNoteForUpdate(ctx, tx, id); err != nil {
		return false, err
	}
	if !o.note.Calling.UnderWay() {
		return true, nil
	}
	return false, o.lease(ctx, tx)
}

// lease takes over the request to payments, unless another process holds it. The version on which the earlier attempt has computed the
// refund is not stored, so Call computes the refund again if payments has not recorded it.
func (o *creditNote) lease(ctx context.Context, tx pg.Tx) (err error) {
	real := o.Invoices.Now()
	if o.note.Calling.Held(real) {
		return operation.ErrUnderWay
	}
	o.note.Calling = o.note.Calling.Begin(real, "", "")
	o.version = domain.NoVersion
	o.note, err = store.UpdateCreditNote(ctx, tx, o.note, false)
	return err
}

// refunds reads what limits the refund of a credit note.
func (a *CreditNotes) refunds(ctx context.Context, tx pg.Tx, of domain.AccountRef, id domain.InvoiceID) (r domain.Refunds, err error) {
	if r.Held, err = store.NoteRefunds(ctx, tx, id); err != nil {
		return r, err
	}
	r.HandedBack, err = a.Invoices.handedBack(ctx, tx, of, id)
	return r, err
}

// issue writes the invoice with one more credit note, the credit note, and both events. It puts what the invoice no longer needs on other
// invoices of the account.
func (o *creditNote) issue(ctx context.Context, tx pg.Tx, of domain.AccountRef) (n domain.CreditNote, err error) {
	in := o.in
	_, err = o.Invoices.change(ctx, tx, o.invoice, func(current domain.Invoice, at domain.DocumentContext) (v domain.Invoice, err error) {
		if in.Way != domain.RefundNone {
			if in.Refunds, err = o.refunds(ctx, tx, of, o.invoice); err != nil {
				return domain.Invoice{}, err
			}
		}
		in.Wording = view.NewLanguage(o.info.Language(current.Locale()))
		v, n, err = current.Credit(ids.New[ids.CreditNotePrefix](), in, at, o.match)
		return v, err
	}, func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
		if !n.Refund.IsZero() {
			c := caller.FromContext(ctx)
			n.Calling = n.Calling.Begin(o.Invoices.Now(), c.RequestID, c.Actor())
		}
		saved, err := store.UpdateInvoice(ctx, tx, v)
		if err != nil {
			return domain.Invoice{}, err
		}
		n, err = store.InsertCreditNote(ctx, tx, n)
		store.PutNoteRefunds(tx, n, n.Parts)
		failpoint.Here("credit.numbered")
		return saved, err
	})
	if err != nil {
		return domain.CreditNote{}, err
	}
	body, err := outbox.Body(ctx, view.CreditNote, n)
	if err != nil {
		return domain.CreditNote{}, err
	}
	tx.AfterCommit(func() { failpoint.Here("credit.issued") })
	if err := outbox.Emit(ctx, tx, o.Invoices.Wake, creditNoteUpdated(n, body, nil)); err != nil {
		return domain.CreditNote{}, err
	}
	if err := o.copyRefunds(ctx, tx, of, n.Parts); err != nil {
		return domain.CreditNote{}, err
	}
	_, err = o.Invoices.allocate(ctx, tx, of, domain.InvoiceID{})
	return n, err
}

// copyRefunds writes the refunded amounts of the charges of which a credit note refunds parts.
func (a *CreditNotes) copyRefunds(ctx context.Context, tx pg.Tx, of domain.AccountRef, parts []domain.NotePart) error {
	for _, p := range parts {
		if err := a.Invoices.copyRefunds(ctx, tx, of, p.Charge); err != nil {
			return err
		}
	}
	return nil
}

// Call requests the refund from payments. An unknown outcome is not an error: a worker repeats the request.
func (o *creditNote) Call(ctx context.Context) error {
	if o.note.Calling.UnderWay() {
		_ = o.request(ctx)
	}
	return nil
}

// request requests the refund from payments. If the account has moved, it computes the refund again. It returns an error if the outcome
// is unknown.
func (o *creditNote) request(ctx context.Context) error {
	for range maxMoves {
		err := o.send(ctx)
		failpoint.Here("credit.refunded")
		if !errors.Is(err, domain.ErrAccountMoved) {
			return err
		}
		if err := o.Accounts.Refresh(ctx, o.note.Account()); err != nil {
			return err
		}
		if err := o.DB.Tx(ctx, o.again); err != nil || !o.note.Calling.UnderWay() {
			return err
		}
	}
	return errMoving
}

// send sends one request to payments.
func (o *creditNote) send(ctx context.Context) error {
	if o.note.Way == domain.RefundManual {
		account, err := o.Payments.RecordReturn(ctx, o.note, o.version)
		if operation.Refused(err) && !errors.Is(err, domain.ErrAccountMoved) {
			o.refund = &domain.NoteRefund{Status: "failed"}
			return nil
		}
		if err == nil {
			o.account, err = o.Accounts.whole(ctx, account, o.version)
		}
		return err
	}
	r, err := o.Payments.RefundNote(ctx, o.note, o.version)
	var refused *domain.RefusedRefundError
	if errors.As(err, &refused) {
		r, err = domain.NoteRefund{Status: "failed"}, nil
	}
	if err == nil {
		o.refund = &r
	}
	return err
}

// again computes the refund of the credit note again, which payments has not recorded.
func (o *creditNote) again(ctx context.Context, tx pg.Tx) error {
	of := o.note.Account()
	store.LockAccount(tx, of)
	if _, err := store.InvoiceForUpdate(ctx, tx, o.note.InvoiceID); err != nil {
		return err
	}
	n, err := store.CreditNoteForUpdate(ctx, tx, o.note.ID)
	if err != nil || !n.Calling.UnderWay() {
		o.note = n
		return err
	}
	if o.version, err = store.AccountVersion(ctx, tx, of); err != nil {
		return err
	}
	none := slices.Clone(n.Parts)
	for i := range none {
		none[i].Amount = 0
	}
	store.PutNoteRefunds(tx, n, none)
	if err := o.copyRefunds(ctx, tx, of, none); err != nil {
		return err
	}
	_, err = o.Invoices.change(ctx, tx, n.InvoiceID, func(current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error) {
		refunds, err := o.refunds(ctx, tx, of, n.InvoiceID)
		if err != nil {
			return domain.Invoice{}, err
		}
		v, next := current.Refund(n, refunds, at)
		if o.note, err = o.save(ctx, tx, n, next); err != nil {
			return domain.Invoice{}, err
		}
		store.PutNoteRefunds(tx, o.note, o.note.Parts)
		return v, store.PutReturned(ctx, tx, v.ID, v.Returned)
	}, store.UpdateInvoice)
	if err != nil {
		return err
	}
	return o.copyRefunds(ctx, tx, of, o.note.Parts)
}

// Finish writes the state of the refund.
func (o *creditNote) Finish(ctx context.Context, tx pg.Tx) (domain.CreditNote, error) {
	tx.AfterCommit(func() { failpoint.Here("credit.committed") })
	if o.account != nil {
		if err := o.Accounts.apply(ctx, tx, *o.account, o.version); err != nil {
			return domain.CreditNote{}, err
		}
	}
	if o.refund == nil {
		return store.CreditNote(ctx, tx, o.note.ID)
	}
	return o.apply(ctx, tx, o.note.ID, *o.refund)
}

// Release implements operation.Operation. It is never called, because Call refuses nothing.
func (o *creditNote) Release(context.Context, pg.Tx) error { return nil }

// apply writes a state of the refund of a credit note to the credit note, its invoice, and the parts of the charges that it refunds.
// It locks the money of the booking first, as everything does that moves money between invoices, and then the invoice.
func (a *CreditNotes) apply(ctx context.Context, tx pg.Tx, id domain.CreditNoteID, r domain.NoteRefund) (domain.CreditNote, error) {
	known, err := store.CreditNote(ctx, tx, id)
	if err != nil {
		return domain.CreditNote{}, err
	}
	of := known.Account()
	store.LockAccount(tx, of)
	if _, err := store.InvoiceForUpdate(ctx, tx, known.InvoiceID); err != nil {
		return domain.CreditNote{}, err
	}
	current, err := store.CreditNoteForUpdate(ctx, tx, id)
	if err != nil {
		return domain.CreditNote{}, err
	}
	next, parts, newer := current.Refunded(r)
	if !newer {
		return current, nil
	}
	saved, err := a.save(ctx, tx, current, next)
	if err != nil {
		return domain.CreditNote{}, err
	}
	if err := a.returned(ctx, tx, next, next.Returned-current.Returned); err != nil {
		return domain.CreditNote{}, err
	}
	store.PutNoteRefunds(tx, saved, parts)
	if err := a.copyRefunds(ctx, tx, of, parts); err != nil {
		return domain.CreditNote{}, err
	}
	if next.Returned < current.Returned {
		_, err = a.Invoices.allocate(ctx, tx, of, domain.InvoiceID{})
	}
	return saved, err
}

// save writes a changed credit note, with an event if the change is visible.
func (a *CreditNotes) save(ctx context.Context, tx pg.Tx, current, next domain.CreditNote) (domain.CreditNote, error) {
	previous, err := outbox.Previous(ctx, view.CreditNote, current, next)
	if err != nil {
		return domain.CreditNote{}, err
	}
	visible := string(previous) != "{}"
	saved, err := store.UpdateCreditNote(ctx, tx, next, visible)
	if err != nil || !visible {
		return saved, err
	}
	body, err := outbox.Body(ctx, view.CreditNote, saved)
	if err != nil {
		return domain.CreditNote{}, err
	}
	return saved, outbox.Emit(ctx, tx, a.Invoices.Wake, creditNoteUpdated(saved, body, previous))
}

// returned changes what the credit notes of an invoice have refunded by one of them, whether or not this is visible.
func (a *CreditNotes) returned(ctx context.Context, tx pg.Tx, n domain.CreditNote, more int64) error {
	if more == 0 {
		return nil
	}
	var sum domain.Returned
	_, err := a.Invoices.change(ctx, tx, n.InvoiceID, func(current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error) {
		next := current.ReturnedBy(more, n.Way, at)
		sum = next.Returned
		return next, nil
	}, store.UpdateInvoice)
	if err != nil {
		return err
	}
	return store.PutReturned(ctx, tx, n.InvoiceID, sum)
}

// ApplyEvent applies an event about the refund of a credit note once. The context carries the event's tenant and mode.
func (a *CreditNotes) ApplyEvent(ctx context.Context, event ids.Event, id domain.CreditNoteID, r domain.NoteRefund) error {
	from := caller.FromContext(ctx)
	acting, err := a.Tenants.Acting(ctx, from.Tenant, from.Mode)
	if err != nil {
		return err
	}
	acting.RequestID = from.RequestID
	err = a.DB.Tx(caller.With(ctx, acting), func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		_, err = a.apply(ctx, tx, id, r)
		return err
	})
	if err != nil {
		return fmt.Errorf("apply refund of credit note %s: %w", id, err)
	}
	return nil
}

// takeOver takes over the request to payments, unless it has ended or another process holds it.
func (o *creditNote) takeOver(ctx context.Context, tx pg.Tx) (err error) {
	if o.note, err = store.CreditNoteForUpdate(ctx, tx, o.note.ID); err != nil {
		return err
	}
	if !o.note.Calling.UnderWay() {
		return operation.ErrUnderWay
	}
	return o.lease(ctx, tx)
}

func (o *creditNote) began() (request, actor string) {
	return o.note.Calling.Request, o.note.Calling.Actor
}

// repeat is Call, but returns an error if the outcome is still unknown.
func (o *creditNote) repeat(ctx context.Context) error { return o.request(ctx) }
