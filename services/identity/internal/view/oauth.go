package view

import (
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// AdminApp is an app in the form of the command line and the audit log.
type AdminApp struct {
	ID                 string     `json:"id"`
	Name               string     `json:"name"`
	RedirectURIs       []string   `json:"redirect_uris"`
	Scopes             []string   `json:"scopes"`
	Published          bool       `json:"published"`
	ReuseLeewaySeconds int        `json:"reuse_leeway_seconds"`
	BrowserOrigins     []string   `json:"browser_origins"`
	VerifiedAt         *time.Time `json:"verified_at"` // when the platform verified it
	Version            int64      `json:"version"`
	CreatedAt          time.Time  `json:"created_at"`
	UpdatedAt          time.Time  `json:"updated_at"`
}

// AppForAdmin renders an app.
func AppForAdmin(a domain.App) AdminApp {
	return AdminApp{
		ID: a.ID.String(), Name: a.Name, RedirectURIs: a.RedirectURIs, Scopes: a.Scopes, Published: a.Published,
		ReuseLeewaySeconds: a.ReuseLeewaySeconds, BrowserOrigins: a.BrowserOrigins, VerifiedAt: utc(a.VerifiedAt), Version: a.Version, CreatedAt: a.CreatedAt.UTC(), UpdatedAt: a.UpdatedAt.UTC(),
	}
}

// AdminRegisteredApp is an app that registered itself, in the form of the command line.
type AdminRegisteredApp struct {
	AdminApp

	DocumentURL string     `json:"document_url,omitempty"` // the client_id, of an app with a document
	UsedAt      *time.Time `json:"used_at"`                // the last consent
}

// RegisteredAppForAdmin renders an app that registered itself.
func RegisteredAppForAdmin(a domain.RegisteredApp) AdminRegisteredApp {
	return AdminRegisteredApp{AdminApp: AppForAdmin(a.App), DocumentURL: a.DocumentURL, UsedAt: utc(a.UsedAt)}
}

// AdminGrant is a grant in the form of the command line and the audit log.
type AdminGrant struct {
	ID         string     `json:"id"`
	AppID      string     `json:"app_id"`
	OperatorID string     `json:"operator_id"`
	Mode       string     `json:"mode"`
	Scopes     []string   `json:"scopes"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_refreshed_at"`
	EndsAt     time.Time  `json:"ends_at"`
}

// GrantForAdmin renders a grant, without its codes and tokens.
func GrantForAdmin(g domain.Grant) AdminGrant {
	return AdminGrant{
		ID: g.ID.String(), AppID: g.AppID.String(), OperatorID: g.OperatorID.String(), Mode: string(caller.ModeOf(g.Livemode)), Scopes: g.Scopes,
		CreatedAt: g.CreatedAt.UTC(), LastUsedAt: utc(g.RotatedAt), EndsAt: g.EndsAt.UTC(),
	}
}

// InternalGrant returns a grant in the form of the console.
func InternalGrant(g domain.ShownGrant) internalapi.Grant {
	a := GrantForAdmin(g.Grant)
	return internalapi.Grant{
		ID: a.ID, AppID: a.AppID, App: g.AppName, OperatorID: a.OperatorID, Operator: g.Operator, Mode: a.Mode, Scopes: a.Scopes,
		CreatedAt: a.CreatedAt, LastRefreshedAt: a.LastUsedAt, EndsAt: a.EndsAt,
	}
}

// AdminOperator is a member of a tenant in the form of the command line.
type AdminOperator struct {
	ID           string    `json:"id"`
	Email        string    `json:"email"`
	Name         string    `json:"name"`
	Role         string    `json:"role"`
	State        string    `json:"state"` // invited, active or disabled
	SecondFactor bool      `json:"second_factor"`
	CreatedAt    time.Time `json:"created_at"`
}

// OperatorForAdmin renders a member.
func OperatorForAdmin(m domain.Member) AdminOperator {
	state := "active"
	switch {
	case m.DisabledAt != nil:
		state = "disabled"
	case m.Invited:
		state = "invited"
	}
	return AdminOperator{
		ID: m.ID.String(), Email: m.Email, Name: m.Name, Role: string(m.Role), State: state, SecondFactor: m.Factor, CreatedAt: m.CreatedAt.UTC(),
	}
}

// RoleForAudit returns a membership in the form of the audit log, or nil if there was none or it no longer exists. A pending
// membership is included.
func RoleForAudit(m *domain.Membership) any {
	if m == nil || m.EndedAt != nil && !m.Waits() {
		return nil
	}
	return map[string]any{"role": m.Role}
}

// Session returns the signed-in operator in the form of the console, from a row for each tenant. It contains the proof for the
// forms of their pages.
func Session(rows []domain.SessionRow, scopes []string, proof string) internalapi.Session {
	first := rows[0]
	out := internalapi.Session{
		SessionID: first.ID.String(), SignedInAt: first.CreatedAt.UTC(), Tenants: []internalapi.SessionTenant{}, FormProof: proof,
		Operator: internalapi.SessionOperator{ID: first.Operator.String(), Email: first.Email, Name: first.Name, SecondFactor: first.Factor},
	}
	for _, r := range rows {
		if r.Tenant == nil {
			continue
		}
		one := internalapi.SessionTenant{
			ID: r.Tenant.String(), Slug: *r.Slug, Name: *r.TenantName, Role: string(*r.Role), Scopes: r.Role.Scopes(scopes), Permissions: []string{},
			Timezone: *r.Timezone, Currency: *r.Currency, Country: r.Country, PolicyVersion: *r.Version, Clock: utc(r.Clock),
			Status: (*internalapi.TenantStatus)(r.Status), StatusReason: r.Reason, EraseAt: utc(r.EraseAt),
		}
		if len(r.Caps) > 0 {
			one.Caps = &r.Caps
		}
		for _, p := range domain.Permissions {
			if r.Role.Can(p) {
				one.Permissions = append(one.Permissions, string(p))
			}
		}
		out.Tenants = append(out.Tenants, one)
	}
	return out
}
