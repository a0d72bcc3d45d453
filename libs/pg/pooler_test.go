package pg_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// throughPooler opens a pool that has more connections than the pooler has to the server.
func throughPooler(t *testing.T, address string, opt pg.Options) *pg.DB {
	t.Helper()
	opt.Pooler = true
	db, err := pg.Open(t.Context(), pgtest.Pooled(t, address), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

const (
	poolerWorkers = 8                // for each of two tenants in two modes
	poolerTime    = 6 * time.Second  // of the attack
	poolerWait    = 20 * time.Second // for one step: the pooler replaces a connection for each killed client
)

// TestPoolerIsolation lets two tenants in two modes read and write through a pooler that has two connections to the server, while
// statements fail, time out, and clients disappear in the middle of a transaction. No statement sees or changes a row of another
// tenant or mode.
func TestPoolerIsolation(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	var all sync.WaitGroup
	var done atomic.Int64
	for i, tenant := range tenants {
		for j, mode := range []caller.Mode{caller.Live, caller.Test} {
			a := &attacker{ctx: pgtest.CtxOf(t, tenant, mode), mine: fmt.Sprintf("space %d", 2*i+j), url: pgtest.Pooled(t, db.AppURL)}
			a.db = throughPooler(t, db.AppURL, pg.Options{MaxConns: poolerWorkers, StatementTimeout: 500 * time.Millisecond, AcquireTimeout: poolerWait})
			if err := a.db.Tx(a.ctx, func(ctx context.Context, tx pg.Tx) error { return insert(ctx, tx, 0, a.mine) }); err != nil {
				t.Fatal(err)
			}
			for n := range poolerWorkers {
				all.Go(func() {
					for end := time.Now().Add(poolerTime); time.Now().Before(end) && !t.Failed(); done.Add(1) {
						if err := a.step(t, n); err != nil {
							t.Errorf("%s: %v", a.mine, err)
						}
					}
				})
			}
		}
	}
	all.Wait()
	t.Logf("%d steps", done.Load())
	stray := throughPooler(t, db.AppURL, pg.Options{})
	for range 20 { // on both connections
		err := stray.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			rows, err := tx.Query(ctx, `select coalesce(current_setting('app.tenant_id', true), '') || coalesce(current_setting('app.livemode', true), '')`)
			if err != nil {
				return err
			}
			if left, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string]); err != nil || left != "" {
				t.Errorf("a tenant or mode is left on a connection: %q, %v", left, err)
			}
			if got := bodies(t, ctx, tx); len(got) > 0 {
				t.Errorf("rows %q are visible without a tenant", got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// attacker is one tenant in one mode. Each of its rows has the body mine.
type attacker struct {
	ctx       context.Context
	mine, url string
	db        *pg.DB
}

var errExpected = errors.New("expected")

// step runs one random action and then checks what the tenant sees.
func (a *attacker) step(t *testing.T, worker int) error {
	ctx, cancel := context.WithTimeout(a.ctx, poolerWait)
	defer cancel()
	switch rand.IntN(7) {
	case 0: // a new row
		err := a.db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return insert(ctx, tx, 1+rand.IntN(1<<30), a.mine) })
		if err != nil && pg.Code(err) != "23505" {
			return err
		}
	case 1: // a statement that fails
		err := a.db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `select 1 / (select count(*) - count(*) from notes)`)
			return err
		})
		if pg.Code(err) != "22012" {
			return fmt.Errorf("division by zero: %w", err)
		}
	case 2: // a statement that takes too long, if the connection has the transaction's time-out
		if rand.IntN(16) == 0 {
			err := a.db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
				_, err := tx.Exec(ctx, `select pg_sleep(5)`)
				return err
			})
			if pg.Code(err) != "57014" {
				return fmt.Errorf("a slow statement: %w", err)
			}
		}
	case 3: // a rollback of the service
		err := a.db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			return errors.Join(errExpected, insert(ctx, tx, 1+rand.IntN(1<<30), a.mine))
		})
		if !errors.Is(err, errExpected) {
			return err
		}
	case 4: // a client that disappears in the middle of its transaction
		if worker == 0 {
			if err := a.vanish(ctx); err != nil {
				return err
			}
		}
	case 5: // a request that its client cancels during a statement
		short, stop := context.WithTimeout(ctx, time.Duration(rand.IntN(int(3*time.Millisecond))))
		_ = a.db.Tx(short, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `update notes set body = $1`, a.mine)
			return err
		})
		stop()
	default: // a change of all rows that the transaction can see
		err := a.db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `update notes set body = body where body <> $1`, a.mine)
			return err
		})
		if err != nil && pg.Code(err) != "40P01" && pg.Code(err) != "57014" {
			return err
		}
	}
	return a.check(ctx)
}

// check reads all rows that the tenant sees, without a condition.
func (a *attacker) check(ctx context.Context) error {
	rows, err := a.db.Read(ctx).Query(ctx, `select body, count(*), current_setting('statement_timeout') from notes group by body`)
	if err != nil {
		return err
	}
	type group struct {
		Body    string
		Rows    int
		Timeout string
	}
	groups, err := pgx.CollectRows(rows, pgx.RowToStructByPos[group])
	if err != nil {
		return err
	}
	if len(groups) != 1 || groups[0].Body != a.mine || groups[0].Timeout != "500ms" {
		return fmt.Errorf("%s sees %v", a.mine, groups)
	}
	return nil
}

