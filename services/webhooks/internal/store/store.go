// Package store is the only room with SQL. Readers take a pg.Q, writers a pg.Tx. What works for all tenants at
// once, the event log's intake and the deliveries' claims and ends, runs in the worker role and names tenant and
// mode in each row; all else leaves them to the transaction's settings.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/pg"
)

// one reads exactly one row; none is missing.
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

// InOtherMode says why an id was not found: apperr.ErrMode when it is the tenant's in the other mode, else the
// error of find. It costs a statement, so it is asked after a miss only.
func InOtherMode(ctx context.Context, db *pg.DB, find func(ctx context.Context, q pg.Q) error) error {
	other := pg.OtherMode(ctx)
	err := find(other, db.Read(other))
	if err == nil {
		return apperr.ErrMode
	}
	return err
}
