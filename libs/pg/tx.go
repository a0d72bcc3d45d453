package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast.dev/libs/caller"
)

// tx begins lazily: "begin" and the tenant's settings are sent with the first statement.
type tx struct {
	conn  *pgx.Conn
	db    *DB
	scope []any // nil: no caller
	begun bool
	first []guard
	last  pgx.Batch
	parts []part
	after []func()
}

// part is a batch among the statements of the commit.
type part struct {
	from, to int // its statements
	explain  func(error) error
}

// guard contains statements that run before the next one.
type guard struct {
	batch *pgx.Batch
	check func(res pgx.BatchResults) error
}

func (t *tx) prelude(b *pgx.Batch) int {
	if t.begun {
		return 0
	}
	t.begun = true
	b.Queue("begin")
	switch {
	case t.scope != nil:
		b.Queue(t.db.scope, t.scope...)
	case t.db.system != "":
		b.Queue(t.db.system)
	}
	return b.Len()
}

// plain reports whether a statement can be sent on its own.
func (t *tx) plain() bool { return t.begun && len(t.first) == 0 }

// SendBatch implements Tx.
func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.plain() {
		return t.conn.SendBatch(ctx, b)
	}
	all := &pgx.Batch{}
	skip := t.prelude(all)
	guards := t.first
	t.first = nil
	for _, g := range guards {
		all.QueuedQueries = append(all.QueuedQueries, g.batch.QueuedQueries...)
	}
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	res := t.conn.SendBatch(ctx, all)
	for range skip {
		if _, err := res.Exec(); err != nil {
			return failedBatch{BatchResults: res, err: fmt.Errorf("begin: %w", err)}
		}
	}
	for _, g := range guards {
		if err := g.check(res); err != nil {
			return failedBatch{BatchResults: res, err: err}
		}
	}
	return res
}

// Query implements Q.
func (t *tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.plain() {
		return t.conn.Query(ctx, sql, args...)
	}
	b := &pgx.Batch{}
	b.Queue(sql, args...)
	return batchRows(t.SendBatch(ctx, b), nil)
}

// Exec implements Tx.
func (t *tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if t.plain() {
		return t.conn.Exec(ctx, sql, args...)
	}
	b := &pgx.Batch{}
	b.Queue(sql, args...)
	res := t.SendBatch(ctx, b)
	tag, err := res.Exec()
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	return tag, err
}

// Guard implements Tx.
func (t *tx) Guard(b *pgx.Batch, check func(res pgx.BatchResults) error) {
	t.first = append(t.first, guard{b, check})
}

