package pgtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast.dev/libs/pg"
)

// PlanMode is a value of PostgreSQL's setting plan_cache_mode.
type PlanMode string

// The plans of a statement: for the values of its arguments, or for all values, as a connection uses it after it has executed the
// statement often.
const (
	CustomPlan  PlanMode = "force_custom_plan"
	GenericPlan PlanMode = "force_generic_plan"
)

// PlanModes are the plans that a list has to be fast with.
var PlanModes = []PlanMode{CustomPlan, GenericPlan}

// PlanModesOf returns the plans that the server may use for a statement of a reader.
func PlanModesOf(t *testing.T, ctx context.Context, q pg.Q) []PlanMode {
	t.Helper()
	mode, err := pg.One(ctx, q, pgx.RowTo[PlanMode], pgx.ErrNoRows, `select current_setting('plan_cache_mode')`)
	if err != nil {
		t.Fatal(err)
	}
	if mode == "auto" {
		return PlanModes
	}
	return []PlanMode{mode}
}

// Explain runs fn in a transaction of the caller in ctx, as the app role and with the watermark of DB.ReadToWatermark, rolls the
// transaction back, and returns the plans of its statements. It fails the test if fn fails.
func Explain(t *testing.T, ctx context.Context, db *DB, mode PlanMode, fn func(ctx context.Context, tx pg.Tx) error) *Plan {
	t.Helper()
	var e *Explained
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `select set_config('plan_cache_mode', $1, true), set_config('app.settled', oldest_write()::text, true)`, mode)
		if err != nil {
			return err
		}
		e = NewExplained(t, tx)
		if err := fn(ctx, e); err != nil {
			return err
		}
		return errRollBack
	})
	if !errors.Is(err, errRollBack) {
		t.Fatal(err)
	}
	return &e.Plan
}

var errRollBack = errors.New("the transaction is rolled back")

// Explained is a transaction that records the plan of each statement. It executes a statement with EXPLAIN ANALYZE, rolls back what the
// statement changed, and executes it for its caller. It plans with the setting plan_cache_mode of the transaction.
type Explained struct {
	pg.Tx
	Plan

	t *testing.T
}

// NewExplained returns tx as a transaction that records plans. A statement without a plan fails the test.
func NewExplained(t *testing.T, tx pg.Tx) *Explained { return &Explained{Tx: tx, t: t} }

// Query implements pg.Q.
func (e *Explained) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	e.t.Helper()
	e.explain(ctx, &pgx.QueuedQuery{SQL: sql, Arguments: args})
	return e.Tx.Query(ctx, sql, args...)
}

// Exec implements pg.Tx.
func (e *Explained) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	e.t.Helper()
	e.explain(ctx, &pgx.QueuedQuery{SQL: sql, Arguments: args})
	return e.Tx.Exec(ctx, sql, args...)
}

// SendBatch implements pg.Tx. Each statement of the batch sees what those before it changed.
func (e *Explained) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	e.t.Helper()
	e.explain(ctx, b.QueuedQueries...)
	return e.Tx.SendBatch(ctx, b)
}

