package app

import (
	"context"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// copyRefunds writes the refunded amounts and the dispute of a charge to the invoices that it has paid. It locks the invoices in the order in
// which they were paid, and changes each once, with all parts of the charge.
func (a *Invoices) copyRefunds(ctx context.Context, tx pg.Tx, of domain.AccountRef, charge string) error {
	c, unapplied, err := store.Charge(ctx, tx, of, charge)
	if err != nil {
		return err
	}
	list, err := store.ChargedInvoices(ctx, tx, of, charge)
	if err != nil {
		return err
	}
	var invoices []domain.InvoiceID
	parts := map[domain.InvoiceID]map[domain.PaymentID]int64{}
	for i, refunded := range domain.RefundedParts(c.Refunded, unapplied, list) {
		p := list[i]
		if parts[p.Invoice] == nil {
			invoices, parts[p.Invoice] = append(invoices, p.Invoice), map[domain.PaymentID]int64{}
		}
		parts[p.Invoice][p.Payment] = refunded
	}
	for _, id := range invoices {
		_, err := a.change(ctx, tx, id, func(current domain.Invoice, _ domain.DocumentContext) (domain.Invoice, error) {
			return current.Refunded(parts[id], c.Disputed), nil
		}, func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
			return store.RefundPayments(ctx, tx, v, parts[id], c.Disputed)
		})
		if err != nil {
			return err
		}
	}
	return store.PutDisputed(ctx, tx, list, c.Disputed) // also if the invoice does not change: another charge may be disputed too
}

// changeAndAllocate changes an invoice. If the invoice awaits money afterwards, it allocates the unallocated money of its account to the
// account's invoices.
func (a *Invoices) changeAndAllocate(
	ctx context.Context, tx pg.Tx, id domain.InvoiceID, apply func(current domain.Invoice, at domain.DocumentContext) (domain.Invoice, error),
	write func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error),
) (domain.Invoice, error) {
	store.LockAccountOfInvoice(tx, id)
	v, err := a.change(ctx, tx, id, apply, write)
	if err != nil || v.BookingID.IsZero() || !v.Status.Awaits() {
		return v, err
	}
	store.LockAccount(tx, v.Account()) // the draft may have got another booking in the meantime
	moved, err := a.allocate(ctx, tx, v.Account(), domain.InvoiceID{})
	if err != nil || !moved {
		return v, err
	}
	at, err := a.DocumentContext(ctx)
	if err != nil {
		return domain.Invoice{}, err
	}
	v, err = store.Invoice(ctx, tx, id)
	return v.At(at), err
}

// allocate puts money of an account on the invoices that await money: first on the named one, then on the oldest. It takes the money
// that lies on no invoice, and then what credited invoices no longer need. It reports whether it has allocated any. The transaction
// holds the money of the account.
func (a *Invoices) allocate(ctx context.Context, tx pg.Tx, of domain.AccountRef, named domain.InvoiceID) (moved bool, err error) {
	list, err := store.MoneyInvoices(ctx, tx, of, named)
	if err != nil {
		return false, err
	}
	awaiting, credited := split(list)
	if len(awaiting) == 0 {
		return false, nil
	}
	for freed := true; freed; { // what is freed may first cover what others have refunded
		charges, err := store.UnallocatedCharges(ctx, tx, of)
		if err != nil || len(charges)+len(credited) == 0 {
			return moved, err
		}
		back, err := store.HandedBack(ctx, tx, of)
		if err != nil {
			return false, err
		}
		placed, err := a.allocateTo(ctx, tx, of, charges, awaiting, back.Free)
		if err != nil {
			return false, err
		}
		moved = moved || placed
		if freed, err = a.free(ctx, tx, of, awaiting, credited, back.OfInvoices()); err != nil {
			return false, err
		}
	}
	return moved, nil
}

// split separates the invoices that await money from those that may have too much of it.
func split(list []store.MoneyInvoice) (awaiting, credited []domain.InvoiceID) {
	for _, v := range list {
		if v.Awaits {
			awaiting = append(awaiting, v.ID)
		} else {
			credited = append(credited, v.ID)
		}
	}
	return awaiting, credited
}

