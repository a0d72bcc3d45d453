// Package pg connects to PostgreSQL. It provides transactions with a tenant and mode, a reader that needs one round trip including
// row-level security, and migrations.
//
// Readers take a Q and writers take a Tx, so a write outside a transaction does not compile. Tenant and mode come from the caller
// in the context and are set with set_config(…, true): the settings end with the transaction, even behind a pooler.
package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/secret"
)

// Q runs reads. Read rows only with pgx.Collect…, because these functions cannot miss an error after the last row.
type Q interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Tx runs writes. It exists only inside DB.Tx and DB.SystemTx.
type Tx interface {
	Q
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	// SendBatch runs several statements in one round trip. Close the result.
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	// Guard queues statements that run in the round trip of the next statement, before it. check reads their results. If it returns
	// an error, the next statement fails with this error, and its results are lost: roll the transaction back.
	Guard(b *pgx.Batch, check func(res pgx.BatchResults) error)
	// QueueAtCommit queues a statement without a result. It runs in the round trip of the commit, after all others, and
	// its failure rolls the transaction back.
	QueueAtCommit(sql string, args ...any)
	// QueueBatchAtCommit queues the statements of a batch like QueueAtCommit. explain returns the error of the transaction for the
	// error of one of them.
	QueueBatchAtCommit(b *pgx.Batch, explain func(error) error)
	// AfterCommit registers fn to run after the transaction is durable.
	AfterCommit(fn func())
}

// The defaults of Options. Each is below the time-out of the gateway for a request.
const (
	lockTimeout      = 5 * time.Second
	statementTimeout = 8 * time.Second
	acquireTimeout   = 5 * time.Second
)

// Application is the begin of the application_name of each connection; the name in the URL follows.
const Application = "holdfast/1"

// Options configures a pool. The defaults for zero values are 10 connections, 5 s for a lock, 8 s for a statement, 5 s for a free
// connection, and no tracer.
type Options struct {
	MaxConns         int32
	LockTimeout      time.Duration
	StatementTimeout time.Duration
	AcquireTimeout   time.Duration
	Tracer           pgx.QueryTracer
	// Pooler is for a server that is reached through a pooler in transaction mode. Each transaction then sets its time-outs and planner
	// settings itself, because the server's connections are shared with other processes.
	Pooler bool
	// Background removes the time-outs of statements and of the wait for a connection, for the worker role and for commands. No
	// client waits for such statements, and an interrupted one would only start again. It also makes one plan for each statement.
	Background bool
	// ByIndex makes joins use nested loops, and makes the server read rows in the order of an index instead of collecting and
	// sorting them. Use it for statements that read a few rows of large tables, when the planner cannot know how many rows match,
	// because their number changes every second.
	ByIndex bool
}

// DB is a pool of connections in one role.
type DB struct {
	pool    *pgxpool.Pool
	wait    time.Duration // for a free connection; 0 waits indefinitely
	waiting atomic.Int64  // calls of acquire that have no connection yet
	scope   string        // the first statement of a caller's transaction, with the values of scopeOf
	system  string        // the first statement of a transaction without a caller; "" for none
}

// Open creates a pool and pings the server.
func Open(ctx context.Context, url string, opt Options) (*DB, error) {
	db, err := open(ctx, secret.New(url), opt)
	if err != nil {
		return nil, err
	}
	if err := db.Ping(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("reach database: %w", explain(err, opt))
	}
	return db, nil
}

// open creates a pool that connects when it is first used.
func open(ctx context.Context, url secret.Setting, opt Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(url.Get())
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	cfg.MaxConns = max(opt.MaxConns, 0)
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 10
	}
	opt = opt.withDefaults()
	db := &DB{wait: opt.AcquireTimeout, scope: opt.statement(scopeSettings), system: opt.statement("")}
	params := cfg.ConnConfig.RuntimeParams
	opt.connect(params)
	params["application_name"] = strings.TrimSpace(Application + " " + params["application_name"])
	cfg.ConnConfig.Tracer, cfg.ConnConfig.DialFunc = opt.Tracer, dial
	cfg.AfterConnect = opt.prepare
	login := &login{opt: opt}
	login.current.Store(cfg.ConnConfig.Copy())
	cfg.BeforeConnect = login.before
	if db.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	login.follow(url, db.pool) //nolint:contextcheck // a new login is tried long after open has returned
	return db, nil
}

