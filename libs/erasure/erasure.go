// Package erasure deletes all rows of a tenant from a service's database, and keeps rows from coming back.
//
// The row of a tenant in tenant_erasures is the mark of its erasure and stays forever. As soon as it is committed, transactions of the
// tenant see nothing and write nothing (package pg), and consumers drop its events. The database function erase_tenant finds the tables
// in the catalog, so a new table needs no code here.
package erasure

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

const (
	// batchRows is the maximum number of rows that one transaction deletes.
	batchRows = 2000
	// stepTime is the time after which a step begins no further batch.
	stepTime = 2 * time.Second
	// settleTime is how long a step waits for the transactions that began before the erasure.
	settleTime = 3 * time.Second
	settlePoll = 20 * time.Millisecond
	// sweepFor is how long after an erasure Sweep deletes rows that a batch of events wrote, whose consumer read the marks just before it.
	sweepFor = time.Hour
	// sweepMax is the maximum number of erasures of one call of Sweep.
	sweepMax = 1000
)

// Progress is the state of an erasure in one service.
type Progress struct {
	Erased  bool  // no row of the tenant is left, and none can come back
	Deleted int64 // number of rows deleted so far
}

// Eraser erases tenants from the database of one service.
type Eraser struct {
	Worker *pg.DB // the worker role
	// Prepare ends what must not be lost, such as payments in progress, before anything is erased. It returns what the erasure still
	// has to wait for, as a sentence, or "" if it can begin. nil: it never waits.
	Prepare func(ctx context.Context, tenant ids.Tenant) (wait string, err error)
}

// Ready calls Prepare.
func (e *Eraser) Ready(ctx context.Context, tenant ids.Tenant) (wait string, err error) {
	if e.Prepare == nil {
		return "", nil
	}
	return e.Prepare(ctx, tenant)
}

// Step marks the tenant as erased, deletes rows for about two seconds in short transactions, and reports whether any are left. Call it
// until Erased is true. It can be repeated, interrupted and called by several processes at any time.
func (e *Eraser) Step(ctx context.Context, tenant ids.Tenant) (Progress, error) {
	if err := e.mark(ctx, tenant); err != nil {
		return Progress{}, err
	}
	left, err := e.delete(ctx, tenant)
	if err != nil {
		return Progress{}, err
	}
	if !left {
		if left, err = e.unsettled(ctx, tenant); err != nil {
			return Progress{}, err
		}
	}
	return e.progress(ctx, tenant, !left)
}

// mark adds the row that stays. It returns after the commit.
func (e *Eraser) mark(ctx context.Context, tenant ids.Tenant) error {
	return e.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into tenant_erasures (tenant_id) values ($1) on conflict do nothing`, tenant)
		return err
	})
}

// delete deletes rows until none is left or the time of a step is over. It reports whether it found rows in its last batch.
func (e *Eraser) delete(ctx context.Context, tenant ids.Tenant) (left bool, err error) {
	for began := time.Now(); time.Since(began) < stepTime; {
		n, err := e.batch(ctx, tenant)
		if err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}

func (e *Eraser) batch(ctx context.Context, tenant ids.Tenant) (n int64, err error) {
	err = e.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		n, err = pg.One(ctx, tx, pgx.RowTo[int64], pgx.ErrNoRows, `select erase_tenant($1, $2)`, tenant, batchRows)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("erase tenant %s: %w", tenant, err)
	}
	return n, nil
}

// unsettled waits for the services' transactions in progress, which may not have seen the mark, and reports whether rows can be left:
// one of them has not ended, or has written rows.
func (e *Eraser) unsettled(ctx context.Context, tenant ids.Tenant) (bool, error) {
	running, err := e.transactions(ctx, nil)
	if err != nil {
		return false, err
	}
	for limit := time.Now().Add(settleTime); len(running) > 0; {
		if time.Now().After(limit) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(settlePoll):
		}
		if running, err = e.transactions(ctx, running); err != nil {
			return false, err
		}
	}
	n, err := e.batch(ctx, tenant)
	return n > 0, err
}

// transactions returns the transactions of the services in this database that are in progress; if among is not nil, only those of it.
// It ignores the owner of the tables and roles that bypass row-level security, such as those of backups.
func (e *Eraser) transactions(ctx context.Context, among []string) (list []string, err error) {
	err = e.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		list, err = pg.Many(ctx, tx, pgx.RowTo[string], `
			select l.virtualtransaction from pg_locks l
			join pg_stat_activity a on a.pid = l.pid and a.datname = current_database()
			join pg_roles r on r.oid = a.usesysid and not r.rolsuper and not r.rolbypassrls
				and r.oid <> (select c.relowner from pg_class c where c.oid = 'tenant_erasures'::regclass)
			where l.locktype = 'virtualxid' and l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid()
			  and ($1::text[] is null or l.virtualtransaction = any($1))`, among)
		return err
	})
	return list, err
}

// progress records that nothing is left, if that is the case, and returns what is recorded.
func (e *Eraser) progress(ctx context.Context, tenant ids.Tenant, done bool) (p Progress, err error) {
	err = e.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		p, err = pg.One(ctx, tx, pgx.RowToStructByPos[Progress], pgx.ErrNoRows, `
			update tenant_erasures set erased_at = case when $2 then coalesce(erased_at, clock_timestamp()) end
			where tenant_id = $1 returning erased_at is not null, deleted`, tenant, done)
		return err
	})
	return p, err
}

// Sweep repeats the erasures of the last hour. A consumer reads the marks before the transaction of its batch, so a batch that it read
// just before a mark could write rows after the erasure.
func (e *Eraser) Sweep(ctx context.Context) error {
	var recent []ids.Tenant
	err := e.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		recent, err = pg.Many(ctx, tx, pgx.RowTo[ids.Tenant], `
			select tenant_id from tenant_erasures where started_at > $1 and erased_at > $2 order by started_at desc limit $3`,
			time.Now().Add(-marksFor), time.Now().Add(-sweepFor), sweepMax)
		return err
	})
	if err != nil {
		return err
	}
	for _, tenant := range recent {
		if _, err := e.delete(ctx, tenant); err != nil {
			return err
		}
	}
	return nil
}
