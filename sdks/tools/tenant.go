package tools

import (
	"context"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// tenantView is the operator, and what this server may do with its data.
type tenantView struct {
	Name     string                 `json:"name"`
	Mode     string                 `json:"mode"`
	TimeZone string                 `json:"time_zone"`
	Now      *moment                `json:"now"` // by the test clock if it is frozen
	Currency string                 `json:"currency"`
	Country  string                 `json:"country,omitempty"`
	Policy   holdfast.BookingPolicy `json:"booking_policy"`
	Payments string                 `json:"card_payments"`
	Writes   bool                   `json:"writes_allowed"` // by this server
	Scopes   []string               `json:"scopes"`         // of the credential
}

// none are the arguments of a tool that has none.
type none struct{}

func (t *toolbox) getTenant(ctx context.Context, _ none) (any, error) {
	tenant, err := t.client.Tenant.Get(ctx)
	if err != nil {
		return nil, err
	}
	v, err := t.zones.remember(tenant)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if tenant.Mode == holdfast.ModeTest && t.can("write:bookings") {
		clock, err := t.client.TestClock.Get(ctx)
		if err != nil {
			return nil, err
		}
		now = clock.Now
	}
	payments := "not configured"
	if tenant.Payments.Configured {
		payments = "configured"
	}
	if events := value(tenant.Payments.Events); events != "" && events != holdfast.TenantPaymentsEventsOk {
		payments += "; webhooks of the payment gateway are " + string(events)
	}
	return tenantView{
		Name: tenant.Name, Mode: string(tenant.Mode), TimeZone: v.name(), Now: v.at(&now), Currency: tenant.Currency, Country: value(tenant.Country),
		Policy: tenant.BookingPolicy, Payments: payments, Writes: t.writes, Scopes: t.me.Scopes,
	}, nil
}
