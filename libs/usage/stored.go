package usage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
)

var errNoRow = errors.New("a statement that returns one row returned none")

var scanBool = pgx.RowTo[bool]

// own are the tables that the platform has for its own purposes: those of every database, and those of metering. Their rows do not count
// as stored.
var own = []string{"idempotency_keys", "inbox", "outbox", "request_counts", "request_counts_sealed", "usage_days"}

// sampleRows is the number of rows of a tenant and mode in a table up to which each row is read, and the mean number of rows in the sample
// of a larger table. The standard error of the estimated size is the standard deviation of a row's size times the number of rows,
// divided by the square root of this number: 2.2 % for rows whose standard deviation equals their mean.
const sampleRows = 2000

// table is a table whose rows count as stored, with quoted names.
type table struct {
	Name string
	Key  []string // the columns of its primary key; nil: it has none
}

// tables returns the tables whose rows count as stored: those with rows of tenants in both modes, by name. Partitions are not listed.
func tables(ctx context.Context, q pg.Q) ([]table, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[table], `
		select quote_ident(c.relname) as name, (select array_agg(quote_ident(a.attname) order by a.attnum)
			from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey) where i.indrelid = c.oid and i.indisprimary) as key
		from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> all($1)
			and c.relrowsecurity and has_table_privilege(c.oid, 'select')
			and (select count(*) from pg_attribute a where a.attrelid = c.oid and a.attname in ('tenant_id', 'livemode')) = 2
		order by 1`, own)
}

type size struct{ Rows, Bytes int64 }

// ofTenant selects the rows of the caller's tenant and mode.
const ofTenant = " where tenant_id = @tenant and livemode = @live"

// stored counts the rows of the caller's tenant and mode in each table, and adds up their sizes. It counts index entries and reads at most
// about sampleRows rows of a table: all of a small table, and a random sample of a large one. It ends with pg's code query_canceled
// after a time.
func stored(ctx context.Context, tx pg.Tx, within time.Duration) (all size, err error) {
	end := time.Now().Add(within)
	// The policies repeat the conditions, so PostgreSQL expects fewer rows than there are, and would read them for a bitmap.
	if _, err := tx.Exec(ctx, `select set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)`); err != nil {
		return all, fmt.Errorf("stored rows: %w", err)
	}
	list, err := tables(ctx, tx)
	if err != nil {
		return all, err
	}
	rows, err := count(ctx, tx, list, end)
	if err != nil {
		return all, err
	}
	var small []string // statements
	var large []string
	for i, t := range list {
		all.Rows += rows[i]
		switch {
		case rows[i] > sampleRows && t.Key != nil:
			large = append(large, t.sample(i, rows[i]))
		case rows[i] > 0:
			small = append(small, fmt.Sprintf("select pg_column_size(t.*) as size from %s t"+ofTenant, t.Name))
		}
	}
	if small != nil {
		all.Bytes, err = one(ctx, tx, end, `select coalesce(sum(size), 0)::bigint from (`+strings.Join(small, " union all ")+`) t`)
	}
	if err != nil || large == nil {
		return all, err
	}
	samples, err := many(ctx, tx, end, strings.Join(large, " union all "))
	for _, s := range samples {
		if s.Rows > 0 { // a sample without a row is as likely as e to the power of -sampleRows
			all.Bytes += int64(float64(s.Bytes) / float64(s.Rows) * float64(rows[s.Ordinal]))
		}
	}
	return all, err
}

// count returns the number of rows in each table. It reads only the index of a primary key whose pages are marked as visible.
func count(ctx context.Context, tx pg.Tx, list []table, end time.Time) ([]int64, error) {
	rows := make([]int64, len(list))
	if len(list) == 0 {
		return rows, nil
	}
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = fmt.Sprintf("select %d as ordinal, count(*) as rows, 0::bigint as bytes from %s"+ofTenant, i, t.Name)
	}
	counted, err := many(ctx, tx, end, strings.Join(parts, " union all "))
	for _, c := range counted {
		rows[c.Ordinal] = c.Rows
	}
	return rows, err
}

// sample returns a statement that reads a random sample of a table's rows. It draws from the entries of the index, and the limit
// makes PostgreSQL look up each drawn row by its key.
func (t table) sample(ordinal int, rows int64) string {
	share := strconv.FormatFloat(sampleRows/float64(rows), 'f', -1, 64)
	same := make([]string, len(t.Key))
	for i, column := range t.Key {
		same[i] = fmt.Sprintf("t.%s = k.%[1]s", column)
	}
	return fmt.Sprintf(`select %d as ordinal, count(size) as rows, coalesce(sum(size), 0)::bigint as bytes from (
		select (select pg_column_size(t.*) from %s t where %s limit 1) as size from (select %s from %[2]s%[5]s and random() < %[6]s offset 0) k offset 0) s`,
		ordinal, t.Name, strings.Join(same, " and "), strings.Join(t.Key, ", "), ofTenant, share)
}

// found is what a statement found in the table with a number in the list.
type found struct {
	Ordinal     int
	Rows, Bytes int64
}

func many(ctx context.Context, tx pg.Tx, end time.Time, sql string) ([]found, error) {
	if err := limit(ctx, tx, time.Until(end)); err != nil {
		return nil, err
	}
	return pg.Many(ctx, tx, pgx.RowToStructByName[found], sql, pg.Args{})
}

func one(ctx context.Context, tx pg.Tx, end time.Time, sql string) (int64, error) {
	if err := limit(ctx, tx, time.Until(end)); err != nil {
		return 0, err
	}
	return pg.One(ctx, tx, pgx.RowTo[int64], errNoRow, sql, pg.Args{})
}
