package domain

// GatewayAccountUpdated is the action of a change of a tenant's account at a payment gateway.
const GatewayAccountUpdated = "gateway_account.updated"

// Gateway is the stored state of an account at a payment gateway.
type Gateway struct {
	ID        string // ga_…
	Provider  string
	Connected bool
	Events    string // ok, missing or late: whether the gateway's events reach the platform
	Version   int64
}