func (o Options) withDefaults() Options {
	o.LockTimeout = cmp.Or(o.LockTimeout, lockTimeout)
	if o.Background {
		o.StatementTimeout, o.AcquireTimeout = 0, 0
		return o
	}
	o.StatementTimeout = cmp.Or(o.StatementTimeout, statementTimeout)
	o.AcquireTimeout = cmp.Or(o.AcquireTimeout, acquireTimeout)
	return o
}

// errNoConnection reports that all connections of the pool were in use for the whole time that a request may wait.
var errNoConnection = errors.New("no connection became free")

// acquire takes a connection from the pool.
func (db *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if db.wait > 0 {
		limited, cancel = context.WithTimeout(ctx, db.wait)
	}
	defer cancel()
	db.waiting.Add(1)
	conn, err := db.pool.Acquire(limited)
	db.waiting.Add(-1)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = errNoConnection
	}
	if err != nil {
		return nil, fmt.Errorf("acquire connection: %w", err)
	}
	return conn, nil
}

// Close closes the pool's connections.
func (db *DB) Close() { db.pool.Close() }

// Ping checks that the server responds.
func (db *DB) Ping(ctx context.Context) error { return db.pool.Ping(ctx) }

// setScope is the statement that sets the tenant and the mode of the rest of a transaction, with the values of scopeOf.
const setScope = "select " + scopeSettings

// scopeSettings leave the tenant empty if its data is being erased, so that the transaction sees and writes no row.
const scopeSettings = `set_config('app.tenant_id', case when exists (select from tenant_erasures e where e.tenant_id = $1::text::uuid) then '' else $1::text end, true),
	set_config('app.livemode', $2, true)`

// Watermark is the SQL expression for a time before which all writes have ended, for DB.ReadToWatermark. A list in the order of
// updated_at that returns only older rows misses none. The watermark is read before the snapshot of the statement that uses it.
// Otherwise a write that ends in between would be missed.
const Watermark = `current_setting('app.settled')::timestamptz`

// setPlanForValues makes the server plan a statement for the values of its arguments, and setWatermark also sets the watermark. A plan
// for all values does not know how rare a filter is, and may read all rows since a time to find a few.
const (
	setPlanForValues = `select set_config('plan_cache_mode', 'force_custom_plan', true)`
	setWatermark     = setPlanForValues + `, set_config('app.settled', oldest_write()::text, true)`
)

// Tx runs fn in one transaction of the caller in ctx. It repeats a transaction that ends with a deadlock or a serialization failure up
// to three times, so fn must have no effect outside tx.
func (db *DB) Tx(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	c, err := caller.Require(ctx)
	if err != nil {
		return err
	}
	return db.retry(ctx, scopeOf(c), fn)
}

// SystemTx runs fn in one transaction without a caller. It is for the worker role, which sees all tenants in the few
// tables that grant it access.
func (db *DB) SystemTx(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	return db.retry(ctx, nil, fn)
}

// conflictRetries is how often a transaction is repeated after a deadlock or a serialization failure. The server detects a deadlock
// after a second, so four deadlocks take less than half of a request's time-out of 10 s.
const conflictRetries = 3

func (db *DB) retry(ctx context.Context, scope []any, fn func(context.Context, Tx) error) error {
	err := db.run(ctx, scope, fn)
	for try := range conflictRetries {
		if code := Code(err); code != "40P01" && code != "40001" {
			break
		}
		backoff(ctx, try)
		err = db.run(ctx, scope, fn)
	}
	return markUnavailable(err)
}

