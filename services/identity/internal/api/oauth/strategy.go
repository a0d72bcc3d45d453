package oauth

import (
	"context"
	"encoding/hex"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"

	"holdfast.dev/services/identity/internal/domain"
)

// strategy creates and recognizes the codes and tokens. Their signatures, fosite's name for the stored values, are SHA-256 in
// hexadecimal. The signature of a refresh token consists of the hash of its family and its own hash.
type strategy struct{}

var _ oauth2.CoreStrategy = strategy{}

// AccessTokenSignature implements oauth2.AccessTokenStrategy.
func (strategy) AccessTokenSignature(_ context.Context, token string) string { return sign(token) }

// GenerateAccessToken implements oauth2.AccessTokenStrategy.
func (strategy) GenerateAccessToken(_ context.Context, r fosite.Requester) (token, signature string, err error) {
	token = domain.NewAccessToken()
	issue(r).Access = token
	return token, sign(token), nil
}

// ValidateAccessToken implements oauth2.AccessTokenStrategy.
func (strategy) ValidateAccessToken(_ context.Context, _ fosite.Requester, token string) error {
	return valid(domain.IsAccessToken(token))
}

// RefreshTokenSignature implements oauth2.RefreshTokenStrategy.
func (strategy) RefreshTokenSignature(_ context.Context, token string) string {
	if !domain.IsRefreshToken(token) {
		return ""
	}
	return hex.EncodeToString(domain.FamilyHash(token)) + sign(token)
}

// GenerateRefreshToken implements oauth2.RefreshTokenStrategy: the next one of the family.
func (s strategy) GenerateRefreshToken(ctx context.Context, r fosite.Requester) (token, signature string, err error) {
	token = domain.NewRefreshToken(r.GetRequestForm().Get("refresh_token"))
	issue(r).Refresh = token
	return token, s.RefreshTokenSignature(ctx, token), nil
}

// ValidateRefreshToken implements oauth2.RefreshTokenStrategy. The storage has already checked its expiry.
func (strategy) ValidateRefreshToken(_ context.Context, _ fosite.Requester, token string) error {
	return valid(domain.IsRefreshToken(token))
}

// AuthorizeCodeSignature implements oauth2.AuthorizeCodeStrategy.
func (strategy) AuthorizeCodeSignature(_ context.Context, code string) string { return sign(code) }

// GenerateAuthorizeCode implements oauth2.AuthorizeCodeStrategy.
func (strategy) GenerateAuthorizeCode(context.Context, fosite.Requester) (code, signature string, err error) {
	code = domain.NewCode()
	return code, sign(code), nil
}

// ValidateAuthorizeCode implements oauth2.AuthorizeCodeStrategy. The storage has already checked its expiry.
func (strategy) ValidateAuthorizeCode(_ context.Context, _ fosite.Requester, code string) error {
	return valid(domain.IsCode(code))
}

func sign(secret string) string { return hex.EncodeToString(domain.SecretHash(secret)) }

func valid(ok bool) error {
	if !ok {
		return fosite.ErrTokenSignatureMismatch
	}
	return nil
}

// issue returns the place for the tokens of a request until they are stored.
func issue(r fosite.Requester) *domain.Tokens {
	s, ok := r.GetSession().(*session)
	if !ok {
		return &domain.Tokens{}
	}
	if s.issued == nil {
		s.issued = &domain.Tokens{Scopes: r.GetGrantedScopes()}
	}
	return s.issued
}

// split splits the signature of a refresh token into the hash of its family and its own hash. It returns nil if the signature is
// malformed.
func split(signature string) (family, own []byte) {
	raw, err := hex.DecodeString(signature)
	if err != nil || len(raw) != 64 {
		return nil, nil
	}
	return raw[:32], raw[32:]
}

func unhex(signature string) []byte {
	raw, err := hex.DecodeString(signature)
	if err != nil {
		return nil
	}
	return raw
}
