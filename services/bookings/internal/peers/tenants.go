package peers

import (
	"context"
	"net/http"

	"holdfast.dev/libs/cache"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
)

// maxTenants limits the cache of tenants. A tenant takes about 200 bytes.
const maxTenants = 10_000

// Tenants requests tenants from identity. A tenant is cached under its version, which each signed caller carries. A change
// is therefore visible to the first request after it, and no entry needs to expire.
type Tenants struct {
	client *peer.Client
	cache  cache.Cache[tenantKey, domain.Tenant]
}

type tenantKey struct {
	tenant  ids.Tenant
	version int64
}

// NewTenants creates Tenants with a client of identity.
func NewTenants(client *peer.Client) *Tenants {
	return &Tenants{client: client, cache: cache.New[tenantKey](cache.Options[domain.Tenant]{Size: maxTenants})}
}

// Tenant returns the caller's tenant.
func (t *Tenants) Tenant(ctx context.Context) (domain.Tenant, error) {
	c := caller.FromContext(ctx)
	key := tenantKey{tenant: c.Tenant, version: c.PolicyVersion}
	if known, ok := t.cache.Get(key); ok {
		return known, nil
	}
	var got internalapi.Tenant
	if err := t.client.Do(ctx, http.MethodGet, "/internal/v1/tenants/"+c.Tenant.String(), nil, &got); err != nil {
		return domain.Tenant{}, err
	}
	policy := domain.Policy{
		AutoConfirm:        got.BookingPolicy.AutoConfirm,
		HoldTTLMinutes:     got.BookingPolicy.HoldTTLMinutes,
		MinNoticeMinutes:   got.BookingPolicy.MinNoticeMinutes,
		MaxAdvanceDays:     got.BookingPolicy.MaxAdvanceDays,
		ConfirmOnDeposit:   got.BookingPolicy.ConfirmOnDeposit,
		AutoRefund:         got.BookingPolicy.AutoRefund,
		RefundLatePayments: got.BookingPolicy.RefundLatePayments,
	}
	if got.BookingPolicy.RefundRules != nil { // an empty list means that nothing is refunded
		policy.RefundRules = make([]domain.RefundRule, len(got.BookingPolicy.RefundRules))
	}
	for i, r := range got.BookingPolicy.RefundRules {
		policy.RefundRules[i] = domain.RefundRule(r)
	}
	taxes, err := taxDefaults(got)
	if err != nil {
		return domain.Tenant{}, err
	}
	tenant := domain.Tenant{Policy: policy, Taxes: taxes}
	if got.PolicyVersion >= c.PolicyVersion { // an older response must not be stored for the newer version
		t.cache.Set(key, tenant)
	}
	return tenant, nil
}

// taxDefaults returns the operator's default taxes. Without a setting, prices are net and have no taxes.
func taxDefaults(t internalapi.Tenant) (out domain.TaxDefaults, err error) {
	out.Behavior = money.TaxExclusive
	if t.TaxBehavior != nil {
		out.Behavior = money.TaxBehavior(*t.TaxBehavior)
	}
	if t.DefaultTaxes == nil {
		return out, nil
	}
	list := make([]money.TaxInput, len(*t.DefaultTaxes))
	for i, tax := range *t.DefaultTaxes {
		list[i] = money.TaxInput(tax)
	}
	out.Taxes, err = money.ParseTaxes("default_taxes", list)
	return out, err
}
