// Package peers calls the other services. It calls customers for customers that are not in the projection yet, for expand, and for
// the expiry of quotes. It calls identity for a tenant's booking policy.
package peers

import (
	"context"
	"net/http"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
)

// Customers calls the customers service on behalf of the caller in the context.
type Customers struct{ Client *peer.Client }

// Customer looks up a customer. For an unknown or erased customer, it returns the 404 of the customers service.
func (p *Customers) Customer(ctx context.Context, id domain.CustomerID) (domain.Customer, error) {
	var got api.Customer
	if err := p.Client.Do(ctx, http.MethodGet, "/internal/v1/customers/"+id.String(), nil, &got); err != nil {
		return domain.Customer{}, err
	}
	return domain.Customer{ID: id, Name: got.Name, Version: got.Version}, nil
}

// Expand looks up the public bodies of at most 100 customers in one call, in the order of the list. Unknown and erased customers
// are absent. The response ends at the size of a page; the rest is not looked up.
func (p *Customers) Expand(ctx context.Context, list []domain.CustomerID) (found map[domain.CustomerID]api.Customer, rest []domain.CustomerID, err error) {
	in := internalapi.CustomerBatch{IDs: make([]string, len(list))}
	for i, id := range list {
		in.IDs[i] = id.String()
	}
	var out struct {
		Data []api.Customer `json:"data"`
		Rest []string       `json:"rest"`
	}
	if err := p.Client.Do(ctx, http.MethodPost, "/internal/v1/customers/batch", in, &out); err != nil {
		return nil, nil, err
	}
	found = make(map[domain.CustomerID]api.Customer, len(out.Data))
	for _, c := range out.Data {
		if id, err := ids.Parse[ids.CustomerPrefix](c.Id); err == nil {
			found[id] = c
		}
	}
	for _, s := range out.Rest {
		if id, err := ids.Parse[ids.CustomerPrefix](s); err == nil {
			rest = append(rest, id)
		}
	}
	return found, rest, nil
}

// ExpireQuotes expires some quotes of the caller's tenant that are due by the caller's test clock, and reports whether more are
// due. It implements app.QuoteExpirer.
func (p *Customers) ExpireQuotes(ctx context.Context) (more bool, err error) {
	var got internalapi.QuoteExpiryAnswer
	err = p.Client.Do(ctx, http.MethodPost, "/internal/v1/expiries", nil, &got)
	return got.More, err
}
