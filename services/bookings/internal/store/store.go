// Package store is the only room with SQL. Readers take a pg.Q, writers a pg.Tx; tenant and mode are the
// transaction's own settings, which row-level security and the columns' defaults read.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/pg"
)

// one reads exactly one row; a miss is missing.
func one[T any](ctx context.Context, q pg.Q, scan pgx.RowToFunc[T], missing error, sql string, args ...any) (T, error) {
	var none T
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return none, fmt.Errorf("query: %w", err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return none, missing
	}
	if err != nil {
		return none, fmt.Errorf("read row: %w", err)
	}
	return v, nil
}

func many[T any](ctx context.Context, q pg.Q, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
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

// next collects the rows of a batch's next statement.
func next[T any](res pgx.BatchResults, scan pgx.RowToFunc[T]) ([]T, error) {
	rows, err := res.Query()
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return list, nil
}

// Missing says why an id in a path was not found: apperr.ErrMode when read finds it in the other mode, else
// the not-found error that read returns. It costs a statement, so it is asked after a miss only.
func Missing(ctx context.Context, db *pg.DB, read func(ctx context.Context, q pg.Q) error) error {
	other := pg.OtherMode(ctx)
	err := read(other, db.Read(other))
	if err == nil {
		return apperr.ErrMode
	}
	return err
}

// toJSON is the text of a json column; nil is null.
func toJSON[T any](v *T) (*string, error) {
	if v == nil {
		return nil, nil //nolint:nilnil // null
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return textOrNull(raw), nil
}

// fromJSON reads what toJSON has written.
func fromJSON[T any](raw []byte) (*T, error) {
	if raw == nil {
		return nil, nil //nolint:nilnil // null
	}
	v := new(T)
	return v, json.Unmarshal(raw, v)
}

// textOrNull hands JSON over as text: as bytes of a json.Marshaler it would be encoded anew.
func textOrNull(raw []byte) *string {
	if len(raw) == 0 {
		return nil
	}
	s := string(raw)
	return &s
}
