package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// TenantFilter selects tenants, and their order. An empty field excludes none.
type TenantFilter struct {
	Status       domain.TenantStatus
	Slug         string
	ExternalID   string
	Search       string // each word: a prefix of a word of slug, name or external id
	UpdatedAfter *time.Time
	Updated      bool           // in the order of the changes, instead of the order of creation
	After        TenantPosition // the last tenant of the previous page
}

// TenantPosition is the place of a tenant in a list. The zero value is the place before all.
type TenantPosition struct {
	At time.Time // of the last change, for the order of the changes
	ID ids.Tenant
}

// prepareTenantPage makes the server plan the list for the values of its arguments, sets the watermark, and returns the terms of a
// search as a tsquery. The watermark is read before the snapshot of the list.
const prepareTenantPage = `select coalesce(string_agg('''' || w || ''':*', ' & '), '')
	from (select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('app.settled', oldest_write()::text, true)) s
		left join unnest(search_words(@search)) w on true`

// TenantPage returns at most limit tenants that match the filter. In the order of the changes, it returns only tenants whose writes have
// ended, so that a list that continues after the last one misses none. tx has the worker role.
func TenantPage(ctx context.Context, tx pg.Tx, f TenantFilter, limit int) ([]domain.Tenant, error) {
	terms, err := pg.One(ctx, tx, pgx.RowTo[string], pgx.ErrNoRows, prepareTenantPage, pg.Args{"search": f.Search})
	if err != nil {
		return nil, err
	}
	if f.Search != "" && terms == "" {
		return []domain.Tenant{}, nil // punctuation matches no word
	}
	search := matchesTerms
	if rare, err := areRare(ctx, tx, terms); err != nil {
		return nil, err
	} else if rare {
		search = `tenant_id = any(array(select tenant_id from tenants where ` + matchesTerms + `))`
	}
	sql := `select ` + tenantColumns + ` from tenants where true`
	for _, c := range []struct {
		given bool
		cond  string
	}{
		{f.Status != "", `status = @status`},
		{f.Slug != "", `slug = @slug`},
		{f.ExternalID != "", `external_id = @external_id`},
		{terms != "", search},
		{f.UpdatedAfter != nil, `updated_at >= @updated_after`},
		{f.Updated, `updated_at < ` + pg.Watermark},
		{f.Updated && !f.After.ID.IsZero(), `(updated_at, tenant_id) > (@at, @after)`},
		{!f.Updated && !f.After.ID.IsZero(), `tenant_id > @after`},
	} {
		if c.given {
			sql += ` and ` + c.cond
		}
	}
	order := `tenant_id`
	if f.Updated {
		order = `updated_at, tenant_id`
	}
	return pg.Many(ctx, tx, pgx.RowToStructByName[domain.Tenant], sql+` order by `+order+` limit @limit`, pg.Args{
		"status": string(f.Status), "slug": f.Slug, "external_id": f.ExternalID, "terms": terms, "updated_after": f.UpdatedAfter,
		"at": f.After.At, "after": f.After.ID, "limit": limit,
	})
}

// matchesTerms is the condition of a search.
const matchesTerms = `search @@ @terms::text::tsquery`

// areRare reports whether at most page.RareMatches tenants match the terms, so that a search begins with them. Otherwise it reads the
// tenants in the order of the list, of which many match. The server does not know how rare the beginning of a word is.
func areRare(ctx context.Context, tx pg.Tx, terms string) (bool, error) {
	if terms == "" {
		return false, nil
	}
	return pg.One(ctx, tx, pgx.RowTo[bool], pgx.ErrNoRows, `select count(*) <= @most from (
		select from tenants where `+matchesTerms+` limit @most + 1) x`, pg.Args{"terms": terms, "most": page.RareMatches})
}
