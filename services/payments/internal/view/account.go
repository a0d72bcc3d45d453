package view

import (
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
)

// Account returns a gateway account as the console shows it, without its secrets.
func Account(a domain.Account) internalapi.ConnectedAccount {
	out := internalapi.ConnectedAccount{
		ID: a.ID.String(), Provider: a.Provider, Account: a.Account, Country: a.Country, Connected: a.DisconnectedAt == nil,
		WebhookPath: "/gateway/stripe/" + a.ID.String(), CreatedAt: a.CreatedAt.UTC(),
		Events: string(a.Events),
	}
	if a.PublishableKey != "" {
		out.PublishableKey = &a.PublishableKey
	}
	return out
}