// Queue runs a statement without a result in the round trip of the transaction's next statement, before it. If the statement fails, the
// next one returns its error, with the prefix what.
func Queue(tx Tx, what, sql string, args ...any) {
	b := &pgx.Batch{}
	b.Queue(sql, args...)
	tx.Guard(b, func(res pgx.BatchResults) error {
		if _, err := res.Exec(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// QueueAtCommit implements Tx.
func (t *tx) QueueAtCommit(sql string, args ...any) { t.last.Queue(sql, args...) }

// QueueBatchAtCommit implements Tx.
func (t *tx) QueueBatchAtCommit(b *pgx.Batch, explain func(error) error) {
	from := t.last.Len()
	t.last.QueuedQueries = append(t.last.QueuedQueries, b.QueuedQueries...)
	t.parts = append(t.parts, part{from, t.last.Len(), explain})
}

// AfterCommit implements Tx.
func (t *tx) AfterCommit(fn func()) { t.after = append(t.after, fn) }

// commit sends the queue of QueueAtCommit and the commit in one round trip. If a statement fails, the server skips the commit.
func (t *tx) commit(ctx context.Context) error {
	if len(t.first) > 0 { // a guard that fails must prevent the commit, so it cannot share its round trip
		if err := t.SendBatch(ctx, &pgx.Batch{}).Close(); err != nil {
			return errors.Join(err, t.rollback()) //nolint:contextcheck // ctx may be why the guard failed
		}
	}
	if !t.begun && t.last.Len() == 0 {
		return nil
	}
	before := t.last.Len()
	t.last.Queue("commit")
	res := t.SendBatch(ctx, &t.last)
	tag, failed, err := commitTag(res, before)
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return errors.Join(t.explained(failed, err), t.rollback()) //nolint:contextcheck // ctx may be why the commit failed
	}
	if tag.String() != "COMMIT" { // fn ignored an error, which aborted the transaction; PostgreSQL then returns ROLLBACK
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// commitTag reads the results of `before` statements and then the result of the commit. If one fails, it returns its number.
func commitTag(res pgx.BatchResults, before int) (tag pgconn.CommandTag, failed int, err error) {
	for i := range before {
		if _, err := res.Exec(); err != nil {
			return pgconn.CommandTag{}, i, err
		}
	}
	tag, err = res.Exec()
	return tag, before, err
}

// explained returns the error of the transaction for the error of a statement of its commit.
func (t *tx) explained(statement int, err error) error {
	for _, p := range t.parts {
		if p.from <= statement && statement < p.to {
			return p.explain(err)
		}
	}
	return fmt.Errorf("commit: %w", err)
}

func (t *tx) rollback() error {
	if !t.begun || t.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if _, err := t.conn.Exec(ctx, "rollback"); err != nil {
		return t.conn.Close(ctx) // the pool replaces a closed connection
	}
	return nil
}

type failedBatch struct {
	pgx.BatchResults
	err error
}

func (f failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, f.err }
func (f failedBatch) Query() (pgx.Rows, error)         { return nil, f.err }
func (f failedBatch) QueryRow() pgx.Row                { return failedRow{f.err} }

// Close returns the error that failed the batch, rather than one of a later statement.
func (f failedBatch) Close() error {
	_ = f.BatchResults.Close()
	return f.err
}

type failedRow struct{ err error }

// Scan implements pgx.Row.
func (r failedRow) Scan(...any) error { return r.err }

// reader sends each query with its settings in one pipeline.
type reader struct {
	db     *DB
	caller caller.Caller
	set    string // a statement that changes settings of the transaction, or ""
}

// Query implements Q.
func (r reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	found, err := r.query(ctx, sql, args...)
	return found, markUnavailable(err)
}

func (r reader) query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	conn, err := r.db.acquire(ctx)
	if err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	b.Queue(r.db.scope, scopeOf(r.caller)...)
	if r.set != "" {
		b.Queue(r.set)
	}
	settings := b.Len()
	b.Queue(sql, args...)
	res := conn.SendBatch(ctx, b)
	for range settings {
		if _, err := res.Exec(); err != nil {
			return nil, closeBatch(res, conn, fmt.Errorf("settings: %w", err))
		}
	}
	return batchRows(res, conn)
}

// ReadBatch runs the reads of b for the caller in ctx in one round trip and one implicit transaction. The functions of b read the
// results in order, such as those of ListInto.
func (db *DB) ReadBatch(ctx context.Context, b *pgx.Batch) error {
	conn, err := db.acquire(ctx)
	if err != nil {
		return markUnavailable(err)
	}
	all := &pgx.Batch{}
	all.Queue(db.scope, scopeOf(caller.FromContext(ctx))...)
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	return markUnavailable(closeBatch(conn.SendBatch(ctx, all), conn, nil))
}

// rows closes its batch and returns its connection to the pool when it is closed.
type rows struct {
	pgx.Rows
	res  pgx.BatchResults
	conn *pgxpool.Conn
	done bool
}

func batchRows(res pgx.BatchResults, conn *pgxpool.Conn) (pgx.Rows, error) {
	inner, err := res.Query()
	if err != nil {
		return nil, closeBatch(res, conn, err)
	}
	return &rows{Rows: inner, res: res, conn: conn}, nil
}

// Err implements pgx.Rows.
func (r *rows) Err() error { return markUnavailable(r.Rows.Err()) }

// Close implements pgx.Rows. An error of the pipeline is the query's own, which Err returns.
func (r *rows) Close() {
	r.Rows.Close()
	if r.done {
		return
	}
	r.done = true
	_ = closeBatch(r.res, r.conn, nil)
}

func closeBatch(res pgx.BatchResults, conn *pgxpool.Conn, err error) error {
	closeErr := res.Close()
	if conn != nil {
		conn.Release()
	}
	if err != nil {
		return err
	}
	return closeErr
}
