package oauth

import (
	"github.com/ory/fosite"

	"holdfast.dev/services/identity/internal/domain"
)

// client is an app as fosite knows it: a public client with the authorization code and refresh token grants.
type client struct {
	domain.App

	redirect string // of the authorization request, which appOf has checked; "" outside one
}

var _ fosite.Client = client{}

// GetID returns the client_id.
func (c client) GetID() string { return c.ID.String() }

// GetHashedSecret returns nil: a public client has no secret.
func (client) GetHashedSecret() []byte { return nil }

// GetRedirectURIs returns the registered redirect URIs.
func (c client) GetRedirectURIs() []string {
	if c.redirect != "" {
		return []string{c.redirect} // fosite would not accept another port of localhost
	}
	return c.RedirectURIs
}

// GetGrantTypes returns the grant types that every app has.
func (client) GetGrantTypes() fosite.Arguments { return fosite.Arguments(grantTypes) }

// GetResponseTypes returns the only response type.
func (client) GetResponseTypes() fosite.Arguments { return fosite.Arguments{responseCode} }

// GetResponseModes returns the only response mode that can be requested by name.
func (client) GetResponseModes() []fosite.ResponseModeType {
	return []fosite.ResponseModeType{fosite.ResponseModeQuery}
}

// GetScopes returns the scopes that the app can request.
func (c client) GetScopes() fosite.Arguments { return c.Scopes }

// IsPublic is true for every app.
func (client) IsPublic() bool { return true }

// GetAudience returns nil: there is one resource.
func (client) GetAudience() fosite.Arguments { return nil }
