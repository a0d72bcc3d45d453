package api

import (
	"context"
	"maps"
	"slices"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// UnitNamer returns the names of those units that exist, by id. app.BookingService implements it.
type UnitNamer interface {
	UnitNames(ctx context.Context, units []domain.UnitID) (map[domain.UnitID]string, error)
}

// Names are columns of a CSV that JSON does not have. A name is empty if the credential may not read the resource.
type Names struct {
	CustomerName string `json:"customer_name,omitzero"`
	UnitName     string `json:"unit_name,omitzero"`
}

type (
	listedLead struct {
		api.Lead
		Names
	}
	listedQuote struct {
		api.Quote
		Names
	}
	listedInvoice struct {
		api.Invoice
		Names
	}
)

// listing says what a list adds to its bodies.
type listing struct {
	expand bool // the customers
	csv    bool // the names
}

// related are the ids of a row whose names its CSV has.
type related struct {
	customer domain.CustomerID
	unit     domain.UnitID
}

// listed returns the bodies of rows for a list. With csv, it sets their names: it reads those of all customers in one query, and
// requests those of all units from bookings in one call.
func listed[T, B, L any](
	ctx context.Context, a *API, q pg.Q, csv bool, rows []T, bodies []B, of func(T) related, shape func(B, Names) L,
) (out []L, err error) {
	var customers map[domain.CustomerID]string
	var units map[domain.UnitID]string
	if rows = rows[:len(bodies)]; csv {
		customers, err = named(ctx, "read:customers", rows, func(row T) domain.CustomerID { return of(row).customer },
			func(ctx context.Context, list []domain.CustomerID) (map[domain.CustomerID]string, error) {
				return store.CustomerNames(ctx, q, list)
			})
		if err != nil {
			return nil, err
		}
		units, err = named(ctx, "read:units", rows, func(row T) domain.UnitID { return of(row).unit }, a.Units.UnitNames)
		if err != nil {
			return nil, err
		}
	}
	for i, b := range bodies {
		r := of(rows[i])
		out = append(out, shape(b, Names{CustomerName: customers[r.customer], UnitName: units[r.unit]}))
	}
	return out, nil
}

// named returns the names of the resources of rows, by id. It requests none if the credential lacks the scope.
func named[T any, ID interface {
	comparable
	IsZero() bool
}](
	ctx context.Context, scope string, rows []T, of func(T) ID, names func(context.Context, []ID) (map[ID]string, error),
) (map[ID]string, error) {
	distinct := map[ID]bool{}
	for _, row := range rows {
		if id := of(row); !id.IsZero() {
			distinct[id] = true
		}
	}
	if len(distinct) == 0 || !caller.FromContext(ctx).Has(scope) {
		return nil, nil
	}
	return names(ctx, slices.Collect(maps.Keys(distinct)))
}
