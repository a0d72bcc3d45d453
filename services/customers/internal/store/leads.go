package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// LeadFilter selects leads of a list. Nil and empty fields select all.
type LeadFilter struct {
	Status   []domain.LeadStatus
	Source   *string // as stored
	Customer *domain.CustomerID
	Person   *domain.CustomerID // also of leads that have become nobody yet, and were quoted to this customer
	Search   string             // each word must be a prefix of a word of name, e-mail or company
	Metadata map[string]string  // exact pairs
}

// Leads reads one page.
func Leads(ctx context.Context, q pg.Q, f LeadFilter, r page.Request) (page.Rows[domain.Lead], error) {
	return page.Search(ctx, q, r, page.List[domain.Lead]{
		Alias: "l",
		Scan:  scanLead,
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			return byState(f.Status, r, func(w *page.Where, state string) (string, []any) { return leadsOf(w, f, state, r, narrow) })
		},
		Conditions: slices.Concat(leadWords.conditions("l", f.Search), page.MetadataConditions(leadMetadata, "l", f.Metadata)),
	})
}

// leadsOf is the list of the leads in one state; "" is all.
func leadsOf(w *page.Where, f LeadFilter, state string, r page.Request, narrow func(*page.Where)) (string, []any) {
	w.Add(`l.tenant_id = @tenant and l.livemode = @live`)
	if state != "" {
		w.Add(`l.status = ?`, state)
	}
	if f.Source != nil {
		w.Add(`l.source = ?`, *f.Source)
	}
	if f.Customer != nil {
		w.Add(`l.customer_id = ?`, *f.Customer)
	}
	if f.Person != nil {
		w.Add(`l.person_id = ?`, *f.Person)
	}
	narrow(w)
	tail, args := w.Page(r, "l")
	return `select ` + leadColumns + ` from leads l ` + tail, args
}

// byState joins the lists of several states, each with its own order and limit, so that each reads its index from where the
// page starts and no further.
func byState[S ~string](states []S, r page.Request, list func(w *page.Where, state string) (string, []any)) (string, []any) {
	w := &page.Where{}
	states = slices.Compact(slices.Sorted(slices.Values(states)))
	if len(states) == 0 {
		return list(w, "")
	}
	var all []string
	var args []any
	for _, s := range states {
		var sql string
		sql, args = list(w.Fork(), string(s))
		all = append(all, sql)
	}
	if len(all) == 1 {
		return all[0], args
	}
	order := "created_at desc, id desc"
	if r.Updated {
		order = "updated_at, id"
	}
	return fmt.Sprintf(`select * from ((%s)) page order by %s limit %d`, strings.Join(all, ") union all ("), order, r.Limit+1), args
}
