package page

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
)

// The limits of a search, independent of the amount of stored data. A condition with at most RareMatches rows is read completely.
// Otherwise the next rows of the list are examined with at most WalkLookups lookups. Only a deep search reads more, and the number
// of deep searches is limited.
const (
	RareMatches = 1_000
	WalkLookups = 10_000
)

// ErrTooBroad reports that a deep search did not end within the statement time-out.
var ErrTooBroad = apperr.New(apperr.Unavailable, "unavailable",
	"The search takes too long. Use longer words, or a filter that matches fewer rows.").WithRetryAfter(time.Second)

// Condition is a requirement that a row of a list must meet in an index table. Each "?" is one of Args.
type Condition struct {
	IDs  []string // each selects the ids of some of the rows that meet it; together they select all
	Has  string   // the same for one row of the list: true or null
	Args []any
}

// List is the statement of a list, and the conditions in index tables that its rows must meet. All parts of the statement share the
// same arguments: each part is a Where or a Fork of it.
type List[T any] struct {
	Alias      string // of the table
	Scan       pgx.RowToFunc[T]
	Statement  func(r Request, narrow func(*Where)) (string, []any) // narrow adds conditions
	Conditions []Condition
}

// Search reads one page of the rows that meet all conditions. If few rows meet a condition, it begins with these. If many rows meet
// every condition, it examines rows in the order of the list until the page is full. If that needs too many lookups, it collects
// the ids of all matches: this is a deep search.
func Search[T any](ctx context.Context, q pg.Q, r Request, l List[T]) (Rows[T], error) {
	if len(l.Conditions) == 0 {
		sql, args := l.Statement(r, func(*Where) {})
		return Read(ctx, q, r, l.Scan, sql, args...)
	}
	rare, err := rarest(ctx, q, l.Conditions)
	if err != nil {
		return Rows[T]{}, err
	}
	if rare >= 0 {
		return l.collected(ctx, q, r, l.Conditions[rare:rare+1], slices.Concat(l.Conditions[:rare], l.Conditions[rare+1:]))
	}
	if r.count == nil {
		rows, complete, err := l.walked(ctx, q, r)
		if err != nil || complete {
			return rows, err
		}
	}
	done, err := deepSearches.Acquire(ctx, caller.FromContext(ctx).Tenant)
	if err != nil {
		return Rows[T]{}, err
	}
	defer done()
	rows, err := l.collected(ctx, q, r, l.Conditions, nil)
	if pg.Code(err) == "57014" && ctx.Err() == nil { // query_canceled
		return Rows[T]{}, ErrTooBroad.WithCause(err)
	}
	return rows, err
}

// rarest returns the index of the condition that the fewest rows meet, or -1 if each has more than RareMatches.
func rarest(ctx context.Context, q pg.Q, conds []Condition) (int, error) {
	counts := make([]string, len(conds))
	args := pg.Args{}
	for i, c := range conds {
		// The limit on each part allows the planner to stop reading its index there.
		counts[i] = fmt.Sprintf(`(select count(*)::int from (select from (%s) y limit %d) x)`, bind(args, union(c.IDs, fmt.Sprintf(` limit %d`, RareMatches+1)), c.Args), RareMatches+1)
	}
	found, err := one[[]int](ctx, q, `select array[`+strings.Join(counts, ", ")+`]`, args)
	if err != nil {
		return 0, err
	}
	least := slices.Index(found, slices.Min(found))
	if found[least] > RareMatches {
		return -1, nil
	}
	return least, nil
}

// union joins statements, each with the same end.
func union(selects []string, end string) string {
	parts := make([]string, len(selects))
	for i, s := range selects {
		parts[i] = `(` + s + end + `)`
	}
	return strings.Join(parts, ` union all `)
}

// collected begins with the ids of the rows that meet the first conditions. The ids are collected as an array, so that every plan
// reads only the index ranges of these conditions and the matching rows by key, never all rows of the tenant.
func (l List[T]) collected(ctx context.Context, q pg.Q, r Request, first, others []Condition) (Rows[T], error) {
	selects := make([]string, len(first))
	var ids []any
	for i, c := range first {
		selects[i] = `(` + union(c.IDs, "") + `)`
		ids = append(ids, c.Args...)
	}
	sql, args := l.Statement(r, func(w *Where) {
		w.Add(l.Alias+`.id = any(array(`+strings.Join(selects, " intersect ")+`))`, ids...)
		for _, c := range others {
			w.Add(c.Has, c.Args...)
		}
	})
	return Read(ctx, q, r, l.Scan, sql, args...)
}

// walked examines the next rows in the order of the list, as many as WalkLookups allows. complete reports whether the page is
// full or no more rows follow.
func (l List[T]) walked(ctx context.Context, q pg.Q, r Request) (rows Rows[T], complete bool, err error) {
	wide := r
	wide.Limit = WalkLookups / len(l.Conditions)
	w := &Where{}
	inner, _ := l.Statement(wide, func(part *Where) { w = part })
	has := make([]string, len(l.Conditions))
	for i, c := range l.Conditions {
		has[i] = bind(w.named(), c.Has, c.Args)
	}
	rows, err = Read(ctx, q, r, l.Scan, fmt.Sprintf(`select * from (%s) %s where %s order by %s limit %d`,
		inner, l.Alias, strings.Join(has, " and "), r.order().by(""), r.Limit+1), w.args)
	if err != nil || rows.More {
		return rows, true, err
	}
	n, err := one[int](ctx, q, `select count(*)::int from (`+inner+`) x`, w.args)
	return rows, n <= wide.Limit, err
}

// one reads a single value.
func one[T any](ctx context.Context, q pg.Q, sql string, args pg.Args) (T, error) {
	v, err := pg.One(ctx, q, pgx.RowTo[T], pgx.ErrNoRows, sql, args)
	if err != nil {
		return v, fmt.Errorf("count: %w", err)
	}
	return v, nil
}

// MetadataConditions returns the conditions that rows of a list have these pairs of metadata. list is the alias of the
// list.
func MetadataConditions(t pg.MetadataTable, list string, pairs map[string]string) []Condition {
	var out []Condition
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, Condition{
			IDs: []string{fmt.Sprintf(`select i.%s from %s i where i.tenant_id = @tenant and i.livemode = @live and i.key = ? and i.value = ?`, t.Owner, t.Name)},
			Has: fmt.Sprintf(`(select true from %s i where i.tenant_id = @tenant and i.livemode = @live and i.key = ? and i.value = ? and i.%s = %s.id limit 1)`,
				t.Name, t.Owner, list),
			Args: []any{key, pairs[key]},
		})
	}
	return out
}
