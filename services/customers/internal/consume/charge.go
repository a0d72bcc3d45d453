package consume

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
)

// Payments handles the events of the payments service.
type Payments struct {
	Accounts    *app.Accounts
	CreditNotes *app.CreditNotes
}

// Handle is a kafkax.Handler. A message that cannot be read is a poison message. Handle ignores other types than those about an account
// or a refund, and refunds without a credit note.
func (h *Payments) Handle(ctx context.Context, m kafkax.Message) error {
	e, err := outbox.Decode(m.Value)
	if err != nil {
		return err
	}
	from, err := outbox.Caller("customers", e)
	if err != nil {
		return err
	}
	switch e.GetType() {
	case "account.updated":
		account, err := account(e)
		if err != nil {
			return kafkax.Poison(err)
		}
		return h.Accounts.ApplyEvent(caller.With(ctx, from), account)
	case "refund.updated":
		id, err := ids.Parse[ids.EventPrefix](e.GetId())
		if err != nil {
			return kafkax.Poison(err)
		}
		note, r, err := noteRefund(e)
		if err != nil || note.IsZero() {
			return err
		}
		return h.CreditNotes.ApplyEvent(caller.With(ctx, from), id, note, r)
	default:
		return nil
	}
}

// noteRefund reads the state of the refund of a credit note from an event. The id is zero if no credit note created the refund.
func noteRefund(e *eventsv1.Event) (note domain.CreditNoteID, r domain.NoteRefund, err error) {
	var body struct {
		ID          string              `json:"id"`
		Status      string              `json:"status"`
		CreditNote  domain.CreditNoteID `json:"credit_note_id"` // null: none
		Allocations []struct {
			Intent string `json:"payment_intent_id"`
			Amount int64  `json:"amount"`
			Status string `json:"status"`
		} `json:"allocations"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return note, r, kafkax.Poison(fmt.Errorf("refund body: %w", err))
	}
	if body.ID != e.GetObjectId() || body.Status == "" {
		return note, r, kafkax.Poison(fmt.Errorf("refund %q of the event about %q cannot be read", body.ID, e.GetObjectId()))
	}
	r = domain.NoteRefund{ID: body.ID, Status: body.Status, Shown: true, Version: e.GetResourceVersion()}
	for _, a := range body.Allocations {
		r.Parts = append(r.Parts, domain.NoteRefundPart{Charge: a.Intent, Amount: a.Amount, Status: a.Status})
	}
	return body.CreditNote, r, nil
}

// account reads the state of an account from an event.
func account(e *eventsv1.Event) (domain.Account, error) {
	var body internalapi.Account
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.Account{}, fmt.Errorf("account body: %w", err)
	}
	if body.ID != e.GetObjectId() || body.Version != e.GetResourceVersion() {
		return domain.Account{}, fmt.Errorf("account %q of the event about %q cannot be read", body.ID, e.GetObjectId())
	}
	return domain.FromAccount(body)
}
