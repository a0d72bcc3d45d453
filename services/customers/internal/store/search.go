package store

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// wordTable is the table of the words of one kind of resource, by which q finds it.
type wordTable struct {
	name  string
	owner string // the column with the id of the resource
}

// queueInsert queues the insert of the words of a resource.
func (t wordTable) queueInsert(b *pgx.Batch, owner any, words []string) {
	b.Queue(fmt.Sprintf(`insert into %s (tenant_id, livemode, word, %s) select @tenant, @live, unnest(@words::text[]), @owner`, t.name, t.owner),
		pg.Args{"words": words, "owner": owner})
}

// queueDelete queues the deletion of a resource's words.
func (t wordTable) queueDelete(b *pgx.Batch, owner any) {
	b.Queue(fmt.Sprintf(`delete from %s where tenant_id = @tenant and livemode = @live and %s = @owner`, t.name, t.owner), pg.Args{"owner": owner})
}

// conditions returns the conditions that rows of a list have a word with each of the prefixes in q. list is the alias of the
// list.
func (t wordTable) conditions(list, q string) []page.Condition {
	var out []page.Condition
	for _, p := range domain.Prefixes(q) {
		out = append(out, page.Condition{
			IDs: fmt.Sprintf(`select i.%s from %s i where i.tenant_id = @tenant and i.livemode = @live and i.word >= ? and i.word < ?`, t.owner, t.name),
			// A resource has few words, a prefix has many resources: || keeps the word out of the index condition.
			Has: fmt.Sprintf(`(select true from %s i where i.tenant_id = @tenant and i.livemode = @live and i.%s = %s.id
				and i.word || '' >= ? and i.word || '' < ? limit 1)`, t.name, t.owner, list),
			Args: []any{p.From, p.Before},
		})
	}
	return out
}
