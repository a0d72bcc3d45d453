package internalapi

import "time"

// GatewayAccount is the object of the event gateway_account.updated.
type GatewayAccount struct {
	ID                 string `json:"id"` // ga_…
	Provider           string `json:"provider"`
	Account            string `json:"account"` // the gateway's own id
	Country            string `json:"country"`
	PublishableKey     string `json:"publishable_key"`
	SecretKeyLast4     string `json:"secret_key_last4"`
	WebhookSecretLast4 string `json:"webhook_secret_last4"` // of the secret that the change contained; "" for none
	Connected          bool   `json:"connected"`
	Events             string `json:"events"` // ok, missing or late: whether the gateway's events reach this platform
}

// Dispute is the object of the events dispute.opened and dispute.closed.
type Dispute struct {
	ID              string     `json:"id"` // dp_… or du_…, the gateway's id
	PaymentIntentID string     `json:"payment_intent_id"`
	BookingID       string     `json:"booking_id"`
	Amount          int64      `json:"amount"` // in the smallest unit of the currency
	Currency        string     `json:"currency"`
	Reason          string     `json:"reason"`  // the gateway's text
	Status          string     `json:"status"`  // the gateway's status
	Outcome         string     `json:"outcome"` // won, lost or withdrawn; "" while it is open
	DueBy           *time.Time `json:"due_by"`  // deadline for the operator's response
}
