package app

import (
	"encoding/json"

	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// topic is the topic of this service's events. The key is the gateway's id of the intent, or the id of the refund.
const topic = "payments"

// The events that this service emits.

func paymentSucceeded(p domain.Intent, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "payment.succeeded", Topic: topic, AggregateID: string(p.GatewayID), Version: p.Version, Object: body, Previous: previous,
	}
}

func paymentFailed(p domain.Intent, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "payment.failed", Topic: topic, AggregateID: string(p.GatewayID), Version: p.Version, Object: body, Previous: previous,
	}
}

// intentUpdated is the event for every other change and for the creation. It is for the platform's own services.
func intentUpdated(p domain.Intent, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "payment_intent.updated", Topic: topic, AggregateID: string(p.GatewayID), Version: p.Version,
		Object: body, Previous: previous, Internal: true,
	}
}

// intentErased requests that the platform's own services erase their personal data of an intent.
func intentErased(e store.Erased, body json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "payment_intent.erased", Topic: topic, AggregateID: string(e.GatewayID), Version: e.Version, Object: body, Internal: true,
	}
}

// accountUpdated is the event for a change of a gateway account, keyed by its id. It is for the platform's own services.
func accountUpdated(a domain.Account, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "gateway_account.updated", Topic: topic, AggregateID: a.ID.String(), Version: a.Version, Object: body, Previous: previous, Internal: true,
	}
}

// refundUpdated is the event for the creation of a refund and for each visible change. It is for the platform's own services.
func refundUpdated(r domain.Refund, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "refund.updated", Topic: topic, AggregateID: r.ID.String(), Version: r.Version, Object: body, Previous: previous, Internal: true,
	}
}

// disputeOpened reports to the platform's own services that a payer disputes a charge.
func disputeOpened(d domain.Dispute, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "dispute.opened", Topic: topic, AggregateID: d.ID, Version: d.Version, Object: body, Internal: true}
}

// disputeClosed reports the outcome of a dispute to the platform's own services.
func disputeClosed(d domain.Dispute, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "dispute.closed", Topic: topic, AggregateID: d.ID, Version: d.Version, Object: body, Internal: true}
}

// accountMoved reports to the platform's own services that money was received or returned for a booking or an invoice.
func accountMoved(a domain.MoneyAccount, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "account.updated", Topic: topic, AggregateID: a.String(), Version: a.Version, Object: body, Internal: true}
}

// owedRefundClosed is the audit log's event when a person closes an owed refund.
func owedRefundClosed(o domain.OwedRefund, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "owed_refund.closed", Topic: topic, AggregateID: o.ID.String(), Version: o.Version, Object: body, Internal: true}
}

// owedRefundRetried is the audit log's event when a person retries an owed refund.
func owedRefundRetried(o domain.OwedRefund, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "owed_refund.retried", Topic: topic, AggregateID: o.ID.String(), Version: o.Version, Object: body, Internal: true}
}

// changed returns the event for a change of an intent.
func changed(before, p domain.Intent, body, previous json.RawMessage) outbox.Event {
	switch {
	case p.Status == domain.Succeeded && before.Status != domain.Succeeded:
		return paymentSucceeded(p, body, previous)
	case p.FailedCharge != before.FailedCharge:
		return paymentFailed(p, body, previous)
	default:
		return intentUpdated(p, body, previous)
	}
}
