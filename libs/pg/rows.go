package pg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
)

// One reads exactly one row. If there is no row, it returns notFound.
func One[T any](ctx context.Context, q Q, scan pgx.RowToFunc[T], notFound error, sql string, args ...any) (T, error) {
	var none T
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return none, fmt.Errorf("query: %w", err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return none, notFound
	}
	if err != nil {
		return none, fmt.Errorf("read row: %w", err)
	}
	return v, nil
}

// Many reads all rows.
func Many[T any](ctx context.Context, q Q, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return list, nil
}

// NotFoundOrOtherMode returns apperr.ErrMode if load finds the resource in the caller's other mode, otherwise load's error. It runs
// a statement, so call it only if a resource was not found.
func NotFoundOrOtherMode(ctx context.Context, db *DB, load func(ctx context.Context, q Q) error) error {
	other := OtherMode(ctx)
	if err := load(other, db.Read(other)); err != nil {
		return err
	}
	return apperr.ErrMode
}

// JSONText converts JSON to a parameter for a json column. Empty becomes null. pgx would encode the bytes of a json.Marshaler
// again.
func JSONText(raw []byte) *string {
	if len(raw) == 0 {
		return nil
	}
	s := string(raw)
	return &s
}

// MetadataTable is the table of the metadata pairs of one kind of resource. Lists use it as a filter.
type MetadataTable struct {
	Name  string
	Owner string // the column with the id of the resource
}

// QueueInsert queues the insert of the pairs of metadata if it is an object. An array has no pairs.
func (t MetadataTable) QueueInsert(b *pgx.Batch, owner any, metadata json.RawMessage) {
	var pairs map[string]string
	if err := json.Unmarshal(metadata, &pairs); err != nil || len(pairs) == 0 {
		return
	}
	keys, values := make([]string, 0, len(pairs)), make([]string, 0, len(pairs))
	for k, v := range pairs {
		keys, values = append(keys, k), append(values, v)
	}
	b.Queue(fmt.Sprintf(`insert into %s (tenant_id, livemode, key, value, %s)
		select @tenant, @live, k, v, @owner from unnest(@keys::text[], @values::text[]) as p(k, v)`, t.Name, t.Owner),
		Args{"owner": owner, "keys": keys, "values": values})
}

// QueueDelete queues the deletion of a resource's pairs.
func (t MetadataTable) QueueDelete(b *pgx.Batch, owner any) {
	b.Queue(fmt.Sprintf(`delete from %s where tenant_id = @tenant and livemode = @live and %s = @owner`, t.Name, t.Owner), Args{"owner": owner})
}

// With returns a scanner for rows with one more column than scan reads. It stores that column, the last one, in the pointer last.
func With[T any](scan pgx.RowToFunc[T], last any) pgx.RowToFunc[T] {
	return func(row pgx.CollectableRow) (T, error) { return scan(longer{row, last}) }
}

type longer struct {
	pgx.CollectableRow

	last any
}

// Scan implements pgx.CollectableRow.
func (r longer) Scan(dest ...any) error { return r.CollectableRow.Scan(append(dest, r.last)...) }

// Exec runs a statement without a result. Its error has the prefix what.
func Exec(ctx context.Context, tx Tx, what, sql string, args ...any) error {
	_, err := Affect(ctx, tx, what, sql, args...)
	return err
}

// Affect is Exec for a statement whose number of rows matters.
func Affect(ctx context.Context, tx Tx, what, sql string, args ...any) (int64, error) {
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return tag.RowsAffected(), nil
}

// Send runs the statements of a batch, and the functions that read their results. Its error has the prefix what.
func Send(ctx context.Context, tx Tx, b *pgx.Batch, what string) error {
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// SendFor is Send for a batch that reads its results into v, which it returns.
func SendFor[T any](ctx context.Context, tx Tx, b *pgx.Batch, what string, v *T) (T, error) {
	if err := Send(ctx, tx, b, what); err != nil {
		return *new(T), err
	}
	return *v, nil
}

// Into reads the one row of a statement of a batch: b.Queue(…).QueryRow(pg.Into(&n)).
func Into(to ...any) func(pgx.Row) error {
	return func(row pgx.Row) error { return row.Scan(to...) }
}

// ListInto reads all rows of a statement of a batch: b.Queue(…).Query(pg.ListInto(&list, scan)).
func ListInto[T any](list *[]T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*list, err = pgx.CollectRows(rows, scan)
		return err
	}
}

// FirstInto reads the first row of a statement of a batch, if there is one.
func FirstInto[T any](v **T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, scan)
		if len(list) > 0 {
			*v = &list[0]
		}
		return err
	}
}

// First reads the first row, or returns nil if there is none.
func First[T any](ctx context.Context, q Q, scan pgx.RowToFunc[T], sql string, args ...any) (*T, error) {
	list, err := Many(ctx, q, scan, sql, args...)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Column returns one value of each row, as an array for unnest.
func Column[R, V any](rows []R, value func(R) V) []V {
	out := make([]V, len(rows))
	for i, r := range rows {
		out[i] = value(r)
	}
	return out
}
