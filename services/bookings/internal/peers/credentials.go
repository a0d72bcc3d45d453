package peers

import (
	"context"
	"net/http"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
)

// Credentials requests from identity the state of the credentials that hold calendar feeds.
type Credentials struct{ Client *peer.Client }

// Ended returns those credentials that have ended or were rotated.
func (c *Credentials) Ended(ctx context.Context, holders []domain.FeedHolder) ([]domain.EndedHolder, error) {
	in := internalapi.CredentialList{Credentials: make([]internalapi.CredentialRef, len(holders))}
	for i, h := range holders {
		in.Credentials[i] = internalapi.CredentialRef{TenantID: h.TenantID.String(), ID: h.ID}
	}
	ctx = caller.With(ctx, caller.Service("bookings", ids.Tenant{}, ""))
	var got internalapi.EndedCredentials
	if err := c.Client.Do(ctx, http.MethodPost, "/internal/v1/credentials/ended", in, &got); err != nil {
		return nil, err
	}
	out := make([]domain.EndedHolder, len(got.Data))
	for i, e := range got.Data {
		tenant, err := ids.Parse[ids.TenantPrefix](e.TenantID)
		if err != nil {
			return nil, err
		}
		out[i].FeedHolder = domain.FeedHolder{TenantID: tenant, ID: e.ID}
		if e.Successor != nil {
			out[i].Successor = *e.Successor
		}
	}
	return out, nil
}
