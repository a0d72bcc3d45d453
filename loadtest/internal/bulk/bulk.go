// Package bulk fills a table with copies of one row, many at a time, and prepares it for a measurement.
package bulk

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Template is the row to copy, which is in test mode.
type Template struct {
	Table string
	ID    [16]byte
}

// Copy inserts copies n = from…to of the template. own contains the SQL of the columns that differ, which can use n. Triggers are
// disabled, because the references of a copy were checked with the template itself.
func Copy(ctx context.Context, admin *pgx.Conn, t Template, from, to int, own map[string]string) error {
	found, err := admin.Query(ctx, `select attname from pg_attribute
		where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`, t.Table)
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
	tx, err := admin.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "set local session_replication_role = replica"); err != nil {
		return err
	}
	insert := fmt.Sprintf(`insert into %[1]s (%[2]s) select %[3]s from %[1]s t, generate_series($2::int, $3::int) n
		where t.id = $1 and not t.livemode`, t.Table, strings.Join(columns, ", "), strings.Join(values, ", "))
	if _, err := tx.Exec(ctx, insert, t.ID, from, to); err != nil {
		return fmt.Errorf("copies in %s: %w", t.Table, err)
	}
	return tx.Commit(ctx)
}

// Grow copies n = from…to in several transactions. It drops the indexes that no constraint needs and builds them afterwards.
func Grow(ctx context.Context, admin *pgx.Conn, t Template, from, to int, own map[string]string, say func(string, ...any)) error {
	const step = 250_000
	err := WithoutIndexes(ctx, admin, t.Table, func() error {
		for first := from; first <= to; first += step {
			last := min(first+step-1, to)
			if err := Copy(ctx, admin, t, first, last, own); err != nil {
				return err
			}
			say("%d of %d rows of %s", last, to, t.Table)
		}
		return nil
	})
	if err != nil {
		return err
	}
	say("indexes are built")
	return VacuumAndCheckpoint(ctx, admin, t.Table)
}

// VacuumAndCheckpoint updates the planner's statistics and the visibility map, and completes the pending writes, so that they do
// not slow down the next measurement.
func VacuumAndCheckpoint(ctx context.Context, admin *pgx.Conn, table string) error {
	for _, sql := range []string{"vacuum (analyze) " + table, "checkpoint"} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// WithoutIndexes drops the indexes that no constraint needs, calls load, and builds them again, which is much faster.
func WithoutIndexes(ctx context.Context, admin *pgx.Conn, table string, load func() error) error {
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
