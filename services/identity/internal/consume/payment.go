package consume

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"holdfast.dev/libs/money"
	eventsv1 "holdfast.dev/proto/events/v1"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// externalAction is the content of a record about an action outside the platform: a sentence.
type externalAction struct {
	Summary string `json:"summary"`
	Version int64  `json:"version"` // of the object
}

// outcomes describes the outcomes of a dispute in words.
var outcomes = map[string]string{
	"won": "is won: the money stays", "lost": "is lost: the money is gone", "withdrawn": "is withdrawn: the money stays",
}

// payment creates the record of an event of payments. An account of money is not audited: it follows from payments, refunds and invoices,
// whose events are.
func payment(e *eventsv1.Event) (*domain.Record, error) {
	if e.GetType() == "account.updated" {
		return nil, nil
	}
	if !strings.HasPrefix(e.GetType(), "dispute.") {
		return change(e)
	}
	var d internalapi.Dispute
	if err := json.Unmarshal(e.GetObject(), &d); err != nil {
		return nil, fmt.Errorf("dispute: %w", err)
	}
	if d.ID == "" || d.ID != e.GetObjectId() {
		return nil, fmt.Errorf("an event of dispute %q holds dispute %q", e.GetObjectId(), d.ID)
	}
	after, err := json.Marshal(externalAction{Summary: summary(e.GetType(), d), Version: e.GetResourceVersion()})
	if err != nil {
		return nil, fmt.Errorf("dispute: %w", err)
	}
	return &domain.Record{Object: d.ID, After: after}, nil
}

// summary describes the outcome of a dispute in a sentence.
func summary(kind string, d internalapi.Dispute) string {
	of := fmt.Sprintf("%s of payment intent %s", money.Amount{Minor: d.Amount, Currency: d.Currency}, d.PaymentIntentID)
	if kind != "dispute.opened" {
		return fmt.Sprintf("The dispute of %s %s.", of, outcomes[d.Outcome])
	}
	text := fmt.Sprintf("The payer disputes %s: %s.", of, strings.ReplaceAll(d.Reason, "_", " "))
	if d.DueBy != nil {
		text += " You can respond at the payment gateway until " + d.DueBy.UTC().Format(time.RFC3339) + "."
	}
	return text
}
