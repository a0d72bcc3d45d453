package api

import (
	"context"
	"slices"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// expands reports whether the related resource is to be embedded, which needs its own read scope.
func expands(ctx context.Context, q contract.Query, resource, scope string) (bool, error) {
	if !slices.Contains(q.List("expand"), resource) {
		return false, nil
	}
	if !caller.FromContext(ctx).Has(scope) {
		return false, domain.MissingScope(scope)
	}
	return true, nil
}

// expandCustomers returns the public bodies of customers by id, in one query. It looks up as many ids, from the start of the list,
// as one page can show. rest contains the ids that were not looked up. An erased customer is absent.
func (a *API) expandCustomers(ctx context.Context, list []domain.CustomerID) (found map[domain.CustomerID]api.Customer, rest []domain.CustomerID, err error) {
	return lookUp(ctx, a.DB, list, store.CustomersByID, func(c domain.Customer) domain.CustomerID { return c.ID }, view.Customer)
}

// expandLeads is expandCustomers for leads.
func (a *API) expandLeads(ctx context.Context, list []domain.LeadID) (found map[domain.LeadID]api.Lead, rest []domain.LeadID, err error) {
	return lookUp(ctx, a.DB, list, store.LeadsByID, func(l domain.Lead) domain.LeadID { return l.ID }, view.Lead)
}

// lookUp reads the rows of ids, in the order of the list. It returns their public bodies and the ids that did not fit.
func lookUp[ID comparable, T, V any](
	ctx context.Context, db *pg.DB, list []ID, read func(context.Context, pg.Q, []ID) (page.Rows[T], error), id func(T) ID, show func(T, api.Mode) V,
) (found map[ID]V, rest []ID, err error) {
	if len(list) == 0 {
		return nil, nil, nil
	}
	rows, err := read(ctx, db.Read(ctx), list)
	if err != nil {
		return nil, nil, err
	}
	found = make(map[ID]V, len(rows.Items))
	for _, row := range rows.Items {
		found[id(row)] = show(row, httpx.Mode(ctx))
	}
	if rows.More {
		rest = list[slices.Index(list, id(rows.Items[len(rows.Items)-1]))+1:]
	}
	return found, rest, nil
}

// embedCustomers is embed for the customer of each body.
func embedCustomers[T, B any](
	ctx context.Context, a *API, list []T, bodies []B, customer func(T) domain.CustomerID, set func(*B, nullable.Nullable[api.Customer]),
) ([]B, error) {
	return embed(list, bodies, customer, func(requested []domain.CustomerID) (map[domain.CustomerID]api.Customer, []domain.CustomerID, error) {
		return a.expandCustomers(ctx, requested)
	}, set)
}

// embed sets the related resource of each body, or null if there is none. It looks up all resources in one query, and returns only
// the bodies before the first one whose resource was not looked up.
func embed[T, B, R any, ID interface {
	comparable
	IsZero() bool
}](
	list []T, bodies []B, related func(T) ID, look func([]ID) (map[ID]R, []ID, error), set func(*B, nullable.Nullable[R]),
) ([]B, error) {
	var requested []ID
	for _, v := range list[:len(bodies)] {
		if id := related(v); !id.IsZero() && !slices.Contains(requested, id) {
			requested = append(requested, id)
		}
	}
	known, rest, err := look(requested)
	if err != nil {
		return nil, err
	}
	for i := range bodies {
		id := related(list[i])
		if slices.Contains(rest, id) {
			return bodies[:i], nil
		}
		set(&bodies[i], api.Null[R]())
		if r, ok := known[id]; ok {
			set(&bodies[i], nullable.NewNullableWithValue(r))
		}
	}
	return bodies, nil
}
