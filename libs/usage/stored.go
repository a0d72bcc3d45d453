package usage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
)

var errNoRow = errors.New("a statement that returns one row returned none")

var scanBool = pgx.RowTo[bool]

// own are the tables that the platform has for its own purposes: those of every database, and those of metering. Their rows do not count
// as stored.
var own = []string{"idempotency_keys", "inbox", "outbox", "request_counts", "request_counts_sealed", "usage_days"}

// Tables returns the tables whose rows count as stored: those with rows of tenants in both modes, by name. Partitions are not listed.
func Tables(ctx context.Context, q pg.Q) ([]string, error) {
	return pg.Many(ctx, q, pgx.RowTo[string], `
		select quote_ident(c.relname) from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> all($1)
			and c.relrowsecurity and has_table_privilege(c.oid, 'select')
			and (select count(*) from pg_attribute a where a.attrelid = c.oid and a.attname in ('tenant_id', 'livemode')) = 2
		order by 1`, own)
}

type size struct{ Rows, Bytes int64 }

// stored counts the rows of the caller's tenant and mode, and adds up their sizes, in one statement. It reads all of them.
func stored(ctx context.Context, q pg.Q) (size, error) {
	tables, err := Tables(ctx, q)
	if err != nil {
		return size{}, err
	}
	parts := make([]string, len(tables))
	for i, table := range tables {
		parts[i] = fmt.Sprintf("select pg_column_size(t.*) as size from %s t where tenant_id = @tenant and livemode = @live", table)
	}
	return pg.One(ctx, q, pgx.RowToStructByName[size], errNoRow,
		`select count(*) as rows, coalesce(sum(size), 0)::bigint as bytes from (`+strings.Join(parts, " union all ")+`) t`, pg.Args{})
}
