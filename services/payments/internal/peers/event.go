package peers

import (
	"encoding/json"
	"strings"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/webhook"

	"holdfast.dev/services/payments/internal/domain"
)

// ReadEvent checks the signature of a webhook over the bytes that were sent, by any of the account's secrets, and reads what it is
// about. It implements app.EventReader.
func (s *Stripe) ReadEvent(body []byte, signature string, secrets []domain.Secret) (domain.Event, error) {
	for _, secret := range secrets {
		e, err := webhook.ConstructEventWithOptions(body, signature, string(secret), webhook.ConstructEventOptions{
			Tolerance: webhook.DefaultTolerance, IgnoreAPIVersionMismatch: true,
		})
		if err != nil {
			continue
		}
		id, refund, err := intentOf(e)
		if err != nil || e.ID == "" || e.Type == "" {
			return domain.Event{}, domain.ErrEvent.WithCause(err)
		}
		return domain.Event{ID: e.ID, Type: string(e.Type), Intent: id, Refund: refund}, nil
	}
	return domain.Event{}, domain.ErrEvent
}

// WebhookEvents are the types of events that an operator has the gateway send. Others are kept and do nothing, but for those of refunds,
// which say what these say.
var WebhookEvents = []string{
	string(stripe.EventTypePaymentIntentAmountCapturableUpdated),
	string(stripe.EventTypePaymentIntentCanceled),
	string(stripe.EventTypePaymentIntentPartiallyFunded),
	string(stripe.EventTypePaymentIntentPaymentFailed),
	string(stripe.EventTypePaymentIntentProcessing),
	string(stripe.EventTypePaymentIntentRequiresAction),
	string(stripe.EventTypePaymentIntentSucceeded),
	string(stripe.EventTypeChargeRefunded),
	string(stripe.EventTypeChargeRefundUpdated),
	string(stripe.EventTypeChargeUpdated),
	string(stripe.EventTypeChargeDisputeCreated),
	string(stripe.EventTypeChargeDisputeUpdated),
	string(stripe.EventTypeChargeDisputeClosed),
	string(stripe.EventTypeChargeDisputeFundsWithdrawn),
	string(stripe.EventTypeChargeDisputeFundsReinstated),
}

// silent are the events of intents that say nothing new: the answer to the creation does, or the event of the intent that the gateway
// sends with that of its charge.
var silent = map[stripe.EventType]bool{
	stripe.EventTypePaymentIntentCreated: true,
	stripe.EventTypeChargeSucceeded:      true,
	stripe.EventTypeChargeFailed:         true,
	stripe.EventTypeChargePending:        true,
	stripe.EventTypeChargeCaptured:       true,
	stripe.EventTypeChargeExpired:        true,
}

// intentOf is the intent that an event is about, and the refund; "" when it is about something else.
func intentOf(e stripe.Event) (id domain.GatewayID, refund string, err error) {
	if e.Data == nil {
		return "", "", nil
	}
	var object struct {
		ID     string `json:"id"`
		Object string `json:"object"`
		Intent string `json:"payment_intent"`
	}
	kind := string(e.Type)
	if silent[e.Type] || !strings.HasPrefix(kind, "payment_intent.") && !strings.HasPrefix(kind, "charge.") && !strings.HasPrefix(kind, "refund.") {
		return "", "", nil
	}
	if err := json.Unmarshal(e.Data.Raw, &object); err != nil {
		return "", "", err
	}
	if strings.HasPrefix(kind, "payment_intent.") {
		return domain.GatewayID(object.ID), "", nil
	}
	if object.Object == "refund" {
		refund = object.ID
	}
	return domain.GatewayID(object.Intent), refund, nil
}
