package peers

import (
	"context"
	"net/http"
	"net/url"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// EndpointGrants tells webhooks which grants that hold webhook endpoints have ended.
type EndpointGrants struct{ Client *peer.Client }

// List returns a page of the grants of all tenants that hold enabled endpoints, after the given one.
func (e *EndpointGrants) List(ctx context.Context, after string) ([]domain.EndpointGrant, error) {
	var got internalapi.EndpointGrants
	path := "/internal/v1/endpoint-grants"
	if after != "" {
		path += "?" + url.Values{"after": {after}}.Encode()
	}
	if err := e.Client.Do(of(ctx, ids.Tenant{}), http.MethodGet, path, nil, &got); err != nil {
		return nil, err
	}
	out := make([]domain.EndpointGrant, len(got.Data))
	for i, g := range got.Data {
		tenant, err := ids.Parse[ids.TenantPrefix](g.TenantID)
		if err != nil {
			return nil, err
		}
		out[i] = domain.EndpointGrant{TenantID: tenant, Mode: caller.ModeOf(g.Livemode), ID: g.ID}
	}
	return out, nil
}

// End disables the endpoints of grants that have ended.
func (e *EndpointGrants) End(ctx context.Context, ended []domain.EndpointGrant) error {
	in := internalapi.EndpointGrants{Data: make([]internalapi.EndpointGrant, len(ended))}
	for i, g := range ended {
		in.Data[i] = internalapi.EndpointGrant{TenantID: g.TenantID.String(), Livemode: g.Mode == caller.Live, ID: g.ID}
	}
	var got internalapi.DisabledEndpoints
	return e.Client.Do(of(ctx, ids.Tenant{}), http.MethodPost, "/internal/v1/endpoint-grants/ended", in, &got)
}
