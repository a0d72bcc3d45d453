package oauth

import (
	"maps"
	"time"

	"github.com/ory/fosite"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/domain"
)

// session is the data that fosite passes from one step of a request to the next.
type session struct {
	expires map[fosite.TokenType]time.Time

	// For an authorization: the operator's selection.
	operator domain.OperatorID
	tenant   ids.Tenant
	mode     caller.Mode
	by       domain.Origin

	// For an exchange: the grant, the new tokens, and the tokens to return again.
	grant  domain.Grant
	issued *domain.Tokens
	replay *domain.Tokens
}

var _ fosite.Session = (*session)(nil)

func newSession() *session { return &session{expires: map[fosite.TokenType]time.Time{}} }

// SetExpiresAt implements fosite.Session.
func (s *session) SetExpiresAt(key fosite.TokenType, at time.Time) { s.expires[key] = at }

// GetExpiresAt implements fosite.Session.
func (s *session) GetExpiresAt(key fosite.TokenType) time.Time { return s.expires[key] }

// GetUsername implements fosite.Session.
func (s *session) GetUsername() string { return "" }

// GetSubject implements fosite.Session.
func (s *session) GetSubject() string { return s.operator.String() }

// Clone implements fosite.Session.
func (s *session) Clone() fosite.Session {
	c := *s
	c.expires = maps.Clone(s.expires)
	return &c
}
