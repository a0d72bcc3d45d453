package app

import (
	"cmp"
	"context"
	"encoding/json"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/repair"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// Repair describes how this service agrees with the others again after a restore.
func Repair() repair.Service {
	const numbers = " numbers raised above numbers that receivers have seen"
	forget := func(table string) func(context.Context, pg.Tx, string) error {
		return func(ctx context.Context, tx pg.Tx, id string) error { return store.ForgetCopy(ctx, tx, table, id) }
	}
	return repair.Service{
		Name: "customers", Copies: store.Copies,
		Kinds: []repair.Kind{
			{Prefix: "cu", Own: store.OwnCustomers, Publish: publishCustomer},
			{Prefix: "ld", Own: store.OwnLeads, Publish: publishStored("leads", store.Lead, view.Lead, leadUpdated)},
			{Prefix: "qt", Own: store.OwnQuotes, Publish: publishStored("quotes", store.Quote, view.Quote, quoteUpdated)},
			{Prefix: "inv", Own: store.OwnInvoices, Publish: publishStored("invoices", store.Invoice, view.Invoice, invoiceUpdated)},
			{Prefix: "cn", Own: store.OwnCreditNotes, Publish: publishStored("credit_notes", store.CreditNote, view.CreditNote, creditNoteUpdated)},
		},
		Fixes: []repair.Fix{
			{What: "counters of invoice" + numbers, SQL: store.RaiseInvoiceNumbers},
			{What: "counters of quote" + numbers, SQL: store.RaiseQuoteNumbers},
			{What: "accounts of money to be applied again, because payments has lost changes", SQL: store.ResetMoney},
			{What: "accepts resumed, because the booking exists", SQL: store.ResumeAccepts},
		},
		Counters: map[string]string{"quotes": "quote_counters", "invoices": "invoice_counters", "credit_notes": "credit_note_counters"},
		Forget: map[string]func(ctx context.Context, tx pg.Tx, id string) error{
			"bk": func(ctx context.Context, tx pg.Tx, id string) error {
				_, key := ids.Stored(id)
				return store.ForgetCopy(ctx, tx, "bookings", key)
			},
			"srv": forget("catalogue_items"), "un": forget("catalogue_items"), "pkg": forget("catalogue_items"),
		},
	}
}

func invoiceUpdated(v domain.Invoice, body, previous json.RawMessage) outbox.Event {
	return invoiceChanged(v, v.Status, body, previous)
}

// publishCustomer publishes the stored state of a customer, or its erasure.
func publishCustomer(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error {
	var id domain.CustomerID
	if err := id.Scan(key); err != nil {
		return err
	}
	erased, err := store.ErasedVersion(ctx, tx, id)
	if err != nil {
		return err
	}
	if erased == 0 {
		return publishStored("customers", store.Customer, view.Customer, customerUpdated)(ctx, tx, key, version, events)
	}
	if _, err := store.RaiseVersion(ctx, tx, "customers", key, version); err != nil {
		return err
	}
	body, err := contract.Encode(view.ErasedCustomer(id))
	if err != nil {
		return err
	}
	return outbox.Emit(ctx, tx, nil, customerErased(id, max(version, erased), body))
}

// publishStored returns a function that publishes the stored state of a row as the given events, or as an update.
func publishStored[P ids.Prefix, T, V any](
	table string, read func(context.Context, pg.Q, ids.ID[P]) (T, error), show func(T, api.Mode) V,
	update func(v T, body, previous json.RawMessage) outbox.Event,
) func(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error {
	return func(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error {
		var id ids.ID[P]
		if err := id.Scan(key); err != nil {
			return err
		}
		if exists, err := store.RaiseVersion(ctx, tx, table, key, version); err != nil || !exists {
			return err
		}
		v, err := read(ctx, tx, id)
		if err != nil {
			return err
		}
		body, err := outbox.Body(ctx, show, v)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			events = []string{""}
		}
		for _, kind := range events {
			e := update(v, body, nil)
			e.Type, e.Internal = cmp.Or(kind, e.Type), e.Internal && kind == ""
			if err := outbox.Emit(ctx, tx, nil, e); err != nil {
				return err
			}
		}
		return nil
	}
}
