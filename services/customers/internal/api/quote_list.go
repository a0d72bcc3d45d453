package api

import (
	"context"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

func (a *API) listQuotes(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	expand, err := quoteExpands(ctx, q)
	if err != nil {
		return err
	}
	filter, none := a.quoteFilter(ctx, q)
	return page.ServeShown(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[page.Shown[listedQuote]], error) {
		if none {
			return page.Rows[page.Shown[listedQuote]]{}, nil
		}
		return a.shownQuotes(ctx, db, r, filter, expand, httpx.PrefersCSV(c))
	})
}

// quoteFilter reads the filters. none is true if an id among them is malformed, so that no row matches.
func (a *API) quoteFilter(ctx context.Context, q contract.Query) (f store.QuoteFilter, none bool) {
	var bad [3]bool
	f = store.QuoteFilter{Now: a.now(ctx), Metadata: q.Map("metadata")}
	f.Customer, bad[0] = rest.FilterID[ids.CustomerPrefix](q, "customer_id")
	f.Lead, bad[1] = rest.FilterID[ids.LeadPrefix](q, "lead_id")
	f.Booking, bad[2] = rest.FilterID[ids.BookingPrefix](q, "booking_id")
	if q.Has("number") {
		f.Number = new(strings.ToUpper(q.String("number")))
	}
	for _, s := range q.List("status") {
		f.Status = append(f.Status, domain.QuoteStatus(s))
	}
	return f, slices.Contains(bad[:], true)
}

// shownQuotes reads one page, each quote as it is now.
func (a *API) shownQuotes(
	ctx context.Context, db pg.Q, r page.Request, f store.QuoteFilter, expand quoteExpansion, csv bool,
) (page.Rows[page.Shown[listedQuote]], error) {
	rows, err := store.Quotes(ctx, db, f, r)
	if err != nil {
		return page.Rows[page.Shown[listedQuote]]{}, err
	}
	for i, q := range rows.Items {
		rows.Items[i] = q.At(f.Now)
	}
	bodies, err := a.quoteBodies(ctx, rows.Items, expand)
	if err != nil {
		return page.Rows[page.Shown[listedQuote]]{}, err
	}
	shown, err := listed(ctx, a, db, csv, rows.Items, bodies, func(q domain.Quote) related { return related{q.CustomerID, q.UnitID} },
		func(b api.Quote, n Names) listedQuote { return listedQuote{b, n} })
	if err != nil {
		return page.Rows[page.Shown[listedQuote]]{}, err
	}
	return page.Show(rows, shown, func(q domain.Quote) page.SortKey {
		return page.SortKey{ID: q.ID.UUID(), Created: q.CreatedAt, Updated: q.UpdatedAt}
	}), nil
}

// quoteExpansion specifies what to embed in quotes.
type quoteExpansion struct{ customer, lead bool }

func quoteExpands(ctx context.Context, q contract.Query) (e quoteExpansion, err error) {
	if e.customer, err = expands(ctx, q, "customer", "read:customers"); err != nil {
		return e, err
	}
	e.lead, err = expands(ctx, q, "lead", "read:leads")
	return e, err
}

// quoteBodies returns the public bodies of quotes, with the resources to embed. It then returns only the first quotes whose
// resources were looked up, because these fill a page.
func (a *API) quoteBodies(ctx context.Context, list []domain.Quote, expand quoteExpansion) ([]api.Quote, error) {
	out := make([]api.Quote, len(list))
	for i, q := range list {
		out[i] = view.Quote(q, httpx.Mode(ctx))
	}
	var err error
	if expand.customer {
		out, err = embedCustomers(ctx, a, list, out, func(q domain.Quote) domain.CustomerID { return q.CustomerID },
			func(q *api.Quote, c nullable.Nullable[api.Customer]) { q.Customer = c })
	}
	if err == nil && expand.lead {
		out, err = embed(list, out, func(q domain.Quote) domain.LeadID { return q.LeadID },
			func(requested []domain.LeadID) (map[domain.LeadID]api.Lead, []domain.LeadID, error) {
				return a.expandLeads(ctx, requested)
			},
			func(q *api.Quote, l nullable.Nullable[api.Lead]) { q.Lead = l })
	}
	return out, err
}