// backoff waits to let the transaction that blocked this one continue: 5 to 15 ms before the first retry, and four times as long before
// each further one. A retry that comes too early can lock the same row again before the other transaction wakes up, which takes longer
// on a busy server.
func backoff(ctx context.Context, try int) {
	const most = 15 * time.Millisecond
	wait := (most/3 + rand.N(most*2/3)) << (2 * try) //nolint:gosec // jitter
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

func (db *DB) run(ctx context.Context, scope []any, fn func(context.Context, Tx) error) error {
	conn, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	t := &tx{conn: conn.Conn(), db: db, scope: scope}
	if err := fn(ctx, t); err != nil {
		return errors.Join(err, t.rollback()) //nolint:contextcheck // ctx may be why fn failed
	}
	if err := t.commit(ctx); err != nil {
		return err
	}
	for _, after := range t.after {
		after()
	}
	return nil
}

// Read returns a reader for the caller in ctx. Each query takes one round trip: the settings and the query are sent in
// one pipeline and one implicit transaction.
func (db *DB) Read(ctx context.Context) Q { return reader{db: db, caller: caller.FromContext(ctx)} }

// ReadForValues is Read for a statement whose plan depends on how rare the values of its arguments are. The server plans it each time.
func (db *DB) ReadForValues(ctx context.Context) Q {
	return reader{db: db, caller: caller.FromContext(ctx), set: setPlanForValues}
}

// ReadToWatermark is ReadForValues for a statement that uses Watermark.
func (db *DB) ReadToWatermark(ctx context.Context) Q {
	return reader{db: db, caller: caller.FromContext(ctx), set: setWatermark}
}

// OtherMode returns ctx with the caller's other mode. If a resource is not found, a lookup in the other mode distinguishes a 403
// for the wrong mode from a 404.
func OtherMode(ctx context.Context) context.Context {
	c := caller.FromContext(ctx)
	if c.Live() {
		c.Mode = caller.Test
	} else {
		c.Mode = caller.Live
	}
	return caller.With(ctx, c)
}

func scopeOf(c caller.Caller) []any {
	u := c.Tenant.UUID()
	return []any{uuidText(u), fmt.Sprint(c.Live())}
}

func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// Down reports whether err means that the database is unreachable, or accepts no more connections. The same request with its
// Idempotency-Key may succeed later. A commit without a response may or may not have succeeded.
func Down(err error) bool {
	var dial *pgconn.ConnectError
	var network *net.OpError
	switch code := Code(err); {
	case code == "57P01", code == "57P02", code == "57P03", code == "53300", strings.HasPrefix(code, "08"):
		return true
	case errors.As(err, &dial), errors.Is(err, errStandby):
		return true
	case code != "", errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false // pgx wraps the network's error when ctx has ended
	default:
		return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
	}
}

// Unavailable reports whether err means that the request may succeed if it is repeated: the database is unreachable, a row stayed
// locked, a statement took too long, or no connection was free. A statement may return a more precise error for a lock instead,
// such as apperr.ErrInProgress.
func Unavailable(err error) bool {
	switch Code(err) {
	case "55P03", "57014", "25P03": // lock_not_available, query_canceled, idle_in_transaction_session_timeout
		return true
	default:
		return errors.Is(err, errNoConnection) || Down(err)
	}
}

// unavailableError is an error for which Unavailable is true. Packages that do not import pg can call its method.
type unavailableError struct{ error }

// Unavailable reports that the request may succeed if it is repeated.
func (unavailableError) Unavailable() bool { return true }

// Unwrap returns the error of the database.
func (e unavailableError) Unwrap() error { return e.error }

// markUnavailable wraps each error that leaves the package.
func markUnavailable(err error) error {
	if err == nil || !Unavailable(err) {
		return err
	}
	return unavailableError{err}
}

// Code returns the SQLSTATE in err's chain, or "".
func Code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// ConstraintName returns the name of the violated constraint in err's chain, or "".
func ConstraintName(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.ConstraintName
	}
	return ""
}

// TableName returns the name of the table that a failed statement reports, or "" if err does not name one.
func TableName(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.TableName
	}
	return ""
}
