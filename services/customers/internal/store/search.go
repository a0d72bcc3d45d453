package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// termTable is the table of the search terms of one kind of resource, by which q finds it.
type termTable struct {
	name  string
	owner string // the column with the id of the resource
}

// queueInsert queues the insert of the search terms of a resource.
func (t termTable) queueInsert(b *pgx.Batch, owner any, terms []string) {
	b.Queue(fmt.Sprintf(`insert into %s (tenant_id, livemode, word, %s) select @tenant, @live, unnest(@words::text[]), @owner`, t.name, t.owner),
		pg.Args{"words": terms, "owner": owner})
}

// queueDelete queues the deletion of a resource's search terms.
func (t termTable) queueDelete(b *pgx.Batch, owner any) {
	b.Queue(fmt.Sprintf(`delete from %s where tenant_id = @tenant and livemode = @live and %s = @owner`, t.name, t.owner), pg.Args{"owner": owner})
}

// queueReplace queues the replacement of the search terms of a row that the transaction has locked, for its current
// version.
func (t termTable) queueReplace(b *pgx.Batch, table string, owner any, terms []string) {
	t.queueDelete(b, owner)
	t.queueInsert(b, owner, terms)
	b.Queue(fmt.Sprintf(`update %s set search_version = version where tenant_id = @tenant and livemode = @live and id = @owner`, table),
		pg.Args{"owner": owner})
}

// conditions returns the conditions by which rows of a list match each term. list is the alias of the list.
func (t termTable) conditions(list string, terms []domain.Term) []page.Condition {
	var out []page.Condition
	for _, term := range terms {
		ids, has := make([]string, len(term)), make([]string, len(term))
		var args []any
		for i, p := range term {
			ids[i] = fmt.Sprintf(`select i.%s from %s i where i.tenant_id = @tenant and i.livemode = @live and i.word >= ? and i.word < ?`, t.owner, t.name)
			has[i] = `i.word || '' >= ? and i.word || '' < ?`
			args = append(args, p.From, p.Before)
		}
		out = append(out, page.Condition{
			IDs: ids,
			// A resource has few search terms, but many resources match a prefix. || excludes the term from the index condition.
			Has: fmt.Sprintf(`(select true from %s i where i.tenant_id = @tenant and i.livemode = @live and i.%s = %s.id
				and (%s) limit 1)`, t.name, t.owner, list, strings.Join(has, " or ")),
			Args: args,
		})
	}
	return out
}

// Unsearched is a row whose search terms do not belong to its version, because the previous version of the service wrote the row.
type Unsearched struct {
	TenantID ids.Tenant
	Livemode bool
	ID       [16]byte
}

// UnsearchedCustomers returns up to limit customers of all tenants and modes after the given one, by id, whose search terms are to
// be written. tx has the worker role.
func UnsearchedCustomers(ctx context.Context, tx pg.Tx, after [16]byte, limit int) ([]Unsearched, error) {
	return unsearched(ctx, tx, "customers", after, limit)
}

// UnsearchedLeads is UnsearchedCustomers for leads.
func UnsearchedLeads(ctx context.Context, tx pg.Tx, after [16]byte, limit int) ([]Unsearched, error) {
	return unsearched(ctx, tx, "leads", after, limit)
}

func unsearched(ctx context.Context, tx pg.Tx, table string, after [16]byte, limit int) ([]Unsearched, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[Unsearched], `
		select t.tenant_id, t.livemode, t.id from `+table+` t
		where t.search_version <> t.version and t.id > $1::uuid order by t.id limit $2`, after, limit)
}

// ReindexCustomers writes the search terms of the caller's customers among rows. It skips those that another transaction has
// locked, and those whose search terms were written in the meantime. Readers see no change.
func ReindexCustomers(ctx context.Context, tx pg.Tx, rows [][16]byte) error {
	list, err := pg.Many(ctx, tx, pgx.RowToStructByName[domain.Customer], `
		select `+customerColumns+` from customers c
		where c.tenant_id = @tenant and c.livemode = @live and c.id = any(@ids) and c.search_version <> c.version
		order by c.id for update skip locked`, pg.Args{"ids": rows})
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, c := range list {
		customerTerms.queueReplace(b, "customers", c.ID, c.SearchTerms())
	}
	return reindexed(ctx, tx, b)
}

// ReindexLeads is ReindexCustomers for leads.
func ReindexLeads(ctx context.Context, tx pg.Tx, rows [][16]byte) error {
	list, err := pg.Many(ctx, tx, scanLead, `
		select `+leadColumns+` from leads l
		where l.tenant_id = @tenant and l.livemode = @live and l.id = any(@ids) and l.search_version <> l.version
		order by l.id for update of l skip locked`, pg.Args{"ids": rows})
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, l := range list {
		leadTerms.queueReplace(b, "leads", l.ID, l.SearchTerms())
	}
	return reindexed(ctx, tx, b)
}

func reindexed(ctx context.Context, tx pg.Tx, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write search terms: %w", err)
	}
	return nil
}
