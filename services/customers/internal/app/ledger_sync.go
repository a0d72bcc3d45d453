package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// anyAccountVersion records something whatever the version of the account is.
const anyAccountVersion = -1

// ErrLedgerDiffers reports that the ledger of payments and this service have different amounts.
var ErrLedgerDiffers = errors.New("the ledger of payments differs from the payments of invoices")

// LedgerSync records in the ledger of payments what a restore of its database has lost: payments that clients recorded, and manual
// refunds of credit notes. It is safe to repeat.
type LedgerSync struct {
	Accounts *Accounts
	Worker   *pg.DB    // worker role: finds the tenants
	Out      io.Writer // one line per difference
}

// Run records everything, and writes a line for each payment or refund that payments refuses and for each account whose sums differ. It
// returns ErrLedgerDiffers if there is one.
func (a *LedgerSync) Run(ctx context.Context) error {
	var owners []operation.Owner
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		owners, err = store.LedgerOwners(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("tenants with payments: %w", err)
	}
	differences := 0
	for _, o := range owners {
		mode := caller.ModeOf(o.Livemode)
		acting, err := a.Accounts.Tenants.Acting(ctx, o.TenantID, mode)
		if err != nil {
			return fmt.Errorf("tenant %s: %w", o.TenantID, err)
		}
		report := func(format string, args ...any) {
			differences++
			fmt.Fprintf(a.Out, "tenant %s, %s mode: "+format+"\n", append([]any{o.TenantID, mode}, args...)...)
		}
		if err := a.tenant(caller.With(ctx, acting), report); err != nil {
			return fmt.Errorf("tenant %s, %s mode: %w", o.TenantID, mode, err)
		}
	}
	if differences > 0 {
		return ErrLedgerDiffers
	}
	return nil
}

func (a *LedgerSync) tenant(ctx context.Context, report func(format string, args ...any)) error {
	if err := a.receipts(ctx, report); err != nil {
		return err
	}
	if err := a.notes(ctx, report); err != nil {
		return err
	}
	sums, err := store.AccountSums(ctx, a.Accounts.DB.Read(ctx))
	if err != nil {
		return err
	}
	for _, s := range sums {
		account, err := a.Accounts.Payments.Account(ctx, s.AccountRef, 0)
		if err != nil {
			return err
		}
		if account.Received != s.Received {
			report("%s, %s: the ledger has received %d, and the payments here are %d", s.ID(), s.Currency, account.Received, s.Received)
		}
	}
	return nil
}

// receipts records the payments that clients recorded.
func (a *LedgerSync) receipts(ctx context.Context, report func(format string, args ...any)) error {
	for after := (domain.PaymentID{}); ; {
		list, err := store.UnrecordedReceipts(ctx, a.Accounts.DB.Read(ctx), after)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, r := range list {
			after = r.ID
			account, err := a.Accounts.Payments.RecordReceipt(ctx, r, anyAccountVersion)
			if err := a.record(ctx, account, err, func(err error) { report("payment %s of %s: %s", r.ID, r.Invoice, err) }); err != nil {
				return err
			}
		}
	}
}

// notes records the manual refunds of credit notes.
func (a *LedgerSync) notes(ctx context.Context, report func(format string, args ...any)) error {
	for after := (domain.CreditNoteID{}); ; {
		list, err := store.ManualNotes(ctx, a.Accounts.DB.Read(ctx), after)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, n := range list {
			after = n.ID
			account, err := a.Accounts.Payments.RecordReturn(ctx, n, anyAccountVersion)
			if err := a.record(ctx, account, err, func(err error) { report("refund of credit note %s: %s", n.Number, err) }); err != nil {
				return err
			}
		}
	}
}

// record applies the account in which something was recorded, or reports why payments has refused it.
func (a *LedgerSync) record(ctx context.Context, account domain.Account, err error, refused func(error)) error {
	switch {
	case operation.Refused(err):
		refused(err)
		return nil
	case err != nil:
		return err
	case account.More:
		return a.Accounts.Refresh(ctx, account.AccountRef)
	}
	return operation.RetryTx(ctx, a.Accounts.DB, func(ctx context.Context, tx pg.Tx) error {
		return a.Accounts.apply(ctx, tx, account, anyAccountVersion)
	})
}
