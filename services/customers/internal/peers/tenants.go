package peers

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/cache"
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
	// maxLogos bounds the cache of logos, in bytes. A logo takes 512 kB at most.
	maxLogos = 16 << 20
)

// Tenants requests tenants from identity. It implements app.TenantService. It caches the data that invoices show under the version
// of the tenant. Each signed caller carries this version, so the first request after a change sees the change.
type Tenants struct {
	client  *peer.Client
	shown   cache.Cache[versioned, domain.Invoicing]
	working cache.Cache[ids.Tenant, internalapi.Tenant]
	logos   cache.Cache[string, domain.Logo] // by hash
}

type versioned struct {
	tenant  ids.Tenant
	version int64
}

// NewTenants returns Tenants with a client of identity.
func NewTenants(client *peer.Client) *Tenants {
	return &Tenants{
		client:  client,
		shown:   cache.New[versioned](cache.Options[domain.Invoicing]{Size: maxTenants}),
		working: cache.New[ids.Tenant](cache.Options[internalapi.Tenant]{Size: maxTenants, TTL: maxAge}),
		logos: cache.New[string](cache.Options[domain.Logo]{
			Size: maxLogos, Weight: func(l domain.Logo) uint32 { return uint32(len(l.Content)) },
		}),
	}
}

// Invoicing returns the data of the caller's tenant that invoices and quotes show.
func (t *Tenants) Invoicing(ctx context.Context) (domain.Invoicing, error) {
	c := caller.FromContext(ctx)
	key := versioned{tenant: c.Tenant, version: c.PolicyVersion}
	if shown, ok := t.shown.Get(key); ok {
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
	if got.LogoHash != nil {
		shown.LogoHash = *got.LogoHash
	}
	// An older response must not be stored for the newer version, nor one of the previous version of identity, which lacks the logo.
	if got.PolicyVersion >= c.PolicyVersion && got.LogoHash != nil {
		t.shown.Set(key, shown)
	}
	return shown, nil
}

// Logo returns the logo of the caller's tenant. It requests a logo once, and stores it by the hash that it has then, which can be newer.
func (t *Tenants) Logo(ctx context.Context, hash string) (domain.Logo, error) {
	if hash == "" {
		return domain.Logo{}, nil
	}
	if logo, ok := t.logos.Get(hash); ok {
		return logo, nil
	}
	var got internalapi.TenantLogo
	err := t.client.Do(ctx, http.MethodGet, "/internal/v1/tenants/"+caller.FromContext(ctx).Tenant.String()+"/logo", nil, &got)
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.NotFound {
		return domain.Logo{}, nil
	}
	if err != nil {
		return domain.Logo{}, err
	}
	logo := domain.Logo{MediaType: got.MediaType}
	if logo.Content, err = base64.StdEncoding.DecodeString(got.Logo); err != nil {
		return domain.Logo{}, fmt.Errorf("decode logo: %w", err)
	}
	t.logos.Set(got.Hash, logo)
	return logo, nil
}

// Acting returns this service as the caller for a tenant, in the tenant's state at most 5 s ago.
func (t *Tenants) Acting(ctx context.Context, tenant ids.Tenant, mode caller.Mode) (caller.Caller, error) {
	c := caller.Service("customers", tenant, mode)
	got, ok := t.working.Get(tenant)
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
