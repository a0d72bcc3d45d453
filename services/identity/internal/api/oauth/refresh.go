package oauth

import (
	"context"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"
)

// refresher is fosite's refresh token grant, with two additions. Within an app's leeway, the previous token returns the tokens that
// it was exchanged for. A request that loses the race for a token is evaluated again against the state after the winner.
type refresher struct {
	*oauth2.RefreshTokenGrantHandler
}

var _ fosite.TokenEndpointHandler = refresher{}

// HandleTokenEndpointRequest checks the scopes in the request, which fosite ignores: RFC 6749, section 6.
func (h refresher) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	requested := r.GetRequestedScopes()
	if err := h.RefreshTokenGrantHandler.HandleTokenEndpointRequest(ctx, r); err != nil || len(requested) == 0 {
		return err
	}
	return restrictScopes(r, requested)
}

// restrictScopes returns the scopes in the request. Each must be in the grant.
func restrictScopes(r fosite.AccessRequester, requested fosite.Arguments) error {
	if !r.GetGrantedScopes().Has(requested...) {
		return fosite.ErrInvalidScope.WithHint("A refresh cannot add scopes that the operator has not granted.")
	}
	if a, ok := r.(*fosite.AccessRequest); ok {
		a.GrantedScope = nil
	}
	for _, scope := range requested {
		r.GrantScope(scope)
	}
	return nil
}

// PopulateTokenEndpointResponse returns the successor again, or creates one.
func (h refresher) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester, out fosite.AccessResponder) error {
	if !h.CanHandleTokenEndpointRequest(ctx, r) {
		return fosite.ErrUnknownRequest
	}
	if h.replay(r, out) {
		return nil
	}
	err := h.RefreshTokenGrantHandler.PopulateTokenEndpointResponse(ctx, r, out)
	if e := exchangeOf(ctx); err == nil || !e.superseded || e.failure != nil {
		return err
	}
	// The token is now the previous one: it is accepted within the leeway, or it was used twice.
	if err := h.HandleTokenEndpointRequest(ctx, r); err != nil {
		return err
	}
	if !h.replay(r, out) {
		return fosite.ErrInvalidGrant
	}
	return nil
}

// replay returns the tokens that the request's token was exchanged for, if it was.
func (refresher) replay(r fosite.AccessRequester, out fosite.AccessResponder) bool {
	s, ok := r.GetSession().(*session)
	if !ok || s.replay == nil || s.grant.RotatedAt == nil {
		return false
	}
	left := time.Until(s.grant.RotatedAt.Add(accessLifetime))
	out.SetAccessToken(s.replay.Access)
	out.SetTokenType(tokenType)
	out.SetExpiresIn(left.Round(time.Second))
	out.SetScopes(s.replay.Scopes)
	out.SetExtra("refresh_token", s.replay.Refresh)
	return true
}
