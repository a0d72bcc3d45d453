package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// SweepExpired deletes the rows of table whose expires_at has passed, in batches of 1,000, so that each statement is short. db has
// the worker role.
func SweepExpired(ctx context.Context, db *DB, table string) error {
	const batch = 1000
	stmt := fmt.Sprintf(`delete from %[1]s where ctid = any(array(
		select ctid from %[1]s where expires_at <= now() limit %[2]d for update skip locked))`,
		pgx.Identifier{table}.Sanitize(), batch)
	for {
		var n int64
		err := db.SystemTx(ctx, func(ctx context.Context, tx Tx) error {
			tag, err := tx.Exec(ctx, stmt)
			n = tag.RowsAffected()
			return err
		})
		if err != nil || n < batch {
			return err
		}
	}
}
