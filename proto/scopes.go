package proto

// Scopes is the catalogue of scope ids, in a readable order. No scope implies another. API keys and OAuth grants use the same ids.
var Scopes = []string{
	"read:bookings", "write:bookings",
	"read:customers", "write:customers",
	"read:leads", "write:leads",
	"read:quotes", "write:quotes",
	"read:invoices", "write:invoices",
	"read:services", "write:services",
	"read:units", "write:units",
	"read:webhooks", "write:webhooks",
	"payments:read", "payments:write",
}