// allocateTo puts the unallocated parts of charges on invoices, except an amount that was handed back.
func (a *Invoices) allocateTo(
	ctx context.Context, tx pg.Tx, of domain.AccountRef, charges []domain.UnallocatedCharge, awaiting []domain.InvoiceID, back int64,
) (moved bool, err error) {
	for _, c := range charges {
		handed := min(back, c.Rest)
		c.Rest, back = c.Rest-handed, back-handed
		for _, id := range awaiting {
			if c.Rest == 0 {
				break
			}
			taken, err := a.payWith(ctx, tx, id, of, c)
			if err != nil {
				return false, err
			}
			if taken > 0 {
				c.Rest, c.Parts, moved = c.Rest-taken, c.Parts+1, true
				if err := store.AddUnapplied(ctx, tx, c.ID, -taken); err != nil {
					return false, err
				}
			}
		}
	}
	return moved, nil
}

// payWith puts as much of a charge on an invoice as the invoice accepts.
func (a *Invoices) payWith(
	ctx context.Context, tx pg.Tx, id domain.InvoiceID, of domain.AccountRef, c domain.UnallocatedCharge,
) (taken int64, err error) {
	_, err = a.change(ctx, tx, id, func(current domain.Invoice, at domain.DocumentContext) (out domain.Invoice, err error) {
		if current.Account() != of {
			return current, nil
		}
		out, taken, err = current.PayWith(c, at)
		return out, err
	}, store.AddPayment)
	return taken, err
}

// free takes what credited invoices no longer need from them, as far as the others await it, except an amount that was handed back.
func (a *Invoices) free(
	ctx context.Context, tx pg.Tx, of domain.AccountRef, awaiting, credited []domain.InvoiceID, back int64,
) (freed bool, err error) {
	slack, sum, err := a.slack(ctx, tx, credited)
	if err != nil || sum <= back {
		return false, err
	}
	awaited := int64(0)
	for _, id := range awaiting {
		v, err := store.Invoice(ctx, tx, id)
		if err != nil {
			return false, err
		}
		awaited += v.Due().Minor
	}
	for left := min(sum-back, awaited); len(credited) > 0 && left > 0; credited = credited[1:] {
		amount := min(left, slack[credited[0]])
		left -= amount
		some, err := a.freeFrom(ctx, tx, of, credited[0], amount)
		if err != nil {
			return false, err
		}
		freed = freed || some
	}
	return freed, nil
}

// slack returns what each of the invoices no longer needs, and the sum.
func (a *Invoices) slack(ctx context.Context, tx pg.Tx, credited []domain.InvoiceID) (of map[domain.InvoiceID]int64, sum int64, err error) {
	of = map[domain.InvoiceID]int64{}
	for _, id := range credited {
		v, err := store.Invoice(ctx, tx, id)
		if err != nil {
			return nil, 0, err
		}
		of[id] = v.Slack()
		sum += of[id]
	}
	return of, sum, nil
}

// freeFrom takes an amount of its slack from an invoice. It reports whether a charge of the invoice has some of it.
func (a *Invoices) freeFrom(ctx context.Context, tx pg.Tx, of domain.AccountRef, id domain.InvoiceID, amount int64) (some bool, err error) {
	if amount == 0 {
		return false, nil
	}
	held, err := store.NoteRefunds(ctx, tx, id)
	if err != nil {
		return false, err
	}
	var freed []domain.NotePart
	_, err = a.change(ctx, tx, id, func(current domain.Invoice, at domain.DocumentContext) (v domain.Invoice, err error) {
		v, freed, err = current.Freed(amount, domain.Refunds{Held: held}, at)
		return v, err
	}, store.ReducePayments)
	if err != nil {
		return false, err
	}
	for _, p := range freed {
		if err := store.AddUnapplied(ctx, tx, p.Charge, p.Amount); err != nil {
			return false, err
		}
		if err := a.copyRefunds(ctx, tx, of, p.Charge); err != nil {
			return false, err
		}
	}
	return len(freed) > 0, nil
}

// handedBack returns the part of what was handed back that comes from the money that an invoice of an account does not need, given the
// other invoices of the account.
func (a *Invoices) handedBack(ctx context.Context, tx pg.Tx, of domain.AccountRef, id domain.InvoiceID) (int64, error) {
	back, err := store.HandedBack(ctx, tx, of)
	if err != nil || back.OfInvoices() == 0 {
		return 0, err
	}
	list, err := store.MoneyInvoices(ctx, tx, of, domain.InvoiceID{})
	if err != nil {
		return 0, err
	}
	var others []domain.InvoiceID
	for _, v := range list {
		if v.ID != id && !v.Awaits {
			others = append(others, v.ID)
		}
	}
	_, sum, err := a.slack(ctx, tx, others)
	return max(0, back.OfInvoices()-sum), err
}