// explain records the plans of statements and rolls them back.
func (e *Explained) explain(ctx context.Context, list ...*pgx.QueuedQuery) {
	e.t.Helper()
	if _, err := e.Tx.Exec(ctx, `savepoint explained`); err != nil {
		e.t.Fatal(err)
	}
	for _, q := range list {
		if err := e.explainOne(ctx, q.SQL, q.Arguments); err != nil {
			e.t.Fatalf("explain %s: %v", q.SQL, err)
		}
	}
	for _, sql := range []string{`rollback to explained`, `release explained`} {
		if _, err := e.Tx.Exec(ctx, sql); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *Explained) explainOne(ctx context.Context, sql string, args []any) error {
	execute, err := e.prepare(ctx, sql, args)
	if err != nil {
		return err
	}
	text, err := pg.One(ctx, e.Tx, pgx.RowTo[[]byte], pgx.ErrNoRows, `explain (analyze, timing off, summary off, costs off, format json) `+execute)
	if err != nil {
		return err
	}
	if _, err := e.Tx.Exec(ctx, `deallocate explained`); err != nil {
		return err
	}
	var roots []struct{ Plan *step }
	if err := json.Unmarshal(text, &roots); err != nil {
		return err
	}
	e.roots = append(e.roots, roots[0].Plan)
	return nil
}

// prepare prepares a statement as the pool does, so that its plan can be one for all values, and returns the statement that executes it
// with the arguments.
func (e *Explained) prepare(ctx context.Context, sql string, args []any) (execute string, err error) {
	rows, err := e.Tx.Query(ctx, `select 1`)
	if err != nil {
		return "", err
	}
	rows.Close()
	conn := rows.Conn()
	if len(args) == 1 {
		if named, ok := args[0].(pgx.QueryRewriter); ok {
			if sql, args, err = named.RewriteQuery(ctx, conn, sql, nil); err != nil {
				return "", err
			}
		}
	}
	described, err := conn.PgConn().Prepare(ctx, "", sql, nil)
	if err != nil {
		return "", err
	}
	if _, err := e.Tx.Exec(ctx, `prepare explained as `+sql); err != nil {
		return "", err
	}
	values := make([]string, len(args))
	for i, arg := range args {
		text, err := conn.TypeMap().Encode(described.ParamOIDs[i], pgx.TextFormatCode, arg, []byte{}) // nil would also be an empty string
		if err != nil {
			return "", fmt.Errorf("$%d: %w", i+1, err)
		}
		values[i] = "null"
		if text != nil {
			values[i] = "'" + strings.ReplaceAll(string(text), "'", "''") + "'"
		}
	}
	if len(values) == 0 {
		return "execute explained", nil
	}
	return "execute explained(" + strings.Join(values, ", ") + ")", nil
}

// Plan is the plans of statements, as they were executed. PostgreSQL reports the average of the rounds of a step.
type Plan struct{ roots []*step }

// Statements returns the number of statements.
func (p *Plan) Statements() int { return len(p.roots) }

// Read returns the number of rows that all rounds read from some tables, including those that a condition removed; without tables: from
// all.
func (p *Plan) Read(tables ...string) (rows float64) {
	for s := range p.steps {
		if s.Relation != "" && (len(tables) == 0 || slices.Contains(tables, s.Relation)) {
			rows += (s.Rows + s.Removed + s.Recheck) * s.Loops
		}
	}
	return rows
}

// Removed returns the number of rows that a condition removed after they were read, in one round of each step.
func (p *Plan) Removed() (rows float64) {
	for s := range p.steps {
		rows += s.Removed
	}
	return rows
}

// Largest returns the largest number of rows that a step returned, in all of its rounds.
func (p *Plan) Largest() (rows float64) {
	for s := range p.steps {
		rows = max(rows, s.Rows*s.Loops)
	}
	return rows
}

// Sent returns the number of rows that the statements returned.
func (p *Plan) Sent() (rows float64) {
	for _, root := range p.roots {
		rows += root.Rows
	}
	return rows
}

// String returns the plans in the form in which PostgreSQL prints them. A step is "Seq Scan on units", or "Index Scan using units_name on
// units".
func (p *Plan) String() string {
	var text strings.Builder
	for _, root := range p.roots {
		root.print(&text, 0)
	}
	return text.String()
}

func (p *Plan) steps(yield func(*step) bool) {
	for _, root := range p.roots {
		if !root.walk(yield) {
			return
		}
	}
}

// step is a node of a plan.
type step struct {
	Type      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Index     string  `json:"Index Name"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Removed   float64 `json:"Rows Removed by Filter"`
	Recheck   float64 `json:"Rows Removed by Index Recheck"`
	Condition string  `json:"Index Cond"`
	Filter    string
	Plans     []*step
}

func (s *step) walk(yield func(*step) bool) bool {
	if !yield(s) {
		return false
	}
	for _, child := range s.Plans {
		if !child.walk(yield) {
			return false
		}
	}
	return true
}

func (s *step) print(to *strings.Builder, depth int) {
	indent := strings.Repeat("  ", depth)
	to.WriteString(indent + s.Type)
	if s.Index != "" {
		to.WriteString(" using " + s.Index)
	}
	if s.Relation != "" {
		to.WriteString(" on " + s.Relation)
	}
	fmt.Fprintf(to, " (rows=%v loops=%v)\n", s.Rows, s.Loops)
	if s.Condition != "" {
		fmt.Fprintf(to, "%s  Index Cond: %s\n", indent, s.Condition)
	}
	if s.Filter != "" {
		fmt.Fprintf(to, "%s  Filter: %s\n", indent, s.Filter)
	}
	if s.Removed > 0 {
		fmt.Fprintf(to, "%s  Rows Removed by Filter: %v\n", indent, s.Removed)
	}
	if s.Recheck > 0 {
		fmt.Fprintf(to, "%s  Rows Removed by Index Recheck: %v\n", indent, s.Recheck)
	}
	for _, child := range s.Plans {
		child.print(to, depth+1)
	}
}
