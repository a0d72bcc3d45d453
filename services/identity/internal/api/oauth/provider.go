// Package oauth implements the authorization server: OAuth 2.1 with PKCE for public clients, on fosite, and the pages for sign-in
// and consent. RFC 6749 and its successor's draft, RFC 7009, 7636, 8252, 8414, 9207, 9700, 9728.
package oauth

import (
	"context"
	"net/url"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"
	"github.com/ory/fosite/handler/pkce"

	"holdfast.dev/services/identity/internal/domain"
)

const (
	responseCode = "code"
	methodS256   = "S256"
	tokenType    = "bearer"

	accessLifetime = domain.AccessTokenLifetime
)

var grantTypes = []string{"authorization_code", "refresh_token"}

// newProvider builds fosite's provider with exactly the supported flows.
func newProvider(tokens *tokenStore) fosite.OAuth2Provider {
	cfg := &fosite.Config{
		AccessTokenLifespan: accessLifetime, RefreshTokenLifespan: domain.RefreshIdle, AuthorizeCodeLifespan: domain.CodeLifetime,
		EnforcePKCE: true, EnforcePKCEForPublicClients: true, EnablePKCEPlainChallengeMethod: false,
		ScopeStrategy:            fosite.ExactScopeStrategy,
		AudienceMatchingStrategy: noAudience,
		RefreshTokenScopes:       []string{}, // otherwise no refresh token is issued without the scope offline
		MinParameterEntropy:      1,          // the client is responsible for state; authorize generates one if there is none
		SanitationWhiteList:      []string{"redirect_uri", "code_challenge"},
		RedirectSecureChecker:    func(context.Context, *url.URL) bool { return true }, // checked at registration
	}
	code := &oauth2.AuthorizeExplicitGrantHandler{
		AccessTokenStrategy: strategy{}, RefreshTokenStrategy: strategy{}, AuthorizeCodeStrategy: strategy{},
		CoreStorage: tokens, TokenRevocationStorage: tokens, Config: cfg,
	}
	proof := &pkce.Handler{AuthorizeCodeStrategy: strategy{}, Storage: tokens, Config: cfg}
	refresh := refresher{&oauth2.RefreshTokenGrantHandler{
		AccessTokenStrategy: strategy{}, RefreshTokenStrategy: strategy{}, TokenRevocationStorage: tokens, Config: cfg,
	}}
	cfg.AuthorizeEndpointHandlers = fosite.AuthorizeEndpointHandlers{code, proof}
	cfg.TokenEndpointHandlers = fosite.TokenEndpointHandlers{code, refresh, proof}
	cfg.RevocationHandlers = fosite.RevocationHandlers{revoker{tokens}}
	return fosite.NewOAuth2Provider(tokens, cfg)
}

// noAudience accepts every request. There is only one resource, so an audience has no meaning.
func noAudience([]string, []string) error { return nil }
