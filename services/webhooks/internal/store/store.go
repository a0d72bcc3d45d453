// Package store contains the SQL of the service. Functions that read take a pg.Q, functions that write take a pg.Tx. Statements
// for all tenants, such as those of the intake and of the dispatcher, run in the worker role and name the tenant and the mode
// of each row. The other statements take both from the transaction's settings.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/pg"
)

// one reads exactly one row, or returns missing when there is none.
func one[T any](ctx context.Context, q pg.Q, missing error, sql string, args ...any) (T, error) {
	var none T
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return none, fmt.Errorf("query: %w", err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	if errors.Is(err, pgx.ErrNoRows) {
		return none, missing
	}
	if err != nil {
		return none, fmt.Errorf("read row: %w", err)
	}
	return v, nil
}

// many reads all rows.
func many[T any](ctx context.Context, q pg.Q, sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return list, nil
}

// InOtherMode returns why an id was not found: apperr.ErrMode when the tenant has it in the other mode, else the error of find.
// It sends a statement, so it is called only when an id was not found.
func InOtherMode(ctx context.Context, db *pg.DB, find func(ctx context.Context, q pg.Q) error) error {
	other := pg.OtherMode(ctx)
	err := find(other, db.Read(other))
	if err == nil {
		return apperr.ErrMode
	}
	return err
}

// collect reads all rows of the next statement of a batch.
func collect[T any](res pgx.BatchResults, row pgx.RowToFunc[T]) ([]T, error) {
	rows, err := res.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}
