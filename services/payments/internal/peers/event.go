package peers

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/webhook"

	"holdfast.dev/services/payments/internal/domain"
)

// ReadEvent checks the signature of a webhook over the sent bytes with each of the account's secrets, and reads what the webhook is
// about. It refuses an event that is dated more than five minutes in the past or in the future. It implements app.EventReader.
func (s *Stripe) ReadEvent(body []byte, signature string, secrets []domain.Secret) (domain.Event, error) {
	for _, secret := range secrets {
		e, err := webhook.ConstructEventWithOptions(body, signature, string(secret), webhook.ConstructEventOptions{
			Tolerance: webhook.DefaultTolerance, IgnoreAPIVersionMismatch: true,
		})
		if err != nil {
			continue
		}
		if ahead(signature, e.Created) {
			return domain.Event{}, domain.ErrEvent.WithMessage("The event is dated more than five minutes ahead.")
		}
		id, refund, err := intentOf(e)
		if err != nil || e.ID == "" || e.Type == "" {
			return domain.Event{}, domain.ErrEvent.WithCause(err)
		}
		return domain.Event{ID: e.ID, Type: string(e.Type), Intent: id, Refund: refund}, nil
	}
	return domain.Event{}, domain.ErrEvent
}

// ahead reports whether the signature or the event itself is dated more than five minutes in the future. The library has already
// checked the form of the signature, and that it is not too old.
func ahead(signature string, created int64) bool {
	latest := time.Now().Add(webhook.DefaultTolerance).Unix()
	for part := range strings.SplitSeq(signature, ",") {
		if at, ok := strings.CutPrefix(part, "t="); ok {
			signed, err := strconv.ParseInt(at, 10, 64)
			if err != nil || signed > latest {
				return true
			}
		}
	}
	return created > latest
}

// WebhookEvents are the types of events that an operator configures the gateway to send. Others are dropped, except those of
// refunds, which duplicate these.
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

// silent are the types of events without new information. The response to the creation has it, or the event of the intent that the
// gateway sends together with the event of its charge.
var silent = map[stripe.EventType]bool{
	stripe.EventTypePaymentIntentCreated: true,
	stripe.EventTypeChargeSucceeded:      true,
	stripe.EventTypeChargeFailed:         true,
	stripe.EventTypeChargePending:        true,
	stripe.EventTypeChargeCaptured:       true,
	stripe.EventTypeChargeExpired:        true,
}

// intentOf returns the intent and the refund that an event is about, or "" if the event is about something else.
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
