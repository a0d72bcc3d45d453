package consume_test

import (
	"context"

	"holdfast.dev/libs/pg"
)

// countInbox reads the inbox as the worker, which sees all tenants.
func countInbox(n *int) func(context.Context, pg.Tx) error {
	return func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, `select from inbox`)
		if err != nil {
			return err
		}
		for rows.Next() {
			*n++
		}
		rows.Close()
		return rows.Err()
	}
}
