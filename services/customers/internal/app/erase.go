package app

import (
	"context"
	"fmt"
	"slices"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// owned is a kind of resource that holds personal data of a customer. An export shows it, and an erasure clears it.
type owned struct {
	name string // name in an export
	// show reads a page of the customer's resources, newest first.
	show func(ctx context.Context, q pg.Q, customer domain.CustomerID, at domain.DocumentContext, r page.Request) (exportPage, error)
	rows store.OwnedRows // nil: no public event is about them

	event string // the internal event type that requests the platform to erase its copies
	// next clears the next rows of the customer after the given one. It returns none if all are cleared.
	next func(ctx context.Context, tx pg.Tx, customer domain.CustomerID, after store.Erased) ([]store.Erased, error)
	id   func(uuid [16]byte) string
	body func(id string) view.Erased
}

// The resources that are exported and erased with a customer.
var (
	ownedLeads = owned{
		name: "leads", show: showLeads, rows: store.LeadRows,
		event: "lead.erased", next: store.EraseLeads, id: publicID[ids.LeadPrefix], body: view.ErasedLead,
	}
	ownedQuotes = owned{
		name: "quotes", show: showQuotes, rows: store.QuoteRows,
		event: "quote.erased", next: store.EraseQuotes, id: publicID[ids.QuotePrefix], body: view.ErasedQuote,
	}
	ownedInvoices = owned{
		name: "invoices", show: showInvoices, rows: store.InvoiceRows,
		event: "invoice.erased", next: store.EraseInvoices, id: publicID[ids.InvoicePrefix], body: view.ErasedInvoice,
	}
	ownedCreditNotes = owned{
		name: "credit_notes", show: showCreditNotes,
		event: "credit_note.erased", next: store.EraseCreditNotes, id: publicID[ids.CreditNotePrefix], body: view.ErasedCreditNote,
	}
	ownedByCustomer = []owned{ownedLeads, ownedQuotes, ownedInvoices, ownedCreditNotes}
)

func publicID[P ids.Prefix](uuid [16]byte) string { return ids.FromUUID[P](uuid).String() }

// eraseOwned clears the personal data of the customer in everything that belongs to it: in the rows, in the stored responses about
// them and in unpublished events. It holds only a few rows in memory at a time. Each row gets a new version and an event, even if
// it no longer shows personal data, because earlier events about it may contain some.
func (a *Customers) eraseOwned(ctx context.Context, tx pg.Tx, customer domain.CustomerID) error {
	for _, kind := range ownedByCustomer {
		var last store.Erased
		for {
			list, err := kind.next(ctx, tx, customer, last)
			if err != nil {
				return fmt.Errorf("%s: %w", kind.event, err)
			}
			if len(list) == 0 {
				break
			}
			if err := a.eraseCopies(ctx, tx, kind, list); err != nil {
				return fmt.Errorf("%s: %w", kind.event, err)
			}
			last = slices.MaxFunc(list, store.Erased.Compare)
		}
	}
	return nil
}

// eraseCopies erases the copies of rows in stored responses and unpublished events, and emits the events of the erasure.
func (a *Customers) eraseCopies(ctx context.Context, tx pg.Tx, kind owned, list []store.Erased) error {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = kind.id(e.ID)
	}
	if err := a.Idempotency.Erase(ctx, tx, names, a.Contract.Erase); err != nil {
		return err
	}
	for i, e := range list {
		if err := outbox.Erase(ctx, tx, a.Contract, names[i]); err != nil {
			return err
		}
		body, err := contract.Encode(kind.body(names[i]))
		if err != nil {
			return err
		}
		event := outbox.Event{Type: kind.event, Topic: topic, AggregateID: names[i], Version: e.Version, Object: body, Internal: true}
		if err := outbox.Emit(ctx, tx, a.Wake, event); err != nil {
			return err
		}
	}
	return nil
}
