package view

import (
	"strconv"
	"time"

	"holdfast.dev/proto/api"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
)

// AdminPlatformKey is a platform key in the form of the command line, without its secret.
type AdminPlatformKey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Scopes     []string   `json:"scopes"`
	CreatedAt  time.Time  `json:"created_at"`
	CreatedBy  string     `json:"created_by"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	RevokedBy  *string    `json:"revoked_by"`
}

// PlatformKeyForAdmin renders a platform key for the command line.
func PlatformKeyForAdmin(k domain.PlatformKey) AdminPlatformKey {
	return AdminPlatformKey{
		ID: k.ID.String(), Name: k.Name, Scopes: k.Scopes, CreatedAt: k.CreatedAt.UTC(), CreatedBy: k.CreatedBy,
		LastUsedAt: utc(k.LastUsedAt), RevokedAt: utc(k.RevokedAt), RevokedBy: k.RevokedBy,
	}
}

// PlatformTenant renders a tenant for the platform API.
func PlatformTenant(t domain.Tenant) platformapi.Tenant {
	out := platformapi.Tenant{
		ID: t.ID.String(), Object: "tenant", Slug: t.Slug, ExternalID: api.OrNull(t.ExternalID), Name: t.Name, Timezone: t.Timezone, Currency: t.Currency, Country: api.OrNull(t.Country),
		Status: platformapi.TenantStatus(t.Status), StatusReason: api.Null[string](), StatusChangedAt: api.OrNull(utc(t.StatusChangedAt)),
		EraseAt: api.OrNull(utc(t.EraseAt)), Metadata: orEmpty(t.Metadata),
		Version: t.Version, CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(),
	}
	if t.StatusReason != "" {
		out.StatusReason.Set(t.StatusReason)
	}
	return out
}

// PlatformTenants renders a page of tenants. next is the cursor of the next page, or "".
func PlatformTenants(list []domain.Tenant, next string) platformapi.TenantList {
	out := platformapi.TenantList{Data: make([]platformapi.Tenant, len(list)), HasMore: next != "", NextCursor: api.Null[string]()}
	for i, t := range list {
		out.Data[i] = PlatformTenant(t)
	}
	if next != "" {
		out.NextCursor.Set(next)
	}
	return out
}

// Erasure is what identity knows about the erasure of a tenant.
type Erasure struct {
	Tenant   domain.Tenant   // the closing tenant, before the erasure begins
	WaitsFor string          // before the erasure begins
	Begun    *domain.Erasure // nil before the erasure begins
}

// PlatformErasure renders the erasure of a tenant. services are the names of the other services from which tenants are erased.
func PlatformErasure(e Erasure, services []string, now time.Time) platformapi.Erasure {
	out := platformapi.Erasure{Object: "tenant_erasure", EraseAt: api.Null[time.Time](), WaitsFor: api.Null[string](), StartedAt: api.Null[time.Time](), ErasedAt: api.Null[time.Time](), Services: []platformapi.ServiceErasure{}}
	if e.Begun == nil {
		out.ID, out.ClosedBy, out.Status, out.EraseAt = e.Tenant.ID.String(), e.Tenant.StatusChangedBy, platformapi.ErasureScheduled, api.OrNull(utc(e.Tenant.EraseAt))
		if e.WaitsFor != "" {
			out.WaitsFor.Set(e.WaitsFor)
		}
		if e.Tenant.EraseAt != nil && !now.Before(*e.Tenant.EraseAt) {
			out.Status = platformapi.ErasureWaiting
		}
		return out
	}
	b := e.Begun
	out.ID, out.ClosedBy, out.Status, out.DeletedRows = b.TenantID.String(), b.ClosedBy, platformapi.ErasureErasing, b.Deleted
	out.StartedAt.Set(b.StartedAt.UTC())
	if b.ErasedAt != nil {
		out.Status = platformapi.ErasureErased
		out.ErasedAt.Set(b.ErasedAt.UTC())
	}
	for _, name := range services {
		deleted, erased := b.Services[name]
		out.Services = append(out.Services, platformapi.ServiceErasure{Service: name, Erased: erased, DeletedRows: deleted})
		out.DeletedRows += deleted
	}
	return out
}

// PlatformLimits renders the limits of a tenant for the platform API.
func PlatformLimits(l domain.Limits) platformapi.Limits {
	return platformapi.Limits{
		Object: "tenant_limits", RequestsPerMinute: api.OrNull(l.RequestsPerMinute),
		CredentialRequestsPerMinute: api.OrNull(l.CredentialRequestsPerMinute), Caps: l.Caps,
	}
}

// PlatformAPIKey renders an API key for the platform API.
func PlatformAPIKey(k domain.Key, now time.Time) platformapi.APIKey {
	return platformapi.APIKey{
		ID: k.ID.String(), Object: "api_key", Name: k.Name, Mode: platformapi.Mode(k.Mode()), Scopes: k.Scopes, Status: k.Status(now),
		CreatedAt: k.CreatedAt.UTC(), LastUsedAt: api.OrNull(utc(k.LastUsedAt)), ExpiresAt: api.OrNull(utc(k.ExpiresAt)), RevokedAt: api.OrNull(utc(k.RevokedAt)),
	}
}

// PlatformAPIKeys renders a page of API keys. more says whether there is another page.
func PlatformAPIKeys(list []domain.Key, more bool, now time.Time) platformapi.APIKeyList {
	out := platformapi.APIKeyList{Data: make([]platformapi.APIKey, len(list)), HasMore: more, NextCursor: api.Null[string]()}
	for i, k := range list {
		out.Data[i] = PlatformAPIKey(k, now)
	}
	if more {
		out.NextCursor.Set(out.Data[len(list)-1].ID)
	}
	return out
}

// PlatformApp renders an app of a tenant.
func PlatformApp(a domain.PublishedApp) platformapi.App {
	return platformapi.App{
		ID: a.ID.String(), Object: "app", TenantID: a.TenantID.String(), Publisher: a.Publisher, Name: a.Name, RedirectURIs: a.RedirectURIs, Scopes: a.Scopes,
		Published: a.Published, VerifiedAt: api.OrNull(utc(a.VerifiedAt)), Version: a.Version, CreatedAt: a.CreatedAt.UTC(), UpdatedAt: a.UpdatedAt.UTC(),
	}
}

// PlatformOwner renders an invited owner. link is "" if they have a password already.
func PlatformOwner(o domain.Operator, link string) platformapi.Owner {
	out := platformapi.Owner{ID: o.ID.String(), Object: "operator", Email: o.Email, Name: o.Name, Link: api.Null[string]()}
	if link != "" {
		out.Link.Set(link)
	}
	return out
}

// PlatformNewKey renders a key that was just created, with its secret.
func PlatformNewKey(k domain.Key, secret string, now time.Time) platformapi.NewAPIKey {
	shown := PlatformAPIKey(k, now)
	return platformapi.NewAPIKey{
		ID: shown.ID, Object: shown.Object, Name: shown.Name, Mode: shown.Mode, Scopes: shown.Scopes, Status: shown.Status, CreatedAt: shown.CreatedAt,
		LastUsedAt: shown.LastUsedAt, ExpiresAt: shown.ExpiresAt, RevokedAt: shown.RevokedAt, Secret: secret,
	}
}

// PlatformTenantOwner renders an owner of a tenant.
func PlatformTenantOwner(m domain.Member) platformapi.TenantOwner {
	o := OperatorForAdmin(m)
	return platformapi.TenantOwner{ID: o.ID, Object: "operator", Email: o.Email, Name: o.Name, Status: o.State, CreatedAt: o.CreatedAt}
}

// PlatformOwners renders a page of owners. more says whether there is another page.
func PlatformOwners(list []domain.Member, more bool) platformapi.TenantOwnerList {
	out := platformapi.TenantOwnerList{Data: make([]platformapi.TenantOwner, len(list)), HasMore: more, NextCursor: api.Null[string]()}
	for i, m := range list {
		out.Data[i] = PlatformTenantOwner(m)
	}
	if more {
		out.NextCursor.Set(out.Data[len(list)-1].ID)
	}
	return out
}

// PlatformAuditRecords renders a page of an audit log. more says whether there is another page.
func PlatformAuditRecords(list []domain.Record, more bool) platformapi.AuditRecordList {
	out := platformapi.AuditRecordList{Data: make([]platformapi.AuditRecord, len(list)), HasMore: more, NextCursor: api.Null[string]()}
	for i, r := range list {
		a := AuditRecord(r)
		out.Data[i] = platformapi.AuditRecord{
			Object: "audit_record", Sequence: a.Sequence, At: a.At, Mode: platformapi.Mode(a.Mode), Actor: a.Actor, Action: a.Action, ObjectID: a.Object,
			Before: api.OrNull(orNull(a.Before)), After: api.OrNull(orNull(a.After)), Source: a.Source,
		}
	}
	if more {
		out.NextCursor.Set(strconv.FormatInt(out.Data[len(list)-1].Sequence, 10))
	}
	return out
}
