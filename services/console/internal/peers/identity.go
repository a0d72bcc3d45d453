package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/console/internal/domain"
)

// Session returns the session of the token in a browser's cookie, or ErrNoSession if no operator has signed in.
func (s *Services) Session(ctx context.Context, token, requestID string) (*domain.Session, error) {
	return s.session(ctx, token, requestID, false)
}

// WatchSession is Session for an open page. It does not extend the session.
func (s *Services) WatchSession(ctx context.Context, token, requestID string) (*domain.Session, error) {
	return s.session(ctx, token, requestID, true)
}

// itself returns a context in which the console makes a call on its own behalf, without an operator.
func itself(ctx context.Context, requestID string) context.Context {
	who := caller.Service("console", ids.Tenant{}, "")
	who.RequestID = requestID
	return caller.With(ctx, who)
}

// SaveDraft stores the values of a form in identity by its key, for the operator of the form's proof.
func (s *Services) SaveDraft(ctx context.Context, requestID, key, proof string, d domain.Draft) error {
	return s.Clients["identity"].Do(itself(ctx, requestID), http.MethodPut, internal+"drafts/"+key, internalapi.NewDraft{Proof: proof, Page: d.Page, Values: internalapi.FormValues(d.Values)}, nil)
}

// Draft returns the input of an operator for the form with a key.
func (s *Services) Draft(ctx context.Context, requestID, key, operator string) (domain.Draft, error) {
	var got internalapi.Draft
	err := s.Clients["identity"].Do(itself(ctx, requestID), http.MethodGet, internal+"drafts/"+key+"?"+url.Values{"operator": {operator}}.Encode(), nil, &got)
	return domain.Draft{Page: got.Page, Values: url.Values(got.Values)}, err
}

func (s *Services) session(ctx context.Context, token, requestID string, watch bool) (*domain.Session, error) {
	sum := sha256.Sum256([]byte(token))
	var got internalapi.Session
	err := s.Clients["identity"].Do(itself(ctx, requestID), http.MethodPost, internal+"sessions/lookup", internalapi.SessionLookup{Hash: hex.EncodeToString(sum[:]), Watch: &watch}, &got)
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.NotFound {
		return nil, domain.ErrNoSession
	}
	if err != nil {
		return nil, err
	}
	out := &domain.Session{
		ID: got.SessionID, SignedInAt: got.SignedInAt, FormProof: got.FormProof,
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
		if t.Status != nil {
			one.Suspended = *t.Status == internalapi.TenantSuspended || *t.Status == internalapi.TenantErasing
			one.Closing = *t.Status == internalapi.TenantClosing
		}
		if t.EraseAt != nil {
			one.EraseAt = *t.EraseAt
		}
		if t.StatusReason != nil {
			one.StatusReason = *t.StatusReason
		}
		if t.Country != nil {
			one.Country = *t.Country
		}
		if t.Caps != nil {
			one.Caps = *t.Caps
		}
		out.Tenants = append(out.Tenants, one)
	}
	return out, nil
}
