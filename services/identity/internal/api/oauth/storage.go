package oauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"
	"github.com/ory/fosite/handler/pkce"
	"github.com/ory/fosite/storage"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// tokenStore is fosite's storage on top of the app's use cases. A grant is one row, so the writes that fosite makes in several
// steps are collected between BeginTX and Commit and become one statement. The statement changes the row only if it has not changed
// since the request read it.
type tokenStore struct {
	App *app.App
	Box *crypt.Box
	Now func() time.Time
}

var (
	_ fosite.Storage                = (*tokenStore)(nil)
	_ oauth2.CoreStorage            = (*tokenStore)(nil)
	_ oauth2.TokenRevocationStorage = (*tokenStore)(nil)
	_ pkce.PKCERequestStorage       = (*tokenStore)(nil)
	_ storage.Transactional         = (*tokenStore)(nil)
)

// GetClient returns an app by its client_id.
func (t *tokenStore) GetClient(ctx context.Context, id string) (fosite.Client, error) {
	parsed, err := domain.ParseAppID(id)
	if err != nil {
		return nil, fosite.ErrNotFound
	}
	e := exchangeOf(ctx)
	if e.app.ID != parsed {
		found, err := t.App.AppByID(ctx, parsed)
		if err != nil {
			return nil, e.failed(err, domain.ErrAppNotFound)
		}
		e.app = found.App
	}
	return client{e.app, e.redirect}, nil
}

// ClientAssertionJWTValid implements fosite.Storage: no app has a key.
func (*tokenStore) ClientAssertionJWTValid(context.Context, string) error { return fosite.ErrNotFound }

// SetClientAssertionJWT implements fosite.Storage.
func (*tokenStore) SetClientAssertionJWT(context.Context, string, time.Time) error {
	return fosite.ErrNotFound
}

// CreateAuthorizeCodeSession writes the grant of the code, restricted to the scopes of the operator's role.
func (t *tokenStore) CreateAuthorizeCodeSession(ctx context.Context, signature string, r fosite.Requester) error {
	s, okSession := r.GetSession().(*session)
	c, okClient := r.GetClient().(client)
	if !okSession || !okClient {
		return fmt.Errorf("a session is a %T, a client a %T", r.GetSession(), r.GetClient())
	}
	g, err := t.App.Grant(ctx, s.by, app.Consent{
		Operator: s.operator, App: c.App, Tenant: s.tenant, Mode: s.mode, Scopes: r.GetRequestedScopes(),
		RedirectURI: r.GetRequestForm().Get("redirect_uri"), Challenge: r.GetRequestForm().Get("code_challenge"), CodeHash: unhex(signature),
	})
	s.grant = g
	return err
}

// GetAuthorizeCodeSession returns the grant of a code that can be exchanged now. A code that was exchanged before ends its grant,
// but only if the client and the verifier prove that the code was issued to the requester. Otherwise a stranger who saw a code
// could end the grant.
func (t *tokenStore) GetAuthorizeCodeSession(ctx context.Context, signature string, _ fosite.Session) (fosite.Requester, error) {
	g, err := t.read(ctx, unhex(signature), nil)
	if err != nil {
		return nil, err
	}
	form := exchangeOf(ctx).form
	if form.Get("client_id") != g.AppID.String() || !verifyChallenge(form.Get("code_verifier"), g.CodeChallenge) {
		return nil, fosite.ErrNotFound
	}
	if g.ExchangedAt != nil {
		return nil, t.end(ctx, g, domain.CodeReused)
	}
	if g.Ended || !t.Now().Before(g.CodeExpiresAt) {
		return nil, fosite.ErrNotFound
	}
	return t.request(ctx, g)
}

// InvalidateAuthorizeCodeSession records, for Commit, that a code is exchanged.
func (t *tokenStore) InvalidateAuthorizeCodeSession(ctx context.Context, _ string) error {
	return nil // Commit exchanges the code if no refresh token is exchanged
}

// GetPKCERequestSession returns the challenge of a code's grant. The challenge remains stored, so a wrong verifier does not
// invalidate it.
func (t *tokenStore) GetPKCERequestSession(ctx context.Context, signature string, _ fosite.Session) (fosite.Requester, error) {
	g, err := t.read(ctx, unhex(signature), nil)
	if err != nil {
		return nil, err
	}
	return t.request(ctx, g)
}

// CreatePKCERequestSession does nothing, because the grant contains the challenge.
func (*tokenStore) CreatePKCERequestSession(context.Context, string, fosite.Requester) error {
	return nil
}

// DeletePKCERequestSession does nothing, because a code remains bound to its challenge after a wrong verifier.
func (*tokenStore) DeletePKCERequestSession(context.Context, string) error { return nil }

