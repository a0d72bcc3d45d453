package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// Completers complete operations that a process has abandoned, or whose outcome at another service is unknown, on behalf of the callers
// who began them. Any number of processes may run them at the same time. After a failure, they retry after a delay that grows each time.
type Completers struct {
	Operations operation.Runner
	Tenants    TenantService
	Worker     *pg.DB // worker role: finds the operations
	Log        *slog.Logger

	now func() time.Time
}

// Receipts returns the work that records payments of which payments may not know.
func (c Completers) Receipts(a *Accounts) func(context.Context) error {
	c.now = a.Invoices.Now
	return completer(c, "payments not recorded yet", store.ReceiptsLeft, func(id domain.PaymentID) resumable[domain.Invoice] {
		return &receipt{Accounts: a, receipt: domain.Receipt{ID: id}}
	})
}

// CreditNotes returns the work that requests the refunds of credit notes until the gateway knows the refund or it has failed.
func (c Completers) CreditNotes(a *CreditNotes) func(context.Context) error {
	c.now = a.Invoices.Now
	return completer(c, "refunds of credit notes not completed yet", store.CreditNotesLeft, func(id domain.CreditNoteID) resumable[domain.CreditNote] {
		return &creditNote{CreditNotes: a, note: domain.CreditNote{ID: id}}
	})
}

// Quotes returns the work that completes accepts. Afterwards, the quote is either accepted or in the status sent as before.
func (c Completers) Quotes(a *Quotes) func(context.Context) error {
	c.now = a.Now
	return completer(c, "accepted quotes not completed yet", store.QuotesLeft, func(id domain.QuoteID) resumable[domain.Quote] {
		return &accept{Quotes: a, id: id, quote: domain.Quote{ID: id}}
	})
}

// Leads returns the work that completes conversions.
func (c Completers) Leads(a *Leads) func(context.Context) error {
	c.now = a.Now
	return completer(c, "lead conversions not completed yet", store.LeadsLeft, func(id domain.LeadID) resumable[domain.Lead] {
		return &conversion{Leads: a, id: id, lead: domain.Lead{ID: id}}
	})
}

// completer returns the work that resumes the operations that find returns, for all tenants.
func completer[ID interface {
	comparable
	fmt.Stringer
}, R any](
	c Completers, report string, find func(ctx context.Context, tx pg.Tx, now time.Time, except []operation.Owner, limit int) ([]store.Left[ID], error),
	resume func(id ID) resumable[R],
) func(context.Context) error {
	failing := &operation.Failing{}
	return func(ctx context.Context) error {
		left := operation.Workers[store.Left[ID]]{
			Service: "customers", DB: c.Worker, Now: c.now, Find: find, Owner: func(row store.Left[ID]) operation.Owner { return row.Owner },
			Do: func(ctx context.Context, row store.Left[ID]) error {
				if err := operation.Resume(ctx, c.Operations, &leftOperation[R]{resumable: resume(row.ID), tenants: c.Tenants}); err != nil {
					return fmt.Errorf("%s: %w", row.ID, err)
				}
				return nil
			},
			Report: failing.Report(c.Log, report),
		}
		return left.Run(ctx)
	}
}

// resumable is an operation that a worker can resume.
type resumable[R any] interface {
	operation.Operation[R]

	// takeOver takes over the operation, or returns an error if it has ended or another process holds it.
	takeOver(ctx context.Context, tx pg.Tx) error
	// began returns the request that began the operation, and its caller.
	began() (request, actor string)
	// repeat is Call for a worker.
	repeat(ctx context.Context) error
}

// leftOperation is an operation that a worker resumes on behalf of the caller who began it.
type leftOperation[R any] struct {
	resumable[R]

	tenants TenantService
	acting  caller.Caller
}

// Begin implements operation.Operation.
func (o *leftOperation[R]) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	return false, o.takeOver(ctx, tx)
}

// Call implements operation.Operation.
func (o *leftOperation[R]) Call(ctx context.Context) (err error) {
	c := caller.FromContext(ctx)
	if o.acting, err = o.tenants.Acting(ctx, c.Tenant, c.Mode); err != nil {
		return err
	}
	o.acting.RequestID, o.acting.OnBehalfOf = o.began()
	return o.repeat(caller.With(ctx, o.acting))
}

// Finish implements operation.Operation.
func (o *leftOperation[R]) Finish(ctx context.Context, tx pg.Tx) (R, error) {
	return o.resumable.Finish(caller.With(ctx, o.acting), tx)
}

// Release implements operation.Operation.
func (o *leftOperation[R]) Release(ctx context.Context, tx pg.Tx) error {
	return o.resumable.Release(caller.With(ctx, o.acting), tx)
}
