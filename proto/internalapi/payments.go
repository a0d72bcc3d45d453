package internalapi

// GatewayAccount is the object of the event gateway_account.updated.
type GatewayAccount struct {
	ID                 string `json:"id"` // ga_…
	Provider           string `json:"provider"`
	Account            string `json:"account"` // the gateway's own id
	Country            string `json:"country"`
	PublishableKey     string `json:"publishable_key"`
	SecretKeyLast4     string `json:"secret_key_last4"`
	WebhookSecretLast4 string `json:"webhook_secret_last4"` // of the one that came with the change; "" for none
	Connected          bool   `json:"connected"`
}
