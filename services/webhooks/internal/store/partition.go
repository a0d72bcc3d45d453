package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
)

// EnsurePartitions creates the weekly partitions of the log between from and until. tx has the worker role.
func EnsurePartitions(ctx context.Context, tx pg.Tx, from, until time.Time) error {
	return pg.Exec(ctx, tx, "ensure partitions", `select keep_partitions($1, $2)`, from, until)
}

// pastWeek is the partition of a past week.
type pastWeek struct {
	Name, Parent string
	Attached     bool // still a partition of its table
	Pending      bool // an earlier detachment was not finished
}

// DropPartitions drops the partitions of weeks that ended before the time before, and returns their names. url connects as the
// database's owner. It detaches each partition concurrently, so that no reader or writer waits, and drops it when no transaction
// reads it. It retries for at most maxWait. Only one call runs at a time. The next call waits until the session of an interrupted
// call ends, and completes its work.
func DropPartitions(ctx context.Context, url string, before time.Time, maxWait time.Duration) (dropped []string, err error) {
	err = pg.Alter(ctx, url, maxWait, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtext('drop_partitions'))`); err != nil { // until the session ends
			return fmt.Errorf("wait for another call: %w", err)
		}
		weeks, err := pastWeeks(ctx, conn, before)
		if err != nil {
			return err
		}
		for _, w := range weeks {
			if err := w.drop(ctx, conn); err != nil {
				return err
			}
			dropped = append(dropped, w.Name)
		}
		return nil
	})
	if err != nil {
		return dropped, fmt.Errorf("drop partitions: %w", err)
	}
	return dropped, nil
}

// pastWeeks returns the partitions of weeks that ended before the time before. A partition that is being detached comes first. A
// table has at most one of these.
func pastWeeks(ctx context.Context, conn *pgx.Conn, before time.Time) ([]pastWeek, error) {
	rows, err := conn.Query(ctx, `
		select c.relname::text as name, split_part(c.relname, '_', 1) as parent, i.inhrelid is not null as attached,
		       coalesce(i.inhdetachpending, false) as pending
		from pg_class c left join pg_inherits i on i.inhrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname ~ '^(events|deliveries)_[0-9]{8}$'
		  and to_date(right(c.relname, 8), 'YYYYMMDD') < date_trunc('week', $1::timestamptz at time zone 'UTC')
		order by pending desc, c.relname`, before)
	if err != nil {
		return nil, fmt.Errorf("list past weeks: %w", err)
	}
	weeks, err := pgx.CollectRows(rows, pgx.RowToStructByName[pastWeek])
	if err != nil {
		return nil, fmt.Errorf("list past weeks: %w", err)
	}
	return weeks, nil
}

// drop detaches the partition, which requires a separate statement, and drops the resulting table.
func (w pastWeek) drop(ctx context.Context, conn *pgx.Conn) error {
	child, parent := pgx.Identifier{w.Name}.Sanitize(), pgx.Identifier{w.Parent}.Sanitize()
	detach := "concurrently"
	if w.Pending {
		detach = "finalize"
	}
	if w.Attached {
		if _, err := conn.Exec(ctx, `alter table `+parent+` detach partition `+child+` `+detach); err != nil {
			return fmt.Errorf("detach %s: %w", w.Name, err)
		}
	}
	if _, err := conn.Exec(ctx, `drop table `+child); err != nil {
		return fmt.Errorf("drop %s: %w", w.Name, err)
	}
	return nil
}
