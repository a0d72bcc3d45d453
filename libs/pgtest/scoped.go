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

// recorder stores the text of each statement that a pool sends.
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

// Scoped checks the statements of db.App when the test ends. Each statement must contain tenant and mode for each tenant table that
// it reads or writes, because row-level security is only a second protection. For a table without the column livemode, whose rows
// belong to both modes, only the tenant is required.
func Scoped(t *testing.T, db *DB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `
		select c.relname::text as name, exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'livemode') as modes
		from pg_class c where c.relrowsecurity`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByName[scopedTable])
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

// scopedTable is a table under row-level security.
type scopedTable struct {
	Name  string
	Modes bool // each row belongs to one mode
}

var (
	reference = regexp.MustCompile(`(?i)\b(?:from|join|update|into)\s+([a-z_]+)`)
	// returned matches the columns that a statement returns. A statement that returns the tenant's column does not filter by tenant.
	returned = regexp.MustCompile(`(?i)\b(?:select\b[^()]*?\bfrom|returning\b[^()]*)`)
)

// scoped reports whether sql contains tenant and mode as often as tables that have them.
func scoped(sql string, tables []scopedTable) bool {
	tenants, modes := 0, 0
	for _, m := range reference.FindAllStringSubmatch(sql, -1) {
		if i := slices.IndexFunc(tables, func(t scopedTable) bool { return t.Name == m[1] }); i >= 0 {
			tenants++
			if tables[i].Modes {
				modes++
			}
		}
	}
	conditions := returned.ReplaceAllString(sql, "")
	return strings.Count(conditions, "tenant_id") >= tenants && strings.Count(conditions, "livemode") >= modes
}