// GetRefreshTokenSession returns the grant of a refresh token that can be exchanged now. A token that was exchanged before ends the
// grant, except for the previous token within the app's leeway, which returns the tokens that it was exchanged for.
func (t *tokenStore) GetRefreshTokenSession(ctx context.Context, signature string, _ fosite.Session) (fosite.Requester, error) {
	family, own := split(signature)
	if family == nil {
		return nil, fosite.ErrNotFound
	}
	g, err := t.read(ctx, nil, family)
	if err != nil {
		return nil, err
	}
	if exchangeOf(ctx).form.Get("client_id") != g.AppID.String() || g.Ended || g.RefreshExpiresAt == nil || !t.Now().Before(*g.RefreshExpiresAt) {
		return nil, fosite.ErrNotFound
	}
	var replay *domain.Tokens
	if !bytes.Equal(own, g.RefreshHash) {
		if replay, err = t.successor(ctx, g, own); err != nil {
			return nil, err
		}
	}
	r, err := t.request(ctx, g)
	if err != nil {
		return nil, err
	}
	s, _ := r.GetSession().(*session)
	s.replay = replay
	return r, nil
}

// successor decrypts the tokens that the previous refresh token was exchanged for, within the app's leeway. Otherwise it ends the
// grant.
func (t *tokenStore) successor(ctx context.Context, g domain.Grant, own []byte) (*domain.Tokens, error) {
	if _, err := t.GetClient(ctx, g.AppID.String()); err != nil {
		return nil, err
	}
	leeway := exchangeOf(ctx).app.Leeway()
	if !bytes.Equal(own, g.PreviousHash) || g.Successor == nil || g.RotatedAt == nil || t.Now().Sub(*g.RotatedAt) >= leeway {
		return nil, t.end(ctx, g, domain.TokenReused)
	}
	plain, err := t.Box.Open(g.Successor, sealedFor(g))
	if err != nil {
		return nil, exchangeOf(ctx).failed(fmt.Errorf("open the successor of %s: %w", g.ID, err), nil)
	}
	var tokens domain.Tokens
	if err := json.Unmarshal(plain, &tokens); err != nil {
		return nil, exchangeOf(ctx).failed(fmt.Errorf("the successor of %s: %w", g.ID, err), nil)
	}
	return &tokens, nil
}

// sealedFor binds sealed tokens to their table, tenant, mode and row.
func sealedFor(g domain.Grant) []byte {
	return fmt.Appendf(nil, "oauth_grants.successor %s %s %s", g.TenantID, caller.ModeOf(g.Livemode), g.ID)
}

// end revokes a grant whose code or token was used twice, and returns the error that fosite reports as invalid_grant.
func (t *tokenStore) end(ctx context.Context, g domain.Grant, why domain.RevokeReason) error {
	if g.RevokedAt != nil {
		return fosite.ErrNotFound
	}
	e := exchangeOf(ctx)
	if _, err := t.App.RevokeGrant(ctx, domain.Origin{Actor: g.AppID.String(), Source: e.source}, g.ID, why); err != nil {
		return e.failed(err, nil)
	}
	obs.Add(ctx, slog.String("grant_revoked", string(why)))
	return fosite.ErrNotFound
}

// request returns a grant in fosite's form. It has a redirect_uri only if the request has one, because OAuth 2.1 does not require
// it if the code is bound to a verifier.
func (t *tokenStore) request(ctx context.Context, g domain.Grant) (fosite.Requester, error) {
	c, err := t.GetClient(ctx, g.AppID.String())
	if err != nil {
		return nil, err
	}
	granted := g.Granted()
	if len(granted) == 0 {
		return nil, fosite.ErrNotFound
	}
	form := url.Values{"code_challenge": {g.CodeChallenge}, "code_challenge_method": {methodS256}}
	if exchangeOf(ctx).form.Has("redirect_uri") {
		form.Set("redirect_uri", g.RedirectURI)
	}
	s := newSession()
	s.grant, s.operator = g, g.OperatorID
	r := &fosite.Request{ID: g.ID.String(), RequestedAt: g.CreatedAt, Client: c, Form: form, Session: s}
	r.SetRequestedScopes(granted)
	for _, scope := range granted {
		r.GrantScope(scope)
	}
	return r, nil
}

// pending is an exchange between BeginTX and Commit.
type pending struct {
	grant    domain.Grant
	exchange store.Exchange
	session  *session
	scopes   []string
}

type pendingKey struct{}

// BeginTX starts to collect an exchange.
func (*tokenStore) BeginTX(ctx context.Context) (context.Context, error) {
	return context.WithValue(ctx, pendingKey{}, &pending{}), nil
}