// vanish sets the tenant in a transaction, writes a row, and then closes the network connection without a word.
func (a *attacker) vanish(ctx context.Context) error {
	cfg, err := pgx.ParseConfig(a.url)
	if err != nil {
		return err
	}
	var network net.Conn
	cfg.DialFunc = func(ctx context.Context, protocol, address string) (net.Conn, error) {
		network, err = (&net.Dialer{}).DialContext(ctx, protocol, address)
		return network, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	c := caller.FromContext(a.ctx)
	u := c.Tenant.UUID()
	if _, err := conn.Exec(ctx, `begin`); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `select set_config('app.tenant_id', $1, true), set_config('app.livemode', $2, true)`,
		fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16]), fmt.Sprint(c.Live())); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `insert into notes values ($1, $2, $3, 'lost')`, c.Tenant, c.Live(), -1-rand.IntN(1<<30)); err != nil {
		return err
	}
	return network.Close()
}

// Behind a pooler, each kind of transaction has the settings of its pool. None of them remains on the server's connection.
func TestPoolerSettings(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, nil), pgtest.Ctx(t, caller.Test)
	const shown = `select concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'),
		current_setting('enable_seqscan'), current_setting('jit'), current_setting('plan_cache_mode'), current_setting('enable_hashjoin'), current_setting('timezone'))`
	read := func(q pg.Q) string {
		rows, err := q.Query(ctx, shown)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	pools := map[*pg.DB]string{
		throughPooler(t, db.AppURL, pg.Options{}):                                                            "5s 8s 30s off off auto on UTC",
		throughPooler(t, db.AppURL, pg.Options{LockTimeout: time.Second, StatementTimeout: 2 * time.Second}): "1s 2s 30s off off auto on UTC",
		throughPooler(t, db.AppURL, pg.Options{Background: true, ByIndex: true}):                             "5s 0 30s off off force_generic_plan off UTC",
	}
	for range 5 { // the pools take turns on the same connections
		for pool, want := range pools {
			if got := read(pool.Read(ctx)); got != want {
				t.Errorf("a read has %q, want %q", got, want)
			}
			for name, run := range map[string]func(context.Context, func(context.Context, pg.Tx) error) error{"tx": pool.Tx, "system": pool.SystemTx} {
				err := run(ctx, func(_ context.Context, tx pg.Tx) error {
					if got := read(tx); got != want {
						t.Errorf("%s has %q, want %q", name, got, want)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		plain, err := pgx.Connect(t.Context(), pgtest.Pooled(t, db.AppURL))
		if err != nil {
			t.Fatal(err)
		}
		var left string
		if err := plain.QueryRow(ctx, shown).Scan(&left); err != nil || !strings.HasPrefix(left, "0 0 0 on on auto on") {
			t.Errorf("left on the connection: %q, %v", left, err)
		}
		_ = plain.Close(ctx)
	}
}

// A process that is not configured for its pooler does not start, and its error names the setting.
func TestPoolerWithoutTheSetting(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	_, err := pg.Open(t.Context(), pgtest.Pooled(t, db.AppURL), pg.Options{})
	if err == nil || !strings.Contains(err.Error(), "set DATABASE_POOLER=true") {
		t.Errorf("a pooler that rejects startup parameters: %v", err)
	}
}

// Prepared statements also work without support by the pooler, if the URL turns them off.
func TestPoolerWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, notes), pgtest.Ctx(t, caller.Live)
	pool := throughPooler(t, db.AppURL+"&default_query_exec_mode=cache_describe", pg.Options{})
	for i := range 50 {
		if err := pool.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return insert(ctx, tx, i, "a") }); err != nil {
			t.Fatal(err)
		}
	}
	if got := bodies(t, ctx, pool.Read(ctx)); len(got) != 50 {
		t.Errorf("%d rows", len(got))
	}
	err := pool.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, `select name from pg_prepared_statements`)
		if err != nil {
			return err
		}
		if names, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(names) > 0 {
			t.Errorf("prepared: %q, %v", names, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A pooler that accepts startup parameters and ignores them would leave statements without a time-out. A connection to it fails.
func TestPoolerThatIgnoresParameters(t *testing.T) {
	t.Parallel()
	plain, err := pgx.Connect(t.Context(), pgtest.New(t, nil).AppURL)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close(context.Background())
	if err := pg.Prepare(pg.Options{}, t.Context(), plain); err == nil || !strings.Contains(err.Error(), "set DATABASE_POOLER=true") {
		t.Errorf("without settings: %v", err)
	}
	if err := pg.Prepare(pg.Options{Pooler: true}, t.Context(), plain); err != nil {
		t.Error(err)
	}
}

// BenchmarkPooler compares a read and a write through the pooler with those on a direct connection.
func BenchmarkPooler(b *testing.B) {
	db := pgtest.New(b, notes)
	ctx := pgtest.Ctx(b, caller.Live)
	var id atomic.Int64
	for name, pooled := range map[string]bool{"direct": false, "pooled": true} {
		address := db.AppURL
		if pooled {
			address = pgtest.Pooled(b, address)
		}
		pool, err := pg.Open(b.Context(), address, pg.Options{MaxConns: 16, Pooler: pooled})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(pool.Close)
		for action, run := range map[string]func() error{
			"write": func() error {
				return pool.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return insert(ctx, tx, int(id.Add(1)), "a") })
			},
			"read": func() error {
				_, err := pg.Many(ctx, pool.Read(ctx), pgx.RowTo[string], `select body from notes where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{"id": 1})
				return err
			},
		} {
			b.Run(action+"/"+name, func(b *testing.B) {
				b.SetParallelism(8)
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						if err := run(); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}
