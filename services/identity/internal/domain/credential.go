package domain

import (
	"github.com/google/uuid"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

// Credential identifies a key, a grant, or an operator of a tenant, for which a service acts.
type Credential struct {
	TenantID ids.Tenant
	Kind     string // key, gr or op; "" for an invalid text
	ID       uuid.UUID
}

// CredentialOf parses the id of a credential.
func CredentialOf(tenant ids.Tenant, text string) Credential {
	if id, err := ParseKeyID(text); err == nil {
		return Credential{tenant, "key", id.UUID()}
	}
	if id, err := ParseGrantID(text); err == nil {
		return Credential{tenant, "gr", id.UUID()}
	}
	if id, err := ParseOperatorID(text); err == nil {
		return Credential{tenant, "op", id.UUID()}
	}
	return Credential{TenantID: tenant}
}

// CredentialState describes whether a credential has ended, and which key replaces it.
type CredentialState struct {
	N         int64 // its position in the requested list, from 1
	Ended     bool
	Successor *KeyID
}

// EndpointGrant is a grant that holds webhook endpoints.
type EndpointGrant struct {
	TenantID ids.Tenant
	Mode     caller.Mode
	ID       string // gr_…
}