// Rollback discards the collected writes. Nothing was written.
func (*tokenStore) Rollback(context.Context) error { return nil }

// RotateRefreshToken records which refresh token is exchanged.
func (*tokenStore) RotateRefreshToken(ctx context.Context, _, signature string) error {
	_, pendingOf(ctx).exchange.Old = split(signature)
	return nil
}

// CreateAccessTokenSession records the access token.
func (*tokenStore) CreateAccessTokenSession(ctx context.Context, signature string, r fosite.Requester) error {
	p := pendingOf(ctx)
	s, ok := r.GetSession().(*session)
	if !ok {
		return fmt.Errorf("a session is a %T", r.GetSession())
	}
	p.session, p.grant, p.exchange.Access, p.scopes = s, s.grant, unhex(signature), r.GetGrantedScopes()
	return nil
}

// CreateRefreshTokenSession records the refresh token.
func (*tokenStore) CreateRefreshTokenSession(ctx context.Context, signature, _ string, _ fosite.Requester) error {
	p := pendingOf(ctx)
	p.exchange.Family, p.exchange.Refresh = split(signature)
	return nil
}

// Commit writes the collected exchange in one statement. It records if another request was first.
func (t *tokenStore) Commit(ctx context.Context) error {
	p := pendingOf(ctx)
	if !slices.Equal(p.scopes, p.grant.Scopes) {
		p.exchange.Scopes = p.scopes
	}
	e := exchangeOf(ctx)
	if e.app.Leeway() > 0 && p.exchange.Old != nil {
		plain, err := json.Marshal(p.session.issued)
		if err != nil {
			return fmt.Errorf("seal tokens: %w", err)
		}
		if p.exchange.Successor, err = t.Box.Seal(plain, sealedFor(p.grant)); err != nil {
			return err
		}
	}
	err := t.App.Rotate(ctx, p.grant, p.exchange)
	if errors.Is(err, domain.ErrRotated) {
		e.superseded, e.grant = true, nil
		return fosite.ErrInvalidGrant
	}
	return e.failed(err, nil)
}

// GetAccessTokenSession implements oauth2.AccessTokenStorage. It is not used: the gateway looks up access tokens directly.
func (*tokenStore) GetAccessTokenSession(context.Context, string, fosite.Session) (fosite.Requester, error) {
	return nil, fosite.ErrNotFound
}

// DeleteAccessTokenSession implements oauth2.AccessTokenStorage.
func (*tokenStore) DeleteAccessTokenSession(context.Context, string) error { return nil }

// DeleteRefreshTokenSession implements oauth2.RefreshTokenStorage.
func (*tokenStore) DeleteRefreshTokenSession(context.Context, string) error { return nil }

// RevokeRefreshToken implements oauth2.TokenRevocationStorage. It does nothing, because end already revoked the grant.
func (*tokenStore) RevokeRefreshToken(context.Context, string) error { return nil }

// RevokeAccessToken implements oauth2.TokenRevocationStorage.
func (*tokenStore) RevokeAccessToken(context.Context, string) error { return nil }

func pendingOf(ctx context.Context) *pending {
	p, ok := ctx.Value(pendingKey{}).(*pending)
	if !ok {
		return &pending{}
	}
	return p
}

// read returns a grant of any tenant, by the hash of its code or of the family of its refresh tokens.
func (t *tokenStore) read(ctx context.Context, code, family []byte) (domain.Grant, error) {
	e := exchangeOf(ctx)
	if e.grant != nil {
		return *e.grant, nil
	}
	g, err := t.App.GrantByHash(ctx, code, family)
	if err != nil {
		return domain.Grant{}, e.failed(err, domain.ErrGrantNotFound)
	}
	e.grant = &g
	return g, nil
}

// exchange holds the data of one request to the token endpoint, because fosite requests the app and the grant several times.
type exchange struct {
	form       url.Values
	source     string
	app        domain.App
	redirect   string // of an authorization request, checked
	grant      *domain.Grant
	superseded bool  // another request exchanged the token in the meantime
	failure    error // why the request could not be evaluated, such as an unavailable database
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return &exchange{}
	}
	return e
}

// failed converts an error into one for fosite, which would attribute any error to the client or the token. The error missing
// becomes ErrNotFound. Every other error is not changed.
func (e *exchange) failed(err, missing error) error {
	if err == nil {
		return nil
	}
	if missing != nil && errors.Is(err, missing) {
		return fosite.ErrNotFound
	}
	e.failure = err
	return err
}

// verifyChallenge reports whether a verifier matches a challenge of method S256: RFC 7636, section 4.6.
func verifyChallenge(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}
