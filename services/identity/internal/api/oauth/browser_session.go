package oauth

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"time"

	"github.com/alexedwards/scs/v2"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/web"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// The keys of the values in a session.
const (
	keyID       = "id"       // ses_…
	keyCreated  = "created"  // Unix seconds
	keyOperator = "operator" // the signed-in operator
	keyPending  = "pending"  // the operator who entered their password, but not their second factor yet
	keyVersion  = "version"  // version of the operator when the password was entered
	keyFresh    = "fresh"    // hash of the authorization request for which the operator signed in
)

// newSessions creates the session manager. A session ends after 12 hours without use and after 7 days in total.
func newSessions(store *sessionStore, site *web.Site) *scs.SessionManager {
	m := scs.New()
	m.Store, m.HashTokenInStore = store, true
	m.Lifetime, m.IdleTimeout = domain.SessionLifetime, domain.SessionIdle
	m.Cookie.Name, m.Cookie.Secure = site.CookieName(web.SessionCookie), site.Secure
	return m
}

// sessionStore stores sessions in PostgreSQL. The manager passes it the hash of the cookie's token.
type sessionStore struct {
	app *app.App
	now func() time.Time
}

var _ scs.CtxStore = (*sessionStore)(nil)

// seenEvery is how often an unchanged session is written to record its use.
const seenEvery = time.Minute

// browserOf is the data that a session records about the browser. found contains the sessions that existed when the request
// arrived, by token.
type browserOf struct {
	address, agent string
	found          map[string]*store.StoredSession
}

type browserKey struct{}

func browserFrom(ctx context.Context) *browserOf {
	b, ok := ctx.Value(browserKey{}).(*browserOf)
	if !ok {
		return &browserOf{found: map[string]*store.StoredSession{}}
	}
	return b
}

// FindCtx implements scs.CtxStore.
func (s *sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	hash, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, false, nil
	}
	found, err := s.app.SessionData(ctx, hash)
	if err != nil || found == nil {
		return nil, false, err
	}
	browserFrom(ctx).found[token] = found
	return found.Data, true, nil
}

// CommitCtx implements scs.CtxStore. It only updates a session that existed when the request arrived, so a session that was ended
// in the meantime is not restored. An unchanged session is not written again within a minute.
func (s *sessionStore) CommitCtx(ctx context.Context, token string, data []byte, expires time.Time) error {
	hash, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return fmt.Errorf("session token: %w", err)
	}
	_, values, err := scs.GobCodec{}.Decode(data)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	b := browserFrom(ctx)
	there := b.found[token]
	if there != nil && there.Address == b.address && s.now().Sub(there.SeenAt) < seenEvery && holds(there.Data, values) {
		return nil
	}
	one := domain.Session{Address: b.address, Agent: b.agent, SeenAt: s.now(), ExpiresAt: expires}
	if id, ok := values[keyID].(string); ok {
		if one.ID, err = ids.Parse[domain.SessionPrefix](id); err != nil {
			return fmt.Errorf("session id: %w", err)
		}
	}
	if at, ok := values[keyCreated].(int64); ok {
		one.CreatedAt = time.Unix(at, 0)
	}
	if id, ok := values[keyOperator].(string); ok {
		operator, err := ids.Parse[domain.OperatorPrefix](id)
		if err != nil {
			return fmt.Errorf("session's operator: %w", err)
		}
		one.OperatorID = &operator
	}
	one.Version, _ = values[keyVersion].(int64)
	return s.app.PutSession(ctx, hash, one, data, there != nil)
}

// holds reports whether a session's data has exactly these values.
func holds(data []byte, values map[string]any) bool {
	_, old, err := scs.GobCodec{}.Decode(data)
	return err == nil && maps.Equal(old, values)
}

// DeleteCtx implements scs.CtxStore.
func (s *sessionStore) DeleteCtx(ctx context.Context, token string) error {
	hash, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil
	}
	return s.app.EndSession(ctx, hash)
}

// Find implements scs.Store, which the manager does not use if it has CtxStore.
func (s *sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit implements scs.Store.
func (s *sessionStore) Commit(token string, data []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expires)
}

// Delete implements scs.Store.
func (s *sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }
