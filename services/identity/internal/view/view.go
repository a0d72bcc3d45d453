// Package view renders identity's domain objects: the public bodies of the contract, and the internal ones.
package view

import (
	"encoding/base64"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// RateWindowSeconds is the length of the window for a credential's rate limit.
const RateWindowSeconds = 60

// Tenant returns the body of GET /tenant, with the payment gateway that is connected in the mode and whether its events arrive.
// Both are nil if there is none.
func Tenant(t domain.Tenant, mode caller.Mode, gateway, events *string) api.Tenant {
	out := api.Tenant{
		Id: t.ID.String(), Object: "tenant", Name: t.Name, Slug: t.Slug, Timezone: t.Timezone,
		Currency: t.Currency, Country: api.OrNull(t.Country), Mode: api.Mode(mode),
	}
	out.BookingPolicy.AutoConfirm = t.AutoConfirm
	out.BookingPolicy.HoldTtlMinutes = api.OrNull(t.HoldTTLMinutes)
	out.BookingPolicy.MinNoticeMinutes = api.OrNull(t.MinNoticeMinutes)
	out.BookingPolicy.MaxAdvanceDays = api.OrNull(t.MaxAdvanceDays)
	out.BookingPolicy.ConfirmOnDeposit = t.ConfirmOnDeposit
	out.BookingPolicy.RefundRules = refundRules(t.RefundRules)
	out.BookingPolicy.AutoRefund, out.BookingPolicy.RefundLatePayments = t.AutoRefund, t.RefundLatePayments
	out.Payments.Provider, out.Payments.Configured = api.OrNull(gateway), gateway != nil
	out.Payments.Events = api.Null[api.TenantPaymentsEvents]()
	if events != nil {
		out.Payments.Events.Set(api.TenantPaymentsEvents(*events))
	}
	return out
}

// refundRules returns null if no rules are set. An empty list remains an empty list.
func refundRules(list []domain.RefundRule) nullable.Nullable[[]api.RefundRule] {
	if list == nil {
		return api.Null[[]api.RefundRule]()
	}
	out := make([]api.RefundRule, len(list))
	for i, r := range list {
		out[i] = api.RefundRule{HoursBefore: r.HoursBefore, Percent: r.Percent}
	}
	return nullable.NewNullableWithValue(out)
}

// internalPolicy returns a policy in the form of other services, the command line and the audit log.
func internalPolicy(p domain.Policy) internalapi.BookingPolicy {
	out := internalapi.BookingPolicy{
		AutoConfirm: p.AutoConfirm, HoldTTLMinutes: p.HoldTTLMinutes, MinNoticeMinutes: p.MinNoticeMinutes, MaxAdvanceDays: p.MaxAdvanceDays,
		ConfirmOnDeposit: p.ConfirmOnDeposit, AutoRefund: p.AutoRefund, RefundLatePayments: p.RefundLatePayments,
	}
	if p.RefundRules != nil {
		out.RefundRules = make([]internalapi.RefundRule, len(p.RefundRules))
	}
	for i, r := range p.RefundRules {
		out.RefundRules[i] = internalapi.RefundRule(r)
	}
	return out
}

// Me returns the body of GET /me for an API key that may make limit requests per minute.
func Me(k domain.Key, limit int) api.Me {
	return me(k.ID.String(), api.ApiKey, k.Mode(), k.TenantID, k.Scopes, k.Name, limit)
}

// MeOfGrant returns the body of GET /me for an access token with the given scopes.
func MeOfGrant(g domain.ShownGrant, scopes []string, limit int) api.Me {
	return me(g.ID.String(), api.Oauth, caller.ModeOf(g.Livemode), g.TenantID, scopes, g.AppName, limit)
}

func me(id string, kind api.CredentialType, mode caller.Mode, tenant ids.Tenant, scopes []string, name string, limit int) api.Me {
	out := api.Me{
		Id: id, Object: "credential", Type: kind, Mode: api.Mode(mode),
		Scopes: scopes, TenantId: tenant.String(), Name: api.Null[string](),
	}
	if name != "" {
		out.Name = nullable.NewNullableWithValue(name)
	}
	out.RateLimit.Limit, out.RateLimit.WindowSeconds = limit, RateWindowSeconds
	return out
}

// InternalTenant returns a tenant in the form of other services: the response of the internal call and the object of
// tenant.updated.
func InternalTenant(t domain.Tenant) internalapi.Tenant {
	return internalapi.Tenant{
		ID: t.ID.String(), Slug: t.Slug, Name: t.Name, Timezone: t.Timezone, Currency: t.Currency,
		Country: t.Country, PolicyVersion: t.Version, BookingPolicy: internalPolicy(t.Policy),
		Clock:         utc(t.Clock),
		Status:        new(internalapi.TenantStatus(t.Status)),
		InvoicePrefix: t.InvoicePrefix, InvoiceYear: t.InvoiceYear, LegalName: t.LegalName, Address: t.Address, TaxID: t.TaxID,
		TaxBehavior: new(internalapi.TaxBehavior(t.TaxBehavior)), DefaultTaxes: new(taxes(t.DefaultTaxes)),
		Locale: t.Locale, BankAccountHolder: &t.BankAccountHolder, BankAccountNumber: &t.BankAccountNumber, BankCode: &t.BankCode, BankName: &t.BankName,
		LogoHash: &t.LogoHash,
	}
}

// TenantLogo returns a tenant's logo in the form of other services.
func TenantLogo(l domain.Logo) internalapi.TenantLogo {
	return internalapi.TenantLogo{Hash: l.Hash, MediaType: l.MediaType(), Logo: base64.StdEncoding.EncodeToString(l.Content)}
}

func taxes(list []money.Tax) []api.Tax {
	out := make([]api.Tax, len(list))
	for i, tax := range list {
		out[i] = api.Tax{Name: tax.Name, Rate: tax.Rate.String()}
	}
	return out
}

// Principal returns the response to a look-up.
func Principal(p domain.Principal) internalapi.Principal {
	return internalapi.Principal{
		ID: p.KeyID.String(), Kind: "api_key", Name: p.Name, Mode: string(caller.ModeOf(p.Livemode)), Scopes: p.Scopes,
		TenantID: p.TenantID.String(), Timezone: p.Timezone, Currency: p.Currency,
		PolicyVersion: p.PolicyVersion, Version: p.Version, Clock: utc(p.Clock), ExpiresAt: utc(p.ExpiresAt), Revoked: p.Revoked,
		ExpirySet: new(p.ExpiresAt != nil && !p.Replaced), TenantStatus: new(internalapi.TenantStatus(p.TenantStatus)), EraseAt: utc(p.EraseAt),
		Limits: new(TenantLimits(p.Limits)),
	}
}

// TenantLimits returns the limits that the platform has set for a tenant.
func TenantLimits(l domain.Limits) internalapi.TenantLimits {
	out := internalapi.TenantLimits{RequestsPerMinute: l.RequestsPerMinute, CredentialRequestsPerMinute: l.CredentialRequestsPerMinute}
	if len(l.Caps) > 0 {
		out.Caps = &l.Caps
	}
	return out
}

// TokenPrincipal returns the response to a look-up of an access token.
func TokenPrincipal(p domain.TokenPrincipal) internalapi.Principal {
	return internalapi.Principal{
		ID: p.GrantID.String(), Kind: "oauth", Name: p.Name, Mode: string(caller.ModeOf(p.Livemode)), Scopes: p.Granted(),
		TenantID: p.TenantID.String(), Timezone: p.Timezone, Currency: p.Currency, ExpiresAt: utc(&p.ExpiresAt),
		PolicyVersion: p.PolicyVersion, Version: p.Version, Clock: utc(p.Clock), Revoked: p.Revoked, Origins: origins(p.Origins),
		TenantStatus: new(internalapi.TenantStatus(p.TenantStatus)), EraseAt: utc(p.EraseAt),
		Limits: new(TenantLimits(p.Limits)),
	}
}

func origins(all []string) *[]string {
	if len(all) == 0 {
		return nil
	}
	return &all
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
