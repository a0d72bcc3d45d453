package view

import (
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
)

// MoneyAccount returns the internal body of an account of money.
func MoneyAccount(a domain.MoneyAccount) internalapi.Account {
	out := internalapi.Account{
		ID: a.String(), Currency: a.Currency, Received: a.Received, Returned: a.Returned, Held: a.Held, Disputed: a.Disputed, Version: a.Version,
		Entries: make([]internalapi.AccountEntry, len(a.Entries)), More: a.More,
	}
	for i, e := range a.Entries {
		out.Entries[i] = internalapi.AccountEntry{
			ID: e.Object, Kind: e.Kind(), Method: string(e.Method), Amount: e.Received, Returned: e.Returned, NoteReturned: e.NoteReturned, Disputed: e.Disputed,
			InvoiceID: textOrNil(e.InvoiceID), CreditNoteID: textOrNil(e.CreditNote), At: e.At.UTC(), ReversedAt: utc(e.ReversedAt), Version: e.Version,
		}
		if e.Kind() == domain.KindReturn {
			out.Entries[i].Amount, out.Entries[i].Returned = e.Returned, 0
		}
	}
	return out
}

func textOrNil[P ids.Prefix](id ids.ID[P]) *string {
	if id.IsZero() {
		return nil
	}
	text := id.String()
	return &text
}
