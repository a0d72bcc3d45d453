package pgtest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// recorder keeps the text of each statement that a pool sends.
type recorder struct {
	mu   sync.Mutex
	sent map[string]bool
}

var (
	_ pgx.QueryTracer = (*recorder)(nil)
	_ pgx.BatchTracer = (*recorder)(nil)
)

func (r *recorder) add(sql string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		r.sent = map[string]bool{}
	}
	r.sent[sql] = true
}

// TraceQueryStart implements pgx.QueryTracer.
func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.add(data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.add(data.SQL)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Scoped fails the test at its end when a statement that db.App has sent does not name tenant and mode for each table of
// a tenant that it reads or writes: row-level security is the second wall and not the only one.
func Scoped(t *testing.T, db *DB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `select relname::text from pg_class where relrowsecurity`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.sent.mu.Lock()
		defer db.sent.mu.Unlock()
		for sql := range db.sent.sent {
			if !scoped(sql, tables) {
				t.Errorf("the statement does not name tenant and mode for each of its tables: %s", sql)
			}
		}
	})
}

var reference = regexp.MustCompile(`(?i)\b(?:from|join|update|into)\s+([a-z_]+)`)

// scoped reports whether sql names tenant and mode as often as tables.
func scoped(sql string, tables []string) bool {
	named := 0
	for _, m := range reference.FindAllStringSubmatch(sql, -1) {
		if slices.Contains(tables, m[1]) {
			named++
		}
	}
	return strings.Count(sql, "tenant_id") >= named && strings.Count(sql, "livemode") >= named
}
