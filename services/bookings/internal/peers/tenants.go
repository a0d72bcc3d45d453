package peers

import (
	"context"
	"net/http"

	"github.com/maypok86/otter/v2"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
)

// maxPolicies limits the cache of policies. A policy takes about 100 bytes.
const maxPolicies = 10_000

// Tenants requests booking policies from identity. A policy is cached under its version, which each signed caller carries. A change
// is therefore visible to the first request after it, and no entry needs to expire.
type Tenants struct {
	client *peer.Client
	cache  *otter.Cache[policyKey, domain.Policy]
}

type policyKey struct {
	tenant  ids.Tenant
	version int64
}

// NewTenants creates Tenants with a client of identity.
func NewTenants(client *peer.Client) *Tenants {
	return &Tenants{client: client, cache: otter.Must(&otter.Options[policyKey, domain.Policy]{MaximumSize: maxPolicies})}
}

// Policy returns the booking policy of the caller's tenant.
func (t *Tenants) Policy(ctx context.Context) (domain.Policy, error) {
	c := caller.FromContext(ctx)
	key := policyKey{tenant: c.Tenant, version: c.PolicyVersion}
	if p, ok := t.cache.GetIfPresent(key); ok {
		return p, nil
	}
	var got internalapi.Tenant
	if err := t.client.Do(ctx, http.MethodGet, "/internal/v1/tenants/"+c.Tenant.String(), nil, &got); err != nil {
		return domain.Policy{}, err
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
	if got.PolicyVersion >= c.PolicyVersion { // an older response must not be stored for the newer version
		t.cache.Set(key, policy)
	}
	return policy, nil
}
