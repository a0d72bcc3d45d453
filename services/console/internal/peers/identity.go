package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/console/internal/domain"
)

// Session returns who has signed in with the token of a browser's cookie, ErrNoSession when nobody has.
func (s *Services) Session(ctx context.Context, token, requestID string) (*domain.Session, error) {
	return s.session(ctx, token, requestID, false)
}

// WatchSession is Session for a page that is open: it does not move the session's end.
func (s *Services) WatchSession(ctx context.Context, token, requestID string) (*domain.Session, error) {
	return s.session(ctx, token, requestID, true)
}

func (s *Services) session(ctx context.Context, token, requestID string, watch bool) (*domain.Session, error) {
	who := caller.Service("console", ids.Tenant{}, "")
	who.RequestID = requestID
	sum := sha256.Sum256([]byte(token))
	var got internalapi.Session
	err := s.Clients["identity"].Do(caller.With(ctx, who), http.MethodPost, internal+"sessions/lookup", internalapi.SessionLookup{Hash: hex.EncodeToString(sum[:]), Watch: &watch}, &got)
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.NotFound {
		return nil, domain.ErrNoSession
	}
	if err != nil {
		return nil, err
	}
	out := &domain.Session{
		ID: got.SessionID, SignedInAt: got.SignedInAt,
		Operator: domain.Operator{ID: got.Operator.ID, Email: got.Operator.Email, Name: got.Operator.Name, SecondFactor: got.Operator.SecondFactor},
	}
	for _, t := range got.Tenants {
		id, err := ids.Parse[ids.TenantPrefix](t.ID)
		if err != nil {
			return nil, err
		}
		one := domain.Tenant{
			ID: id, Slug: t.Slug, Name: t.Name, Role: t.Role, Scopes: t.Scopes, Permissions: t.Permissions, Timezone: t.Timezone, Currency: t.Currency,
			PolicyVersion: t.PolicyVersion, Clock: t.Clock,
		}
		if t.Country != nil {
			one.Country = *t.Country
		}
		out.Tenants = append(out.Tenants, one)
	}
	return out, nil
}
