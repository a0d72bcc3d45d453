package app

import (
	"context"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/store"
)

// The bounds of one run of a Reindexer: an update of the service rewrites the words of millions of rows beside its requests.
const (
	reindexBatch   = 100 // rows of a transaction
	reindexBatches = 10  // of a run
)

// Reindexer writes the words of rows that the version before this one of the service has written, so that the search finds them.
// What is left to do is in the rows: a run that ends early has lost nothing. Any number of processes may run it at once.
type Reindexer struct {
	DB     *pg.DB
	Worker *pg.DB // worker role: finds the rows
	List   func(ctx context.Context, tx pg.Tx, after [16]byte, limit int) ([]store.Unsearched, error)
	Write  func(ctx context.Context, tx pg.Tx, rows [][16]byte) error

	after [16]byte // the last row that the run before has found
}

// Run writes the words of the next rows.
func (a *Reindexer) Run(ctx context.Context) error {
	for range reindexBatches {
		var found []store.Unsearched
		err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			found, err = a.List(ctx, tx, a.after, reindexBatch)
			return err
		})
		if err != nil {
			return fmt.Errorf("rows to reindex: %w", err)
		}
		if len(found) == 0 {
			a.after = [16]byte{} // rows before it may have been written since
			return nil
		}
		a.after = found[len(found)-1].ID // a row that fails is tried again when the others are done
		if err := a.write(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

// write writes the words of rows, each tenant's and mode's in a transaction of its own.
func (a *Reindexer) write(ctx context.Context, found []store.Unsearched) error {
	type owner struct {
		tenant   ids.Tenant
		livemode bool
	}
	rows := map[owner][][16]byte{}
	for _, f := range found {
		o := owner{f.TenantID, f.Livemode}
		rows[o] = append(rows[o], f.ID)
	}
	for o, list := range rows {
		mode := caller.Test
		if o.livemode {
			mode = caller.Live
		}
		err := a.DB.Tx(caller.With(ctx, caller.Service("customers", o.tenant, mode)), func(ctx context.Context, tx pg.Tx) error {
			return a.Write(ctx, tx, list)
		})
		if err != nil {
			return fmt.Errorf("reindex: %w", err)
		}
	}
	return nil
}
