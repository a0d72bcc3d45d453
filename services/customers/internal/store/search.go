package store

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

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
