package api

import (
	"context"
	"encoding/json"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// leads defines how the handlers read and show a lead.
func (a *API) leads() rest.Collection[ids.ID[ids.LeadPrefix], domain.Lead] {
	return rest.Collection[ids.ID[ids.LeadPrefix], domain.Lead]{
		Parse: ids.Parse[ids.LeadPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "leads", NotFound: domain.ErrLeadNotFound, Load: store.Lead,
		Show: func(l domain.Lead, mode api.Mode) rest.Response {
			return rest.Response{ID: l.ID.String(), Version: l.Version, Body: view.Lead(l, mode)}
		},
	}
}

func (a *API) createLead(c *gin.Context) error {
	return rest.Create(c, a.leads(), fromLeadCreate, a.Leads.Prepare, a.Leads.Create)
}

func (a *API) updateLead(c *gin.Context) error {
	return rest.Update(c, a.leads(), fromLeadUpdate, a.Leads.Prepare, a.Leads.Update)
}

func (a *API) convertLead(c *gin.Context) error {
	id, err := a.leads().ID(c)
	if err != nil {
		return err
	}
	body, err := httpx.Body[api.LeadConvert](c)
	if err != nil {
		return err
	}
	return rest.Operate(c, a.leads(), id, a.Leads.Convert(id, fromLeadConvert(body), httpx.IfMatch(c)))
}

func (a *API) getLead(c *gin.Context) error {
	ctx := c.Request.Context()
	expand, err := expands(ctx, httpx.Query(c), "customer", "read:customers")
	if err != nil {
		return err
	}
	l, err := a.leads().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	bodies, err := a.leadBodies(ctx, []domain.Lead{l}, expand)
	if err != nil {
		return err
	}
	return httpx.Resource(c, l.Version, bodies[0])
}

func (a *API) listLeads(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	expand, err := expands(ctx, q, "customer", "read:customers")
	if err != nil {
		return err
	}
	filter, none := leadFilter(q)
	return page.ServeShown(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[page.Shown[listedLead]], error) {
		if none {
			return page.Rows[page.Shown[listedLead]]{}, nil
		}
		return a.shownLeads(ctx, db, r, filter, listing{expand, httpx.PrefersCSV(c)})
	})
}

// shownLeads reads one page.
func (a *API) shownLeads(ctx context.Context, db pg.Q, r page.Request, f store.LeadFilter, l listing) (page.Rows[page.Shown[listedLead]], error) {
	rows, err := store.Leads(ctx, db, f, r)
	if err != nil {
		return page.Rows[page.Shown[listedLead]]{}, err
	}
	bodies, err := a.leadBodies(ctx, rows.Items, l.expand)
	if err != nil {
		return page.Rows[page.Shown[listedLead]]{}, err
	}
	shown, err := listed(ctx, a, db, l.csv, rows.Items, bodies, func(l domain.Lead) related { return related{l.CustomerID, l.UnitID} },
		func(b api.Lead, n Names) listedLead { return listedLead{b, n} })
	if err != nil {
		return page.Rows[page.Shown[listedLead]]{}, err
	}
	return page.Show(rows, shown, func(l domain.Lead) page.SortKey {
		return page.SortKey{ID: l.ID.UUID(), Created: l.CreatedAt, Updated: l.UpdatedAt}
	}), nil
}

// leadBodies returns the public bodies of leads, with their customers if expand is true. It then returns only as many of the first
// leads as customers fit into a page.
func (a *API) leadBodies(ctx context.Context, list []domain.Lead, expand bool) ([]api.Lead, error) {
	out := make([]api.Lead, len(list))
	for i, l := range list {
		out[i] = view.Lead(l, httpx.Mode(ctx))
	}
	if !expand {
		return out, nil
	}
	return embedCustomers(ctx, a, list, out, func(l domain.Lead) domain.CustomerID { return l.CustomerID },
		func(b *api.Lead, c nullable.Nullable[api.Customer]) { b.Customer = c })
}

// leadFilter reads the filters. none is true if an id among them is malformed, so that no row matches.
func leadFilter(q contract.Query) (f store.LeadFilter, none bool) {
	f = store.LeadFilter{Search: q.String("q"), Metadata: q.Map("metadata")}
	for _, s := range q.List("status") {
		f.Status = append(f.Status, domain.LeadStatus(s))
	}
	if q.Has("source") {
		f.Source = new(q.String("source"))
	}
	f.Customer, none = rest.FilterID[ids.CustomerPrefix](q, "customer_id")
	return f, none
}

func fromLeadCreate(b api.LeadCreate) domain.LeadPatch {
	return fromLeadUpdate(api.LeadUpdate{
		Source: b.Source, FirstName: &b.FirstName, LastName: b.LastName, Email: b.Email, Phone: b.Phone, Company: b.Company,
		EventType: b.EventType, EventDate: b.EventDate, GuestCount: b.GuestCount, Budget: b.Budget, Message: b.Message,
		ServiceId: b.ServiceId, UnitId: b.UnitId, PackageId: b.PackageId, Metadata: b.Metadata,
	})
}

func fromLeadUpdate(b api.LeadUpdate) domain.LeadPatch {
	return domain.LeadPatch{
		FirstName: patch.FromPointer(b.FirstName), Status: patch.FromPointer((*domain.LeadStatus)(b.Status)),
		Source: patch.FromNullable(b.Source), LastName: patch.FromNullable(b.LastName), Email: patch.FromNullable(b.Email),
		Phone: patch.FromNullable(b.Phone), Company: patch.FromNullable(b.Company), EventType: patch.FromNullable(b.EventType),
		EventDate: patch.FromNullable(b.EventDate), Message: patch.FromNullable(b.Message), LostReason: patch.FromNullable(b.LostReason),
		GuestCount: patch.FromNullable(b.GuestCount), Budget: price(patch.FromNullable(b.Budget)),
		ServiceID: patch.FromNullable(b.ServiceId), UnitID: patch.FromNullable(b.UnitId), PackageID: patch.FromNullable(b.PackageId),
		Metadata: patch.FromNullable[json.RawMessage](b.Metadata),
	}
}

func price(f patch.Field[api.Price]) patch.Field[money.Amount] {
	switch p := f.Pointer(); {
	case p != nil:
		return patch.Value(money.Amount{Minor: p.Amount, Currency: p.Currency})
	case f.Given():
		return patch.Null[money.Amount]()
	default:
		return patch.Field[money.Amount]{}
	}
}

func fromLeadConvert(b api.LeadConvert) app.LeadConversion {
	return app.LeadConversion{
		CustomerID: patch.FromNullable(b.CustomerId).Pointer(), Booking: patch.FromNullable(b.Booking).Pointer(),
	}
}
