// Package bulk fills tables with many rows, and prepares them for a measurement.
package bulk

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	step     = 250_000 // rows of one transaction
	manyRows = 40_000  // for which it is faster to build the indexes again
)

// Copy inserts copies n = from…to of the row of a table for which the condition is true. own contains the SQL of the
// columns that differ, which can use n.
func Copy(
	ctx context.Context, admin *pgx.Conn, table, condition string, from, to int, own map[string]string,
) error {
	found, err := admin.Query(ctx, `select attname from pg_attribute
		where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`, table)
	if err != nil {
		return err
	}
	columns, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return err
	}
	values := make([]string, len(columns))
	for i, name := range columns {
		columns[i] = pgx.Identifier{name}.Sanitize()
		if values[i] = own[name]; values[i] == "" {
			values[i] = "t." + columns[i]
		}
	}
	return Insert(ctx, admin, table, from, to, fmt.Sprintf(`insert into %[1]s (%[2]s)
		select %[3]s from %[1]s t, generate_series($1::int, $2::int) n where %[4]s`,
		table, strings.Join(columns, ", "), strings.Join(values, ", "), condition))
}

// Insert executes a statement that inserts rows $1…$2 into a table, several times for parts of from…to. Triggers are
// disabled, because the references of a copy were checked with its template. If there are many rows, Insert drops the
// indexes that no constraint needs and builds them afterwards. Finally it updates the planner's statistics and the
// visibility map, and completes the pending writes, so that they do not slow down the next measurement.
func Insert(ctx context.Context, admin *pgx.Conn, table string, from, to int, sql string) error {
	load := func() error {
		for first := from; first <= to; first += step {
			tx, err := admin.Begin(ctx)
			if err != nil {
				return err
			}
			if _, err = tx.Exec(ctx, "set local session_replication_role = replica"); err == nil {
				_, err = tx.Exec(ctx, sql, first, min(first+step-1, to))
			}
			if err != nil {
				_ = tx.Rollback(context.WithoutCancel(ctx))
				return fmt.Errorf("rows of %s: %w", table, err)
			}
			if err := tx.Commit(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if to-from < manyRows {
		err = load()
	} else {
		err = withoutIndexes(ctx, admin, table, load)
	}
	if err == nil {
		_, err = admin.Exec(ctx, "vacuum (analyze) "+table)
	}
	if err == nil {
		_, err = admin.Exec(ctx, "checkpoint")
	}
	return err
}

// withoutIndexes drops the indexes that no constraint needs, calls load, and builds them again, which is much faster.
func withoutIndexes(ctx context.Context, admin *pgx.Conn, table string, load func() error) error {
	found, err := admin.Query(ctx, `select indexname, indexdef from pg_indexes where tablename = $1
		and indexname not in (select conname from pg_constraint where conrelid = $1::text::regclass)`, table)
	if err != nil {
		return err
	}
	type index struct{ Name, Definition string }
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[index])
	if err != nil {
		return err
	}
	for _, i := range all {
		if _, err := admin.Exec(ctx, "drop index "+pgx.Identifier{i.Name}.Sanitize()); err != nil {
			return err
		}
	}
	if err := load(); err != nil {
		return err
	}
	if _, err := admin.Exec(ctx, "set maintenance_work_mem = '512MB'"); err != nil {
		return err
	}
	for _, i := range all {
		if _, err := admin.Exec(ctx, i.Definition); err != nil {
			return err
		}
	}
	return nil
}
