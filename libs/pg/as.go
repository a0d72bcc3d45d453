package pg

import (
	"context"
	"fmt"

	"holdfast.dev/libs/caller"
)

// As runs fn in tx with the tenant and mode of another caller, and with that caller in its context. It is for a transaction of the
// platform that changes one tenant and also writes a row of its own. The statements that fn queues for the commit run with the
// other caller's settings too. Statements queued before As must not depend on the settings.
func As(ctx context.Context, tx Tx, c caller.Caller, fn func(ctx context.Context, tx Tx) error) error {
	own, err := caller.Require(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, setScope, scopeOf(c)...); err != nil {
		return fmt.Errorf("act for a tenant: %w", err)
	}
	if err := fn(caller.With(ctx, c), tx); err != nil {
		return err
	}
	tx.QueueAtCommit(setScope, scopeOf(own)...)
	return nil
}
