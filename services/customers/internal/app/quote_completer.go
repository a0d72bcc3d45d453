package app

import (
	"context"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// QuoteCompleter resumes the accepts that a process has abandoned. Afterwards, the quote is either accepted or in the status sent
// as before. Any number of processes may run it at the same time.
type QuoteCompleter struct {
	Quotes     *Quotes
	Operations operation.Runner
	Worker     *pg.DB // worker role: finds abandoned accepts
	Log        *slog.Logger

	failing operation.Failing
}

// Run resumes abandoned accepts of all tenants. After a failure, it retries the accept after a delay that doubles each time.
func (a *QuoteCompleter) Run(ctx context.Context) error {
	left := operation.Workers[store.QuoteLeft]{
		Service: "customers", DB: a.Worker, Now: a.Quotes.Now, Find: store.QuotesLeft,
		Owner: func(row store.QuoteLeft) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.QuoteLeft) error {
			if err := a.complete(ctx, row.ID); err != nil {
				return fmt.Errorf("quote %s: %w", row.ID, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "accepts of quotes that cannot be completed"),
	}
	return left.Run(ctx)
}

// complete runs the next attempt at one accept.
func (a *QuoteCompleter) complete(ctx context.Context, id domain.QuoteID) error {
	return operation.Resume(ctx, a.Operations, &leftAccept{accept: accept{Quotes: a.Quotes, id: id, quote: domain.Quote{ID: id}}})
}
