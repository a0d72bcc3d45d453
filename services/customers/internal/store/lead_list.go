package store

import (
	"context"
	"slices"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// LeadFilter selects leads of a list. Nil and empty fields select all.
type LeadFilter struct {
	Status   []domain.LeadStatus
	Source   *string // as stored
	Customer *domain.CustomerID
	Person   *domain.CustomerID // includes leads that are not converted yet but were quoted to this customer
	Search   string             // each token: a prefix of a term of name, e-mail or company, or a part of the phone number
	Metadata map[string]string  // exact pairs
}

// Leads reads one page.
func Leads(ctx context.Context, q pg.Q, f LeadFilter, r page.Request) (page.Rows[domain.Lead], error) {
	return page.Search(ctx, q, r, page.List[domain.Lead]{
		Alias: "l",
		Scan:  leads.Scan,
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			return page.Union(r, page.OneOf("l.status", f.Status), func(w *page.Where) (string, []any) { return leadsOf(w, f, r, narrow) })
		},
		Conditions: slices.Concat(leadTerms.conditions("l", domain.Terms(f.Search)), page.MetadataConditions(leadMetadata, "l", f.Metadata)),
	})
}

func leadsOf(w *page.Where, f LeadFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w.Add(`l.tenant_id = @tenant and l.livemode = @live`)
	page.Equal(w, `l.source = ?`, f.Source)
	page.Equal(w, `l.customer_id = ?`, f.Customer)
	page.Equal(w, `l.person_id = ?`, f.Person)
	narrow(w)
	tail, args := w.Page(r, "l")
	return leads.Select + tail, args
}
