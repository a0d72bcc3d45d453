package peers

import (
	"context"
	"net/http"
	"time"

	"github.com/maypok86/otter/v2"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/domain"
)

const (
	// maxTenants bounds each cache. A tenant takes about 3 kB at most.
	maxTenants = 10_000
	// maxAge limits the age of a cached tenant when no request specifies its version.
	maxAge = 5 * time.Second
)

// Tenants requests tenants from identity. It implements app.TenantService. It caches the data that invoices show under the version
// of the tenant. Each signed caller carries this version, so the first request after a change sees the change.
type Tenants struct {
	client  *peer.Client
	shown   *otter.Cache[versioned, domain.Invoicing]
	working *otter.Cache[ids.Tenant, internalapi.Tenant]
}

type versioned struct {
	tenant  ids.Tenant
	version int64
}

// NewTenants returns Tenants with a client of identity.
func NewTenants(client *peer.Client) *Tenants {
	return &Tenants{
		client: client,
		shown:  otter.Must(&otter.Options[versioned, domain.Invoicing]{MaximumSize: maxTenants}),
		working: otter.Must(&otter.Options[ids.Tenant, internalapi.Tenant]{
			MaximumSize: maxTenants, ExpiryCalculator: otter.ExpiryWriting[ids.Tenant, internalapi.Tenant](maxAge),
		}),
	}
}

// Invoicing returns the data of the caller's tenant that invoices and quotes show.
func (t *Tenants) Invoicing(ctx context.Context) (domain.Invoicing, error) {
	c := caller.FromContext(ctx)
	key := versioned{tenant: c.Tenant, version: c.PolicyVersion}
	if shown, ok := t.shown.GetIfPresent(key); ok {
		return shown, nil
	}
	got, err := t.tenant(ctx, c.Tenant)
	if err != nil {
		return domain.Invoicing{}, err
	}
	shown := domain.Invoicing{
		Prefix: got.InvoicePrefix, Year: got.InvoiceYear, Name: got.Name, LegalName: got.LegalName, Address: got.Address, TaxID: got.TaxID,
		Country: country(got), Defaults: domain.TaxDefaults{Behavior: domain.TaxExclusive},
	}
	if got.Locale != nil {
		shown.Locale = *got.Locale
	}
	if got.BankName != nil {
		shown.Bank = bank(got)
	}
	if got.TaxBehavior != nil {
		shown.Defaults.Behavior = domain.TaxBehavior(*got.TaxBehavior)
	}
	if got.DefaultTaxes != nil {
		if shown.Defaults.Taxes, err = fromTaxes(*got.DefaultTaxes); err != nil {
			return domain.Invoicing{}, err
		}
	}
	// An older response must not be stored for the newer version, nor one of the previous version of identity, which lacks the bank account.
	if got.PolicyVersion >= c.PolicyVersion && got.BankName != nil {
		t.shown.Set(key, shown)
	}
	return shown, nil
}

// Acting returns this service as the caller for a tenant, in the tenant's state at most 5 s ago.
func (t *Tenants) Acting(ctx context.Context, tenant ids.Tenant, mode caller.Mode) (caller.Caller, error) {
	c := caller.Service("customers", tenant, mode)
	got, ok := t.working.GetIfPresent(tenant)
	if !ok {
		var err error
		if got, err = t.tenant(caller.With(ctx, c), tenant); err != nil {
			return caller.Caller{}, err
		}
		t.working.Set(tenant, got)
	}
	c.Timezone, c.Currency, c.PolicyVersion = got.Timezone, got.Currency, got.PolicyVersion
	if mode == caller.Test {
		c.Clock = got.Clock
	}
	return c, nil
}

func (t *Tenants) tenant(ctx context.Context, id ids.Tenant) (got internalapi.Tenant, err error) {
	err = t.client.Do(ctx, http.MethodGet, "/internal/v1/tenants/"+id.String(), nil, &got)
	return got, err
}

// bank returns the bank account of a tenant. The response has all of its fields or none.
func bank(t internalapi.Tenant) domain.BankAccount {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return domain.BankAccount{
		Holder: text(t.BankAccountHolder), Number: text(t.BankAccountNumber), Code: text(t.BankCode), Name: text(t.BankName),
	}
}

func country(t internalapi.Tenant) string {
	if t.Country == nil {
		return ""
	}
	return *t.Country
}
